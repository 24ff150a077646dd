import FoundationEssentials
import JSON
import Pipeline

@testable import PubSubETL

/// Counts the rows of each object, exactly once: the counts are part of the checkpoint.
final class CountsSink: CheckpointedSink {
  let name: String
  /// A copy of the counts for other programs. The checkpoint has the counts that matter.
  private let file: String
  /// Rows of all commits and of the open one.
  private var counts: [String: Int64] = [:]
  /// Rows of the commit that `flush` has closed; rows written since then are not in them.
  private var sealed: JSONValue = [:]

  init(name: String, file: String) {
    self.name = name
    self.file = file
  }

  func recover(from state: JSONValue?) throws {
    // The state comes from a file, so it is checked like any other input.
    for member in state?["counts"]?.members ?? [] {
      guard let count = member.value.integer, (0...1 << 53).contains(count) else {
        throw RunFailure(
          .damagedCheckpoint,
          "sink \(self.name): the checkpoint has no usable count for \(member.name); restore the "
            + "checkpoint from a copy")
      }
      self.counts[member.name] = count
    }
    self.sealed = self.state
    // An earlier run may have been killed between its checkpoint and its copy.
    if state != nil { try self.publish() }
  }

  func write(_ batch: RecordBatch) throws {
    for event in batch.events {
      self.counts[batch.layout.entity, default: 0] += Int64(event.rowCount)
    }
  }

  func flush(finish: Bool) throws -> JSONValue {
    self.sealed = self.state
    return self.sealed
  }

  func committed() throws -> Bool {
    try self.publish()
    return false
  }

  private var state: JSONValue {
    let counts = self.counts.sorted { $0.key < $1.key }
    let members = counts.map { JSONMember($0.key, .integer($0.value)) }
    return ["type": .string(CountsSettings.type), "counts": JSONValue(.object(members))]
  }

  private func publish() throws {
    let text = (self.sealed["counts"] ?? [:]).text() + "\n"
    do {
      try Data(text.utf8).write(to: URL(filePath: self.file), options: .atomic)
    } catch {
      throw RunFailure(
        .sinkIO, "sink \(self.name): \(self.file) cannot be written: \(error)")
    }
  }
}

/// `{"type": "counts", "file": "../out/counts.json"}`
struct CountsSettings: ConfiguredSink {
  static let type = "counts"
  static let schemaDescription = "Counts the rows of each object."

  var common = SinkKeys(name: CountsSettings.type)
  var file = ""

  // A mistake is reported with its place in the pipeline file.
  static var keys: [Key<Self>] {
    [
      .required(
        "file", \.file, .path, "File with the counts; relative to this file.",
        example: "../out/counts.json")
    ]
  }

  var place: String { self.file }
  var summary: String { "counts of rows in \(self.file)" }

  func open(_ context: SinkContext) -> CountsSink { CountsSink(name: self.name, file: self.file) }

  func status(_ reading: SinkStatusReading) -> SinkStatus {
    SinkStatus(
      name: self.name, summary: self.file,
      json: ["name": .string(self.name), "type": .string(Self.type)])
  }
}
