import JSON
import Pipeline

/// What `erase` has cleared, or would clear.
struct ErasureReport {
  struct Entry {
    var name: String
    var type: String
    var place: String
    /// The output in a few words, for people.
    var output: String
    var result: ErasureResult
  }

  var pipeline: String
  var entity: String
  var records: [RecordID]
  var isDryRun: Bool
  var entries: [Entry] = []
  var letterCount = 0
  var letterFaults: [String] = []

  var faults: [String] { self.entries.flatMap(\.result.faults) + self.letterFaults }

  private var verb: String { self.isDryRun ? "would be cleared" : "cleared" }

  var text: String {
    var lines = [
      (label: "object", value: "\(self.entity), \(Phrase.count(self.records.count, "record"))")
    ]
    for entry in self.entries {
      lines.append(("sink", "\(entry.name), \(entry.output)"))
      for part in entry.result.parts {
        let count = Phrase.count(part.count, entry.result.unit)
        lines.append(("", "\(part.name): \(count) \(self.verb)"))
      }
      if entry.result.parts.isEmpty, entry.result.faults.isEmpty {
        lines.append(("", "nothing to clear"))
      }
    }
    if self.letterCount > 0 {
      let count = Phrase.count(self.letterCount, "payload")
      lines.append(("dead letters", "\(count) \(self.verb)"))
    }
    return PipelineStatus.text(lines)
  }

  /// All members are always present.
  var json: JSONValue {
    [
      "pipeline": .string(self.pipeline), "entity": .string(self.entity),
      "record_ids": .array(self.records.map { .string($0.description) }),
      "dry_run": .boolean(self.isDryRun),
      "sinks": .array(
        self.entries.map { entry -> JSONValue in
          [
            "sink": .string(entry.name), "type": .string(entry.type),
            "place": .string(entry.place), "unit": .string(entry.result.unit),
            "cleared": .array(
              entry.result.parts.map { ["name": .string($0.name), "count": .integer($0.count)] }),
            "faults": .array(entry.result.faults.map { .string($0) }),
          ]
        }),
      "dead_letters": [
        "cleared": .integer(self.letterCount),
        "faults": .array(self.letterFaults.map { .string($0) }),
      ],
    ]
  }
}
