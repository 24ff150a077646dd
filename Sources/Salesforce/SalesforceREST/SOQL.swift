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

  /// `Id IN ('…', …)`
  package static func isOneOf(_ ids: some Sequence<String>) -> String {
    "Id IN (\(ids.map { "'\($0)'" }.joined(separator: ", ")))"
  }
}
