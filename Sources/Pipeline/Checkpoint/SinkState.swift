package import JSON
package import Pipeline

/// The checkpoint's state of a sink, with which the sink resumes where its last commit ended.
///
/// The members are the sink's own; those of files are also known here, since what becomes of the
/// output of a removed or renamed sink is decided without it.
package struct SinkState: Sendable, Equatable {
  /// The state as the sink has made it.
  package var json: JSONValue

  package init(_ json: JSONValue) { self.json = json }

  /// The state of a sink that has written nothing to its directory.
  package init(directory: String) {
    self.json = ["directory": .string(directory), "files": []]
  }

  /// Where the sink writes; nil for a sink without files.
  package var directory: String? { self.json["directory"]?.string }

  /// The number of files in progress.
  package var openFileCount: Int { self.json["files"]?.array?.count ?? 0 }
}

/// A sink that the pipeline file does not have any more: where it stopped.
package struct RemovedSink: Sendable, Equatable {
  /// Milliseconds since 1970.
  package var removedAt: Int64
  package var state: SinkState
  /// The positions that the pipeline had then, by topic.
  package var positions: [String: TopicPosition]

  package init(removedAt: Int64, state: SinkState, positions: [String: TopicPosition]) {
    self.removedAt = removedAt
    self.state = state
    self.positions = positions
  }
}

extension RemovedSink {
  var json: JSONValue {
    [
      "removed_at_ms": .integer(self.removedAt), "state": self.state.json,
      "positions": TopicPosition.json(self.positions),
    ]
  }

  /// - Throws: `CheckpointError.damaged`, naming what is missing or wrong.
  init(json: JSONValue, name: String) throws(CheckpointError) {
    guard let removedAt = json["removed_at_ms"]?.calendarTime, let state = json["state"],
      let positions = json["positions"]
    else { throw CheckpointError(.damaged, "'removed_sinks.\(name)' is incomplete") }
    self.init(
      removedAt: removedAt, state: SinkState(state),
      positions: try TopicPosition.positions(
        json: positions, member: "removed_sinks.\(name).positions"))
  }
}

extension TopicPosition {
  /// By topic, sorted.
  static func json(_ positions: [String: Self]) -> JSONValue {
    JSONValue(
      .object(positions.sorted { $0.key < $1.key }.map { JSONMember($0.key, $0.value.json) }))
  }

  /// - Throws: `CheckpointError.damaged`, naming what is missing or wrong.
  static func positions(
    json: JSONValue, member: String
  ) throws(CheckpointError) -> [String: Self] {
    guard let members = json.members else {
      throw CheckpointError(.damaged, "'\(member)' is not an object")
    }
    var positions: [String: Self] = [:]
    for member in members where positions[member.name] == nil {
      do {
        positions[member.name] = try Self(json: member.value, topic: member.name)
      } catch {
        throw CheckpointError(.damaged, "\(error)", cause: error)
      }
    }
    return positions
  }
}
