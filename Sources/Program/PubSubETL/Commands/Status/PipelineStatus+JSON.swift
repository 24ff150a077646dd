internal import Bytes
internal import Checkpoint
import JSON
import Pipeline

extension PipelineStatus {
  /// All members in a fixed order; what is not known is null. Times are UTC, ages milliseconds.
  var json: JSONValue {
    [
      "pipeline": .string(self.pipeline),
      "file": .string(self.file),
      "version": .string(Program.version),
      "time": Self.time(self.now),
      "healthy": .boolean(self.problems.isEmpty),
      "exit_code": .integer(self.exitCode),
      "problems": .array(
        self.problems.map { problem -> JSONValue in
          [
            "kind": .string(problem.kind), "exit_code": .integer(problem.exitCode),
            "message": .string(problem.message),
          ]
        }),
      "catching_up": self.catchingUp.map(self.json) ?? nil,
      "incidents": .array(self.incidents.map(self.json)),
      "running": self.lock.isHeld.map { .boolean($0) } ?? nil,
      "pid": self.lock.isHeld == true ? self.lock.processID.map { .integer($0) } ?? nil : nil,
      "waiting": .array(self.waiting.map(\.json)),
      "state_directory": .string(self.stateDirectory),
      "org": Self.text(self.org),
      "last_commit_at": Self.time(self.savedAt),
      "last_commit_age_ms": self.savedAt.map { .integer(self.now - $0) } ?? nil,
      "topics": .array(self.topics.map(self.json)),
      "sinks": .array(self.sinks.map(\.json)),
      "dead_letters": self.deadLetters.json,
      "last_run": self.lastRun.map(self.json) ?? nil,
    ]
  }

  /// The position of a topic as `status` and `checkpoint show` tell it.
  static func json(_ position: TopicPosition) -> JSONValue {
    [
      "epoch": .integer(position.epoch),
      "next_ordinal": .integer(position.nextOrdinal),
      "resume": Self.text(position.resume?.hex),
      "start": Self.text(position.start?.rawValue),
      "last_event": position.lastEvent.map { last -> JSONValue in
        [
          "replay_id": .string(last.replayID.hex),
          "event_id": .string(String(decoding: last.eventID, as: UTF8.self)),
        ]
      } ?? nil,
      "open_group": .boolean(position.hasOpenGroup),
      "confirmed_at": Self.time(position.confirmedAt),
      "complete_through": Self.time(position.completeThrough),
      "holes": .integer(position.holes),
    ]
  }

  private func json(_ catchingUp: CatchingUp) -> JSONValue {
    [
      "behind_ms": .integer(catchingUp.behind),
      "left_ms": catchingUp.left.map { .integer($0) } ?? nil,
      "exported_ms": .integer(catchingUp.exported), "took_ms": .integer(catchingUp.took),
    ]
  }

  private func json(_ incident: Incident) -> JSONValue {
    [
      "incident": .string(incident.kind.rawValue), "since": Self.time(incident.since),
      "until": Self.time(incident.until),
      "reason": .string(incident.finding.reason), "message": .string(incident.finding.message),
      "count": .integer(incident.count), "called": .boolean(incident.isCalled),
      "attempts": .integer(incident.attempts),
    ]
  }

  private func json(_ topic: Topic) -> JSONValue {
    let expiry = topic.position?.confirmedAt.map { $0 + Self.retention }
    return [
      "topic": .string(topic.name), "unused": .boolean(topic.isUnused),
      "position": topic.position.map(Self.json) ?? nil,
      "expires_at": Self.time(expiry),
      "expires_in_ms": expiry.map { .integer($0 - self.now) } ?? nil,
      "last_commit_timestamp": Self.text(topic.lastCommitTimestamp),
    ]
  }

  static func json(_ positions: [String: TopicPosition]) -> JSONValue {
    JSONValue(
      .object(
        positions.sorted { $0.key < $1.key }.map { topic, position in
          JSONMember(topic, Self.json(position))
        }))
  }

  private func json(_ run: LastRun) -> JSONValue {
    [
      "pid": .integer(run.processID),
      "started_at": .string(run.startedAt), "finished_at": .string(run.finishedAt),
      "exit_code": .integer(run.exitCode), "reason": .string(run.reason),
      "message": Self.text(run.message), "events": .integer(run.events),
      "schemas_fetched": run.schemasFetched.map { .integer($0) } ?? nil,
      "managed_replay_id": Self.text(run.managedReplayID),
      "attention": .array(run.attention.map { .string($0) }),
    ]
  }

  static func time(_ milliseconds: Int64?) -> JSONValue {
    milliseconds.map { .string(UTCTime.timestamp(milliseconds: $0)) } ?? nil
  }

  static func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? nil }
}
