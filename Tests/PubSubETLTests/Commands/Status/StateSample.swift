import Checkpoint
import DurableFiles
import JSON
import Pipeline

@testable import PubSubETL

/// A pipeline with a state directory and manifests as runs leave them.
struct StateSample {
  static let org = "00DDp00002GtEJWMA3"
  static let topic = "/data/OpportunityChangeEvent"
  static let channel = "/data/ChangeEvents"

  let sample: SamplePipeline
  let configuration: PipelineConfiguration

  init(_ text: String = SamplePipeline.minimal, sets: [String] = []) throws {
    self.sample = try SamplePipeline()
    self.configuration = try self.sample.load(text, sets: sets)
  }

  var paths: StatePaths { self.configuration.statePaths }
  var output: String { "\(self.sample.base)/out" }

  func position(
    epoch: Int = 1, ordinal: Int64 = 10, resume: String = "00aa", confirmedAt: Int64,
    completeThrough: Int64? = nil
  ) throws -> JSONValue {
    var members = [
      JSONMember("epoch", .integer(epoch)), JSONMember("next_ordinal", .integer(ordinal)),
      JSONMember("resume", .string(resume)),
      JSONMember("last_event", ["replay_id": .string(resume), "event_id": "e9"]),
      JSONMember("recent", ""), JSONMember("confirmed_at_ms", .integer(confirmedAt)),
    ]
    if let completeThrough {
      members.append(JSONMember("complete_through_ms", .integer(completeThrough)))
    }
    return JSONValue(.object(members))
  }

  /// Stores a checkpoint as a run does, and gives the lock back.
  func store(
    _ topics: [String: JSONValue], sinks: [String: JSONValue] = ["files": ["files": []]]
  ) throws {
    var positions: [String: TopicPosition] = [:]
    for (topic, json) in topics { positions[topic] = try TopicPosition(json: json, topic: topic) }
    let store = try FileCheckpointStore(directory: self.paths.directory, pipeline: "opps")
    try store.save(
      CheckpointDocument(
        pipeline: "opps", org: Self.org, topics: positions,
        sinks: sinks.mapValues { SinkState($0) }))
  }

  func report(_ code: ExitCode, reason: String = "caught_up", at time: Int64) -> RunReport {
    RunReport(
      pipeline: "opps", file: self.configuration.file, startedAt: time - 1000, finishedAt: time,
      exitCode: code, reason: reason)
  }

  func write(_ text: String, to path: String) throws {
    let fileSystem = SystemFileSystem()
    try fileSystem.makeDirectories(fileSystem.parent(of: path))
    let file = try OpenFile(path, [.write, .create, .truncate], on: fileSystem)
    try file.write(Array(text.utf8))
  }

  func read(_ path: String) throws -> String {
    String(decoding: try TextFile.read(path), as: UTF8.self)
  }

  /// A line of the manifest.
  static func line(
    _ ordinals: ClosedRange<Int64>, events: Int64? = nil, topic: String = Self.topic,
    entity: String = "Opportunity", epoch: Int = 1, replayIDs: (String, String) = ("00a0", "00aa"),
    committed: String? = "2026-02-17T04:03:15.000Z", resume: JSONValue? = nil,
    isDeadLetter: Bool = false
  ) -> String {
    let name = topic.split(separator: "/").last ?? ""
    let digits = String(ordinals.lowerBound)
    let stem =
      "opps-\(name)-e\(epoch)-" + String(repeating: "0", count: 12 - digits.count) + digits
    var members = [
      JSONMember(
        "name",
        .string(
          isDeadLetter
            ? "export_date=2026-02-17/\(stem).dead.ndjson.zst"
            : "\(entity)/commit_date=2026-02-17/\(stem).ndjson.zst")),
      JSONMember("pipeline", "opps"), JSONMember("org", .string(Self.org)),
      JSONMember("topic", .string(topic)), JSONMember("entity", .string(entity)),
      JSONMember("events", .integer(events ?? ordinals.upperBound - ordinals.lowerBound + 1)),
      JSONMember("bytes", 100),
      JSONMember("first_replay_id", .string(replayIDs.0)),
      JSONMember("last_replay_id", .string(replayIDs.1)),
      JSONMember("epoch", .integer(epoch)),
      JSONMember("first_ordinal", .integer(ordinals.lowerBound)),
      JSONMember("last_ordinal", .integer(ordinals.upperBound)),
      JSONMember("last_commit_timestamp", committed.map { .string($0) } ?? nil),
    ]
    if let resume { members.append(JSONMember("resume", resume)) }
    return JSONValue(.object(members)).text() + "\n"
  }
}
