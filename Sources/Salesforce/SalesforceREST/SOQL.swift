/// Parts of SOQL statements.
public enum SOQL {
  /// Whether a text is the API name of an object or field.
  public static func isName(_ text: String) -> Bool {
    guard let first = text.utf8.first, text.utf8.count <= 255 else { return false }
    func isLetter(_ byte: UInt8) -> Bool {
      (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
        || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
    }
    return isLetter(first)
      && text.utf8.allSatisfy {
        isLetter($0) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
          || $0 == UInt8(ascii: "_")
      }
  }

  /// Whether a text is a record ID of 15 or 18 characters.
  public static func isRecordID(_ text: String) -> Bool {
    (text.utf8.count == 15 || text.utf8.count == 18)
      && text.utf8.allSatisfy {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
          || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0)
          || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
      }
  }

  /// `SELECT a, b FROM X`, and the condition if there is one.
  public static func select(
    _ fields: [String], from object: String, where condition: String? = nil
  ) -> String {
    "SELECT \(fields.joined(separator: ", ")) FROM \(object)"
      + (condition.map { " WHERE \($0)" } ?? "")
  }

  /// `Id IN ('…', …)`
  public static func isOneOf(_ ids: some Sequence<String>) -> String {
    "Id IN (\(ids.map { "'\($0)'" }.joined(separator: ", ")))"
  }
}
