import JSON
import Pipeline

/// An event and its result, for people.
extension EventTrace {
  struct Line: Equatable {
    var text: String
    var color: PrintableText.Color?

    init(_ text: String, _ color: PrintableText.Color? = nil) {
      self.text = text
      self.color = color
    }
  }

  /// Identity that the first line has.
  private static let identity: Set<String> = ["_topic", "_replay_id", "_event_id", "_schema_id"]

  /// - Parameter number: of the events shown, from 1.
  func lines(number: Int) -> [Line] {
    var lines = [
      Line(
        "event \(number): \(self.topic), replay ID \(self.replayID), event ID \(self.eventID)")
    ]
    if var rows = self.before {
      lines += Self.lines(rows)
      for step in self.steps {
        lines += self.lines(step, &rows, of: nil)
      }
      if self.refusal == nil {
        for sink in self.sinks { lines += self.lines(sink, rows) }
      }
    }
    if let refusal = self.refusal {
      lines.append(Line("  would be a dead letter: \(refusal)", .red))
    }
    return lines
  }

  private static func lines(_ rows: RowSnapshot) -> [Line] {
    var lines: [Line] = []
    for (index, row) in rows.rows.enumerated() {
      lines.append(Line("  before" + Self.number(index, of: rows)))
      for member in row.members ?? [] where !Self.identity.contains(member.name) {
        lines.append(Line("    \(member.name): \(member.value.shown)"))
      }
    }
    if rows.notShown > 0 {
      lines.append(Line("    \(Phrase.count(rows.notShown, "more row")) not shown"))
    }
    return lines
  }

  private static func number(_ index: Int, of rows: RowSnapshot) -> String {
    rows.count > 1 ? ", row \(index + 1) of \(rows.count)" : ""
  }

  /// - Parameters:
  ///   - rows: before the stage, then behind it.
  ///   - sink: whose stage it is; nil for one of the pipeline.
  private func lines(_ step: StageStep, _ rows: inout RowSnapshot, of sink: String?) -> [Line] {
    let stage =
      "  " + (sink.map { "sink '\($0)', " } ?? "") + "\(step.kind) (stages[\(step.place)])"
    switch step.outcome {
    case .unchanged where sink == nil && step.kind == Route.type && rows.count > 0:
      return [Line("\(stage):")] + self.routing
    case .unchanged: return [Line("\(stage): \(rows.count == 0 ? "no row" : "unchanged")")]
    case .refused(let reason): return [Line("\(stage): refused: \(reason)", .red)]
    case .rows(let after):
      defer { rows = after }
      if step.leftOut > 0 {
        return [
          Line("\(stage): \(step.leftOut) of \(Phrase.count(rows.count, "row")) left out", .yellow)
        ]
      }
      var lines = [Line("\(stage):")]
      for (index, pair) in zip(rows.rows, after.rows).enumerated() {
        if after.count > 1 { lines.append(Line("   " + Self.number(index, of: after).dropFirst())) }
        lines += Self.changes(
          pair.0, pair.1, renamed: Self.renamed(rows.layout, after.layout))
      }
      lines += step.hiddenChanges.sorted().map { Line("    ~ \($0): changed, and hidden", .yellow) }
      return lines
    }
  }

  /// New names by those that were there before.
  private static func renamed(_ before: RecordLayout, _ after: RecordLayout) -> [String: String] {
    guard before !== after else { return [:] }
    var names: [Column.Content.Place: String] = [:]
    for column in after.columns { names[column.content.place] = column.name }
    let kept = Set(after.columns.map(\.name))
    var renamed: [String: String] = [:]
    for column in before.columns where column.content.place != .none {
      guard let name = names[column.content.place], name != column.name, !kept.contains(column.name)
      else { continue }
      renamed[column.name] = name
    }
    return renamed
  }

  private static func changes(
    _ before: JSONValue, _ after: JSONValue, renamed: [String: String]
  ) -> [Line] {
    var lines: [Line] = []
    var taken: Set<String> = []
    for member in before.members ?? [] {
      let name = renamed[member.name] ?? member.name
      guard let value = after[name] else {
        lines.append(Line("    - \(member.name): \(member.value.shown)", .red))
        continue
      }
      taken.insert(name)
      let title = name == member.name ? name : "\(member.name) is now \(name)"
      if value != member.value {
        lines.append(Line("    ~ \(title): \(member.value.shown) → \(value.shown)", .yellow))
      } else if name != member.name {
        lines.append(Line("    ~ \(title)", .yellow))
      }
    }
    for member in after.members ?? [] where !taken.contains(member.name) {
      lines.append(Line("    + \(member.name): \(member.value.shown)", .green))
    }
    return lines
  }

  private var routing: [Line] {
    self.sinks.compactMap { sink in
      sink.routed.map {
        Line("    " + ($0 > 0 ? "\(Phrase.count($0, "row")) to" : "nothing to") + " '\(sink.name)'")
      }
    }
  }

  private func lines(_ sink: SinkOutcome, _ rows: RowSnapshot) -> [Line] {
    var rows = rows
    var lines: [Line] = []
    if sink.routed != 0 {
      for step in sink.steps { lines += self.lines(step, &rows, of: sink.name) }
    }
    if let refusal = sink.refusal {
      return lines + [Line("  sink '\(sink.name)' would refuse it: \(refusal)", .red)]
    }
    let count = sink.lines.count + sink.linesNotShown
    lines.append(
      Line(
        "  sink '\(sink.name)': " + (count == 0 ? "nothing" : Phrase.count(count, "line")),
        count == 0 ? nil : .green))
    lines += sink.lines.map { Line("    \($0.text(.spaced))") }
    if sink.linesNotShown > 0 {
      lines.append(Line("    \(Phrase.count(sink.linesNotShown, "more line")) not shown"))
    }
    return lines
  }
}

extension Column.Content {
  /// What identifies values, whatever their name.
  fileprivate enum Place: Hashable {
    case none
    case slot(Int)
    case record(Int)
  }

  fileprivate var place: Place {
    switch self {
    case .constant: .none
    case .slot(let slot, _): .slot(slot)
    case .record(let slot, _, _): .record(slot)
    }
  }
}
