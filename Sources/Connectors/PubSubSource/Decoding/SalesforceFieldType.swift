internal import Avro
internal import Bytes

/// A field's `doc`, such as `Data:Currency:00N…`: role, type and the custom field's ID
/// (ChangeEvents.md#field-types).
struct SalesforceFieldType {
  var role: Substring
  var type: Substring
  /// 15 characters; nil for a standard field.
  var fieldID: Substring?

  /// Nil if `doc` is missing or prose.
  init?(doc: String?) {
    guard let parts = doc?.split(separator: ":", omittingEmptySubsequences: false),
      (2...3).contains(parts.count),
      parts.allSatisfy({ part in !part.isEmpty && part.utf8.allSatisfy(\.isWordCharacter) })
    else { return nil }
    self.role = parts[0]
    self.type = parts[1]
    if parts.count == 3, parts[2].hasPrefix("00N"), [15, 18].contains(parts[2].count) {
      self.fieldID = parts[2].prefix(15)
    }
  }

  /// Role and type without the custom field's ID.
  var name: String { "\(self.role):\(self.type)" }

  /// What a long represents; nil for a plain number. The Avro type is the same for all.
  var meaningOfLong: ValueType? {
    switch self.type {
    case "DateTime": .timestamp(.milliseconds, isLocal: false)
    case "DateOnly", "Birthday": .dateInMilliseconds
    case "TimeOnly": .time(.milliseconds)
    default: nil
    }
  }
}
