import PostgresClient
import PostgresSink

extension PostgresSettings: RefoldingSink {
  var refoldObstacle: String? {
    guard self.sink.mode != .both else { return nil }
    return "a sink of mode both is needed: '\(self.name)' has mode \(self.sink.mode.rawValue), so "
      + "it does not have both history and current rows"
  }

  func refold(
    _ selection: RefoldSelection, of configuration: PipelineConfiguration,
    say: ([(label: String, value: String)]) throws -> Void, remark: (String) -> Void
  ) throws {
    try self.sink.explaining {
      try self.rebuild(selection, of: configuration, say: say, remark: remark)
    }
  }

  private func rebuild(
    _ selection: RefoldSelection, of configuration: PipelineConfiguration,
    say: ([(label: String, value: String)]) throws -> Void, remark: (String) -> Void
  ) throws {
    let connection = try PostgresConnection(self.sink.connection.prompt)
    let catalog = TableCatalog(self.sink, feeder: configuration.feeder(self))
    // Tables that are not what they were would be compared with a part of themselves.
    for finding in try connection.quickly({ try catalog.survey(over: connection) }) {
      guard let disposition = finding.disposition,
        selection.entity ?? finding.entity == finding.entity
      else { continue }
      throw PostgresError(disposition, finding.message)
    }
    for change in try catalog.restore(over: connection) {
      remark("sink '\(self.name)': \(change)")
    }
    let unfilled = try catalog.unfilledTables(over: connection)
    let all = try catalog.storedTables(over: connection)
    try connection.checkAnswers()
    let chosen = all.filter { selection.entity == nil || $0.entity == selection.entity }
    if let entity = selection.entity, chosen.isEmpty {
      let known = all.map(\.entity).joined(separator: ", ")
      throw RunFailure(
        .unknownEntity,
        "sink '\(self.name)' has no tables of \(entity)"
          + (known.isEmpty ? "; it has no tables yet" : "; it has those of \(known)"))
    }
    try say([("sink", self.name + (chosen.isEmpty ? ": no tables yet" : ""))])
    var checked = 0
    for tables in chosen {
      let refold = Refold(
        history: tables.history, current: tables.current, delete: self.sink.delete,
        visibilityWait: PostgresSinkConfiguration.Reads(
          visibilityWait: configuration.source.snapshot.visibilityWait
        ).visibilityWait)
      let counts =
        selection.records.isEmpty
        ? try refold.refoldAll(over: connection)
        : try refold.refoldAlone(records: selection.records, over: connection)
      if selection.records.isEmpty, unfilled.contains(tables) {
        try catalog.noteFilled(tables.current, over: connection)
      }
      checked += counts.checked
      try say(
        [
          (
            "entity",
            "\(tables.entity): \(Phrase.count(counts.checked, "record")) checked, "
              + "\(ProgressLine.grouped(Int64(counts.changed))) changed"
          )
        ])
    }
    let asked = Set(selection.records).count
    if checked < asked {
      remark(
        "sink '\(self.name)': \(asked - checked) of \(asked) records have no history; IDs are those "
          + "of column id, 18 characters")
    }
  }
}
