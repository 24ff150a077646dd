import JSON

/// A member in which a line is not what a case expects; of a whole line, when it has no name.
struct LineDifference: Equatable {
  var member: String
  /// Nil: the member was not to be there.
  var expected: JSONValue?
  /// Nil: it is not there.
  var found: JSONValue?

  /// Names that begin like this are metadata, which a case need not name.
  static let metadataPrefix: Character = "_"

  static func between(
    _ expected: JSONValue, _ found: JSONValue, _ match: LineMatch
  ) -> [LineDifference] {
    var differences: [LineDifference] = []
    for member in expected.members ?? [] where member.name != "//" {
      let other = found[member.name]
      guard other.map({ Self.isEqual(member.value, $0) }) != true else { continue }
      differences.append(
        LineDifference(member: member.name, expected: member.value, found: other))
    }
    for member in found.members ?? [] where expected[member.name] == nil {
      if Self.isCompared(member.name, match) {
        differences.append(
          LineDifference(member: member.name, expected: nil, found: member.value))
      }
    }
    return differences
  }

  /// Whether a member counts that the case does not name.
  static func isCompared(_ name: String, _ match: LineMatch) -> Bool {
    switch match {
    case .fields: name.first != Self.metadataPrefix
    case .subset: false
    case .exact: true
    }
  }

  /// Whether two values are the same to a reader of JSON: numbers by their value, members in any order.
  static func isEqual(_ one: JSONValue, _ other: JSONValue) -> Bool {
    switch (one.content, other.content) {
    case (.number(let text), .number(let otherText)):
      // What 64 bits hold is compared to the last digit.
      if let number = one.wholeNumber, let otherNumber = other.wholeNumber {
        return number == otherNumber
      }
      return text == otherText || Double(text) == Double(otherText)
    case (.array(let one), .array(let other)):
      return one.count == other.count && zip(one, other).allSatisfy { Self.isEqual($0, $1) }
    case (.object(let members), .object(let others)):
      return members.count == others.count
        && members.allSatisfy { member in
          other[member.name].map { Self.isEqual(member.value, $0) } ?? false
        }
    default: return one == other
    }
  }
}
