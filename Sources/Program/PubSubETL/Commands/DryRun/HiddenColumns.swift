import JSON
import Pipeline

/// The columns of one layout whose values are not to be shown.
struct HiddenColumns {
  /// The text printed in place of a hidden value.
  static let text = "<hidden>"

  /// Names, as lines have them.
  let names: Set<String>

  /// - Parameter slots: nil to hide everything. A record of which a part is hidden is hidden as a whole.
  init(of layout: RecordLayout, slots: Set<Int>?) {
    self.names = Set(
      layout.columns.lazy.filter { column in
        slots.map { !$0.isDisjoint(with: column.slots) } ?? true
      }.map(\.name))
  }

  /// The line with nothing of hidden values in it; absent members stay absent.
  func hiding(_ line: JSONValue) -> JSONValue {
    guard !self.names.isEmpty, let members = line.members else { return line }
    var shown: [JSONMember] = []
    for var member in members {
      if self.names.contains(member.name) {
        member.value = .string(Self.text)
      } else if member.name == "_nonfinite", let numbers = member.value.members {
        let kept = numbers.filter { !self.isOfHidden($0.name) }
        if kept.isEmpty { continue }
        member.value.content = .object(kept)
      }
      shown.append(member)
    }
    return JSONValue(.object(shown))
  }

  /// - Parameter place: `Amount`, `Location.Latitude` or `Scores[2]`.
  private func isOfHidden(_ place: String) -> Bool {
    self.names.contains { place == $0 || place.hasPrefix($0 + ".") || place.hasPrefix($0 + "[") }
  }
}
