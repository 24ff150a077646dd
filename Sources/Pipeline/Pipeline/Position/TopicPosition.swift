package import JSON

/// The stored position of one topic: the checkpoint's form of a `StreamCursor`.
package struct TopicPosition: Sendable, Equatable {
  package struct LastEvent: Sendable, Equatable {
    package var replayID: ReplayID
    /// Empty if unknown.
    package var eventID: [UInt8]

    package init(replayID: ReplayID, eventID: [UInt8]) {
      self.replayID = replayID
      self.eventID = eventID
    }
  }

  /// Counts, from 1, the stream starts that did not continue our own position.
  package var epoch: Int
  /// The next event's place in the epoch.
  package var nextOrdinal: Int64
  /// Closed ID to resume from; nil when only an open group has been seen.
  package var resume: ReplayID?
  package var lastEvent: LastEvent?
  package var openGroup: StreamCursor.Group?
  package var recent = RecentEvents()
  /// Milliseconds since 1970 of the last event or keepalive of a running stream.
  package var confirmedAt: Int64?
  /// Every change committed before this time has been taken; milliseconds since 1970, nil if
  /// unknown.
  package var completeThrough: Int64?
  /// The newest commit time of the epoch's changes up to this position, in milliseconds since 1970;
  /// nil before the first change, and in positions of earlier versions.
  package var newestCommit: Int64?

  /// The number of epochs that began because the stored replay ID was unusable, so events may be
  /// missing before them.
  package var holes = 0
  /// Where this epoch's stream starts while it has no position; nil for the start in the pipeline
  /// file.
  package var start: Start?
  /// The replay ID of the epoch's first event; nil before it.
  package var first: ReplayID?
  /// The stages' memory of the events before this position.
  package var memory: StageMemory = [:]

  /// A start set by the user.
  package enum Start: String, Sendable, CaseIterable { case earliest, latest }

  /// False for an epoch that has only begun; the pipeline file decides where it starts.
  package var isResumable: Bool {
    self.resume != nil || self.openGroup != nil || self.start != nil
  }
  /// Whether nothing has been stored for the topic.
  package var isUntouched: Bool { self == TopicPosition(beginningEpoch: 1) }
  /// Events with the last replay ID have been taken, and more of them may follow.
  package var hasOpenGroup: Bool { self.openGroup != nil }
}

extension TopicPosition {
  /// The start of an epoch after others whose files are kept.
  ///
  /// - Parameters:
  ///   - resume: a closed ID to resume after.
  ///   - start: where to begin without such an ID; nil for the start in the pipeline file.
  ///   - holes: the number of holes in earlier epochs.
  package init(
    beginningEpoch epoch: Int, after resume: ReplayID? = nil, start: Start? = nil, holes: Int = 0
  ) {
    self.init(
      epoch: epoch, nextOrdinal: 0, resume: resume, holes: holes, start: start)
  }

  /// A position restored from files, which hold everything before `nextOrdinal`.
  ///
  /// - Parameters:
  ///   - resume: a closed ID.
  ///   - group: the (event ID, record IDs) that the files hold after it, all with the ID of
  ///     `lastEvent`.
  package init(
    restoring epoch: Int, nextOrdinal: Int64, resume: ReplayID, lastEvent: LastEvent,
    group: [StreamCursor.RowKey] = []
  ) {
    self.init(
      epoch: epoch, nextOrdinal: nextOrdinal, resume: resume, lastEvent: lastEvent,
      openGroup: group.isEmpty
        ? nil : StreamCursor.Group(replayID: lastEvent.replayID.bytes, rows: group))
  }
}

/// A damaged checkpoint. Nothing is guessed; the run stops.
package struct TopicPositionError: Error, Sendable, CustomStringConvertible {
  package var description: String
}

extension TopicPosition {
  package var json: JSONValue {
    var members: [JSONMember] = [
      JSONMember("epoch", .integer(self.epoch)),
      JSONMember("next_ordinal", .integer(self.nextOrdinal)),
      JSONMember("resume", self.resume.map { .string($0.hex) } ?? nil),
    ]
    if let last = self.lastEvent {
      members.append(
        JSONMember(
          "last_event",
          ["replay_id": .string(last.replayID.hex), "event_id": .string(last.eventID.text)]))
    }
    if let group = self.openGroup {
      let rows = group.rows.map { row -> JSONValue in
        ["event_id": .string(row.eventID.text), "record_ids": .string(row.recordIDs.text)]
      }
      members.append(
        JSONMember(
          "open_group",
          ["replay_id": .string(ReplayID(group.replayID).hex), "durable": .array(rows)]))
    }
    members.append(JSONMember("recent", .string(self.recent.text)))
    if let confirmed = self.confirmedAt {
      members.append(JSONMember("confirmed_at_ms", .integer(confirmed)))
    }
    if let through = self.completeThrough {
      members.append(JSONMember("complete_through_ms", .integer(through)))
    }
    if let newest = self.newestCommit {
      members.append(JSONMember("newest_commit_ms", .integer(newest)))
    }
    if self.holes > 0 { members.append(JSONMember("holes", .integer(self.holes))) }
    if let start { members.append(JSONMember("start", .string(start.rawValue))) }
    if let first { members.append(JSONMember("first", .string(first.hex))) }
    if !self.memory.isEmpty {
      let stages = self.memory.sorted { $0.key < $1.key }.map { JSONMember($0.key, $0.value) }
      members.append(JSONMember("stages", JSONValue(.object(stages))))
    }
    return JSONValue(.object(members))
  }

  /// No run reaches these values, and file names, with 18 digits, leave room beyond them.
  package static let maxEpoch: Int64 = 1_000_000_000
  package static let maxOrdinal: Int64 = 100_000_000_000_000_000
  private static let maxHoles: Int64 = 1_000_000_000

  /// - Throws: `TopicPositionError` naming the missing or wrong member.
  package init(json: JSONValue, topic: String) throws {
    func wrong(_ member: String) -> TopicPositionError {
      TopicPositionError(description: "position of \(topic): '\(member)' is missing or wrong")
    }
    func replayID(_ value: JSONValue?, _ member: String) throws -> ReplayID {
      guard let text = value?.string, let id = ReplayID(hex: text) else { throw wrong(member) }
      return id
    }
    guard let epoch = json["epoch"]?.integer, (1...Self.maxEpoch).contains(epoch) else {
      throw wrong("epoch")
    }
    guard let ordinal = json["next_ordinal"]?.integer, (0...Self.maxOrdinal).contains(ordinal)
    else { throw wrong("next_ordinal") }
    self.epoch = Int(epoch)
    self.nextOrdinal = ordinal
    if let resume = json["resume"], resume != nil {
      self.resume = try replayID(resume, "resume")
    }
    if let last = json["last_event"] {
      guard let eventID = last["event_id"]?.string else { throw wrong("last_event.event_id") }
      self.lastEvent = LastEvent(
        replayID: try replayID(last["replay_id"], "last_event.replay_id"),
        eventID: Array(eventID.utf8))
    }
    if let group = json["open_group"] {
      guard let durable = group["durable"]?.array else { throw wrong("open_group.durable") }
      let rows = try durable.map { row in
        guard let event = row["event_id"]?.string, let records = row["record_ids"]?.string else {
          throw wrong("open_group.durable")
        }
        return StreamCursor.RowKey(eventID: Array(event.utf8), recordIDs: Array(records.utf8))
      }
      self.openGroup = StreamCursor.Group(
        replayID: try replayID(group["replay_id"], "open_group.replay_id").bytes, rows: rows)
    }
    // If events were taken in this epoch, there is a closed ID or an open group.
    if self.nextOrdinal > 0, self.resume == nil, self.openGroup == nil { throw wrong("resume") }
    if let text = json["recent"]?.string {
      guard let recent = RecentEvents(text: text) else { throw wrong("recent") }
      self.recent = recent
    } else {
      // Earlier versions stored both IDs.
      guard let events = (json["recent"] ?? []).array else { throw wrong("recent") }
      for pair in events {
        guard let pair = pair.array, pair.count == 2, let event = pair[1].string else {
          throw wrong("recent")
        }
        let eventID = Array(event.utf8)
        try replayID(pair[0], "recent").bytes.withUnsafeBufferPointer { replayID in
          eventID.withUnsafeBufferPointer {
            self.recent.append(replayID: replayID, eventID: $0)
          }
        }
      }
    }
    // Times outside the calendar prove nothing; in an older checkpoint they may come from an event.
    self.confirmedAt = json["confirmed_at_ms"]?.calendarTime
    self.completeThrough = json["complete_through_ms"]?.calendarTime
    self.newestCommit = json["newest_commit_ms"]?.calendarTime
    if let holes = json["holes"] {
      guard let count = holes.integer, (0...Self.maxHoles).contains(count) else {
        throw wrong("holes")
      }
      self.holes = Int(count)
    }
    if let start = json["start"] {
      guard let start = start.string.flatMap(Start.init) else { throw wrong("start") }
      self.start = start
    }
    if let first = json["first"] { self.first = try replayID(first, "first") }
    if let stages = json["stages"] {
      guard let members = stages.members else { throw wrong("stages") }
      self.memory = Dictionary(members.map { ($0.name, $0.value) }) { _, last in last }
    }
  }
}

extension [UInt8] {
  fileprivate var text: String { String(decoding: self, as: UTF8.self) }
}

extension JSONValue {
  /// Milliseconds since 1970; nil outside the calendar's range.
  package var calendarTime: Int64? {
    self.integer.flatMap { CommitTime.range.contains($0) ? $0 : nil }
  }
}
