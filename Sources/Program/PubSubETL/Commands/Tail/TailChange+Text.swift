import JSON

/// A change as a block of lines.
extension TailChange {
  /// More fields are counted.
  private static let maxFields = 60

  /// `14:03:15  Opportunity "Big deal" 006…AAA  UPDATE by 005…`, then a line per field.
  ///
  /// - Parameter now: milliseconds since 1970.
  func lines(now: Int64) -> [(text: String, color: PrintableText.Color?)] {
    let time = self.time.map { Phrase.localTime($0, now: now) } ?? "--:--:--"
    var heading = "\(time)  \(self.object)"
    if let recordName { heading += " \"\(recordName)\"" }
    if let recordID { heading += " \(recordID)" }
    if let changeType { heading += "  \(changeType)" }
    if let user { heading += " by \(user)" }
    var lines: [(text: String, color: PrintableText.Color?)] = [(heading, self.color)]
    let shown = self.fields.prefix(Self.maxFields)
    let width = shown.map { TerminalColumns.width($0.name) }.max() ?? 0
    for field in shown {
      let padding = String(repeating: " ", count: width - TerminalColumns.width(field.name))
      lines.append(("  \(field.name)\(padding)  \(Self.text(field))", nil))
    }
    if self.fields.count > shown.count {
      lines.append(("  and \(Phrase.count(self.fields.count - shown.count, "more field"))", nil))
    }
    return lines
  }

  private var color: PrintableText.Color? {
    switch self.changeType {
    case "CREATE", "UNDELETE": .green
    case "DELETE": .red
    case nil: nil
    default: .yellow
    }
  }

  private static func text(_ field: Field) -> String {
    let after = field.after?.shown ?? "(changed)"
    return field.before.map { "\($0.shown) → \(after)" } ?? after
  }
}
