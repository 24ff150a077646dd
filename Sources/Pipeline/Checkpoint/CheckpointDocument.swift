internal import Bytes
package import JSON
package import Pipeline

/// Everything that a run needs to resume where the last one ended: the content of a checkpoint
/// file.
package struct CheckpointDocument: Sendable, Equatable {
  /// The version of the format that is written. Positions of version 1 have the IDs of recent events
  /// and not their hashes.
  package static let version: Int64 = 2

  /// Name of the pipeline.
  package var pipeline: String
  /// ID of the org the positions belong to.
  package var org: String
  /// The org's instance URL at the login of the run that stored it; nil when it is not known.
  package var instance: String?
  /// Position per topic.
  package var topics: [String: TopicPosition]
  /// State per sink, by the sink's name.
  package var sinks: [String: SinkState]
  /// Sinks that the pipeline file has lost, by name.
  package var removedSinks: [String: RemovedSink]
  /// State of the dead-letter file; nil when there is none.
  package var deadLetters: SinkState?
  /// Columns that stages name and a schema has had, by stage: later runs know that these names were
  /// right when a field was deleted.
  package var matchedColumns: [String: Set<String>] = [:]
  /// When it was stored, in milliseconds since 1970; set by `FileCheckpointStore.save`.
  package var savedAt: Int64

  package init(
    pipeline: String, org: String, topics: [String: TopicPosition] = [:],
    sinks: [String: SinkState] = [:], removedSinks: [String: RemovedSink] = [:],
    deadLetters: SinkState? = nil, savedAt: Int64 = 0
  ) {
    self.pipeline = pipeline
    self.org = org
    self.topics = topics
    self.sinks = sinks
    self.removedSinks = removedSinks
    self.deadLetters = deadLetters
    self.savedAt = savedAt
  }
}

extension CheckpointDocument {
  /// The document as JSON: members in a fixed order, topics and sinks sorted by name.
  package var json: JSONValue {
    func object(_ values: [String: JSONValue]) -> JSONValue {
      JSONValue(.object(values.sorted { $0.key < $1.key }.map { JSONMember($0.key, $0.value) }))
    }
    var members = [
      JSONMember("version", .integer(Self.version)),
      JSONMember("pipeline", .string(self.pipeline)),
      JSONMember("org", .string(self.org)),
    ]
    if let instance { members.append(JSONMember("instance", .string(instance))) }
    members += [
      JSONMember("saved_at", .string(UTCTime.timestamp(milliseconds: self.savedAt))),
      JSONMember("saved_at_ms", .integer(self.savedAt)),
      JSONMember("topics", TopicPosition.json(self.topics)),
      JSONMember("sinks", object(self.sinks.mapValues(\.json))),
    ]
    if !self.removedSinks.isEmpty {
      members.append(JSONMember("removed_sinks", object(self.removedSinks.mapValues(\.json))))
    }
    if let deadLetters { members.append(JSONMember("dead_letters", deadLetters.json)) }
    if !self.matchedColumns.isEmpty {
      let names = self.matchedColumns.mapValues { names in
        JSONValue(.array(names.sorted().map { JSONValue(.string($0)) }))
      }
      members.append(JSONMember("matched_columns", object(names)))
    }
    return JSONValue(.object(members))
  }

  /// - Throws: `CheckpointError.damaged`, naming the member that is missing or of another type.
  package init(json: JSONValue) throws(CheckpointError) {
    func member(_ name: String) throws(CheckpointError) -> JSONValue {
      guard let value = json[name] else {
        throw CheckpointError(.damaged, "'\(name)' is missing")
      }
      return value
    }
    func text(_ name: String) throws(CheckpointError) -> String {
      guard let text = try member(name).string else {
        throw CheckpointError(.damaged, "'\(name)' is not a string")
      }
      return text
    }
    func integer(_ name: String) throws(CheckpointError) -> Int64 {
      guard let number = try member(name).integer else {
        throw CheckpointError(.damaged, "'\(name)' is not an integer")
      }
      return number
    }
    func time(_ name: String) throws(CheckpointError) -> Int64 {
      guard let time = try member(name).calendarTime else {
        throw CheckpointError(.damaged, "'\(name)' is not a time")
      }
      return time
    }
    func table(_ name: String) throws(CheckpointError) -> [String: JSONValue] {
      guard let members = try member(name).members else {
        throw CheckpointError(.damaged, "'\(name)' is not an object")
      }
      return Dictionary(members.map { ($0.name, $0.value) }) { first, _ in first }
    }
    let version = try integer("version")
    guard (1...Self.version).contains(version) else {
      throw CheckpointError(
        .damaged,
        "its version is \(version), but this program reads versions up to \(Self.version); use "
          + "the newer program that wrote it")
    }
    self.init(
      pipeline: try text("pipeline"), org: try text("org"),
      topics: try TopicPosition.positions(json: member("topics"), member: "topics"),
      sinks: try table("sinks").mapValues { SinkState($0) },
      deadLetters: json["dead_letters"].map { SinkState($0) }, savedAt: try time("saved_at_ms"))
    self.instance = json["instance"]?.string
    if json["removed_sinks"] != nil {
      for (name, kept) in try table("removed_sinks") {
        self.removedSinks[name] = try RemovedSink(json: kept, name: name)
      }
    }
    for member in json["matched_columns"]?.members ?? [] {
      self.matchedColumns[member.name] = Set((member.value.array ?? []).compactMap(\.string))
    }
  }
}
