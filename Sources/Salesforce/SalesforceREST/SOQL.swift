internal import Bytes

/// Parts of SOQL statements.
package enum SOQL {
  /// Whether a text is the API name of an object or field.
  package static func isName(_ text: String) -> Bool {
    text.utf8.count <= 255 && text.utf8.first?.isLetter == true
      && text.utf8.allSatisfy(\.isWordCharacter)
  }

  /// Whether a text is a record ID of 15 or 18 characters.
  package static func isRecordID(_ text: String) -> Bool {
    (text.utf8.count == 15 || text.utf8.count == 18) && text.utf8.allSatisfy(\.isAlphanumeric)
  }

  /// `SELECT a, b FROM X`, and the condition if there is one.
  package static func select(
    _ fields: [String], from object: String, where condition: String? = nil
  ) -> String {
    "SELECT \(fields.joined(separator: ", ")) FROM \(object)"
      + (condition.map { " WHERE \($0)" } ?? "")
  }

  /// Why a text cannot be put in parentheses as one condition; nil if it can. The org checks the
  /// rest.
  package static func mistake(inCondition text: String) -> String? {
    // A URI has it next to hundreds of IDs.
    let size = text.utf8.reduce(0) { $0 + ($1.isAlphanumeric ? 1 : 3) }
    guard size <= 4000 else {
      return "expected a condition in SOQL of at most 4,000 bytes in a URI, found \(size)"
    }
    var depth = 0
    var isQuoted = false
    var isEscaped = false
    for byte in text.utf8 {
      if isQuoted {
        if isEscaped {
          isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
          isEscaped = true
        } else if byte == UInt8(ascii: "'") {
          isQuoted = false
        }
        continue
      }
      switch byte {
      case UInt8(ascii: "'"): isQuoted = true
      case UInt8(ascii: "("): depth += 1
      case UInt8(ascii: ")"):
        depth -= 1
        if depth < 0 { return "expected a condition in SOQL, found ')' without '('" }
      default: break
      }
    }
    if isQuoted { return "expected a condition in SOQL, found a text without its closing quote" }
    if depth > 0 { return "expected a condition in SOQL, found '(' without ')'" }
    return text.utf8.allSatisfy { $0 <= 0x20 } ? "expected a condition in SOQL, found none" : nil
  }

  /// `Id IN ('…', …)`
  package static func isOneOf(_ ids: some Sequence<String>) -> String {
    "Id IN (\(ids.map { "'\($0)'" }.joined(separator: ", ")))"
  }
}
