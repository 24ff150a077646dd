internal import Cryptography

/// Names in SQL.
package enum SQLIdentifier {
  /// How names of Salesforce become names in SQL.
  package enum Style: String, Sendable, CaseIterable {
    /// `BillingAddress_City` is `billingaddress_city`.
    case lower
    /// `billing_address_city`
    case snake
    case asIs = "as_is"
  }

  /// NAMEDATALEN - 1: what is longer the server would cut without asking.
  package static let maxByteCount = 63

  /// In double quotes, always: nothing then depends on the server's list of reserved words.
  package static func quoted(_ name: String) -> String { Self.quoted(name, by: "\"") }

  /// A string constant. Only for names and the like in DDL, which takes no parameters.
  package static func literal(_ text: String) -> String {
    // A backslash is doubled and announced, whatever standard_conforming_strings says.
    guard text.unicodeScalars.contains("\\") else { return Self.quoted(text, by: "'") }
    var escaped = ""
    for scalar in text.unicodeScalars {
      escaped.unicodeScalars.append(scalar)
      if scalar == "\\" { escaped.unicodeScalars.append(scalar) }
    }
    return "E" + Self.quoted(escaped, by: "'")
  }

  /// U+0000 is replaced: it would end the statement where it stands.
  private static func quoted(_ text: String, by quote: Unicode.Scalar) -> String {
    var quoted = ""
    quoted.unicodeScalars.append(quote)
    for scalar in PostgresText.storable(text).unicodeScalars {
      quoted.unicodeScalars.append(scalar)
      if scalar == quote { quoted.unicodeScalars.append(scalar) }
    }
    quoted.unicodeScalars.append(quote)
    return quoted
  }

  /// The SQL name of a column or an entity: in the style, not the name of a system column, and of
  /// at most 63 bytes.
  package static func name(_ name: String, _ style: Style) -> String {
    let styled =
      switch style {
      case .lower: name.lowercased()
      case .snake: Self.snakeCase(name)
      case .asIs: name
      }
    return Self.shortened(Self.systemColumns.contains(styled) ? styled + "_" : styled)
  }

  /// A name of at most 63 bytes: longer ones are cut and end with a part of the whole name's
  /// SHA-256, so that two of them do not become one.
  package static func shortened(_ name: String) -> String {
    guard name.utf8.count > Self.maxByteCount else { return name }
    let digest = SHA256.hash(of: Array(name.utf8)).hex.prefix(8)
    var kept = ""
    var byteCount = 0
    for scalar in name.unicodeScalars {
      byteCount += UTF8.width(scalar)
      guard byteCount <= Self.maxByteCount - 1 - digest.utf8.count else { break }
      kept.unicodeScalars.append(scalar)
    }
    return "\(kept)_\(digest)"
  }

  private static let systemColumns: Set<String> = [
    "tableoid", "xmin", "cmin", "xmax", "cmax", "ctid", "oid",
  ]

  private static func snakeCase(_ name: String) -> String {
    let scalars = Array(name.unicodeScalars)
    var text = ""
    for (index, scalar) in scalars.enumerated() {
      if index > 0, scalar.properties.isUppercase {
        let previous = scalars[index - 1]
        let startsWord = index + 1 < scalars.count && scalars[index + 1].properties.isLowercase
        // A word begins after a small letter or digit, and before the last capital of several.
        if previous.properties.isLowercase || previous.properties.numericType != nil
          || (previous.properties.isUppercase && startsWord)
        {
          text.append("_")
        }
      }
      text.append(scalar.properties.lowercaseMapping)
    }
    return text
  }
}
