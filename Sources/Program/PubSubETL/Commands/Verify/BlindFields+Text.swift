import JSON
import RESTSource

extension BlindFields {
  /// Names in a line; the rest is a number.
  private static let maxNames = 6

  private var groups: [(key: String, words: String, names: [String])] {
    [
      (
        "calculated", "formulas and roll-ups: Salesforce may send no event when they change",
        self.calculated
      ),
      ("hidden", "not visible to the run-as user", self.hidden),
      ("not_readable", "not available over REST, so only events bring them", self.unreadable),
      ("not_in_events", "not in the events, so not copied", self.notCarried),
    ]
  }

  /// A line for each kind of field that there is.
  func lines(of entity: String) -> [String] {
    self.groups.filter { !$0.names.isEmpty }.map { _, words, names in
      "\(entity): \(words): \(Self.list(names))"
    }
  }

  /// `A, B, C and 12 more`
  static func list(_ names: [String]) -> String {
    let shown = names.prefix(Self.maxNames).joined(separator: ", ")
    let rest = names.count - Self.maxNames
    return rest > 0 ? "\(shown) and \(ProgressLine.grouped(Int64(rest))) more" : shown
  }

  var json: JSONValue {
    JSONValue(
      .object(
        self.groups.map { key, _, names in
          JSONMember(key, .array(names.map { .string($0) }))
        }))
  }
}
