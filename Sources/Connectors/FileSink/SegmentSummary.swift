internal import Bytes
internal import JSON
internal import Pipeline

/// The manifest's description of a file's content, collected while events are written.
struct SegmentSummary {
  let topic: String
  /// nil for dead letters.
  let entity: String?
  let epoch: Int
  let firstOrdinal: Int64
  private(set) var lastOrdinal: Int64
  /// The pass of records that were read, whose commit times are stamps; nil for events.
  let pass: SegmentKey.Pass?
  /// The events come from dead letters, so they are not in the order in which files are finished.
  let isRedriven: Bool
  private(set) var eventCount = 0
  private(set) var lineCount = 0
  private(set) var schemaIDs: [String] = []
  private(set) var firstReplayID: [UInt8]?
  private(set) var lastReplayID: [UInt8] = []
  /// Where the stream stood after the last event; nil for dead letters.
  var tail = StreamTail()
  private var oldestCommit = Int64.max
  private var newestCommit = Int64.min

  init(
    topic: String, entity: String?, epoch: Int, firstOrdinal: Int64, pass: SegmentKey.Pass? = nil,
    isRedriven: Bool = false
  ) {
    self.isRedriven = isRedriven
    self.topic = topic
    self.entity = entity
    self.epoch = epoch
    self.firstOrdinal = firstOrdinal
    self.lastOrdinal = firstOrdinal
    self.pass = pass
  }

  /// The content of a file that an earlier run left open, as its last commit describes it.
  ///
  /// - Throws: `FileSinkError.inconsistent` if its line lacks a member of files of events.
  init(continuing record: SegmentRecord) throws(FileSinkError) {
    let line = record.manifest
    func count(_ key: String) -> Int64? {
      line[key]?.integer.flatMap { ExportedFile.counts.contains($0) ? $0 : nil }
    }
    func time(_ key: String) -> Int64? {
      line[key]?.string.flatMap(ObjectFreshness.milliseconds(of:))
    }
    guard let topic = line["topic"]?.string, let entity = line["entity"]?.string,
      let epoch = count("epoch"), let firstOrdinal = count("first_ordinal"),
      let lastOrdinal = count("last_ordinal"), let events = count("events"),
      let lines = count("lines"), let schemaIDs = line["schema_ids"]?.array,
      let first = line["first_replay_id"]?.string.flatMap({ ReplayID(hex: $0) }),
      let last = line["last_replay_id"]?.string.flatMap({ ReplayID(hex: $0) })
    else { throw SegmentRecord.damaged }
    self.init(topic: topic, entity: entity, epoch: Int(epoch), firstOrdinal: firstOrdinal)
    self.lastOrdinal = lastOrdinal
    self.eventCount = Int(events)
    self.lineCount = Int(lines)
    self.schemaIDs = schemaIDs.compactMap(\.string)
    self.firstReplayID = first.bytes
    self.lastReplayID = last.bytes
    if let oldest = time("first_commit_timestamp"), let newest = time("last_commit_timestamp") {
      (self.oldestCommit, self.newestCommit) = (oldest, newest)
    }
  }

  /// Counts one event; called for each.
  @inline(__always)
  mutating func count(lines: Int, ordinal: Int64, commitTimestamp: Int64?) {
    self.eventCount += 1
    self.lineCount += lines
    self.lastOrdinal = ordinal
    if let commitTimestamp {
      self.oldestCommit = min(self.oldestCommit, commitTimestamp)
      self.newestCommit = max(self.newestCommit, commitTimestamp)
    }
  }

  /// Counts those events of a batch that have rows.
  mutating func count(_ events: ArraySlice<RecordBatch.Event>) {
    for event in events where event.rowCount > 0 {
      self.count(
        lines: event.rowCount, ordinal: event.ordinal, commitTimestamp: event.commitTimestamp)
    }
  }

  /// Called for each run of events of one batch.
  mutating func note(
    schemaID: String, firstReplayID: UnsafeBufferPointer<UInt8>,
    lastReplayID: UnsafeBufferPointer<UInt8>
  ) {
    self.note(schemaID: schemaID)
    if self.firstReplayID == nil { self.firstReplayID = Array(firstReplayID) }
    self.lastReplayID.replaceAll(with: lastReplayID)
  }

  mutating func note(schemaID: String) {
    guard self.schemaIDs.last != schemaID, !self.schemaIDs.contains(schemaID) else { return }
    self.schemaIDs.append(schemaID)
  }

  /// The line of the manifest (LinesAndColumns.md#manifest). It names the writer of the file, so
  /// that a lost checkpoint is noticed and can be restored.
  func manifest(
    name: SegmentName, identity: SegmentIdentity, byteCount: Int, uncompressedByteCount: Int,
    sha256: String
  ) -> JSONValue {
    func time(_ milliseconds: Int64) -> JSONValue {
      self.newestCommit >= self.oldestCommit
        ? .string(UTCTime.timestamp(milliseconds: milliseconds)) : nil
    }
    func event(_ value: JSONValue) -> JSONValue { self.pass == nil ? value : nil }
    let line: JSONValue = [
      "name": .string(name.path),
      "pipeline": .string(identity.pipeline),
      "org": .string(identity.org),
      "topic": .string(self.topic),
      "entity": self.entity.map { .string($0) } ?? nil,
      "events": .integer(self.pass == nil ? self.eventCount : 0),
      "lines": .integer(self.lineCount),
      "bytes": .integer(byteCount),
      "uncompressed_bytes": .integer(uncompressedByteCount),
      "first_replay_id": event(.string(ReplayID(self.firstReplayID ?? []).hex)),
      "last_replay_id": event(.string(ReplayID(self.lastReplayID).hex)),
      "epoch": .integer(self.epoch),
      "first_ordinal": .integer(self.firstOrdinal),
      "last_ordinal": event(.integer(self.lastOrdinal)),
      "schema_ids": .array(self.schemaIDs.map { .string($0) }),
      "first_commit_timestamp": event(time(self.oldestCommit)),
      "last_commit_timestamp": event(time(self.newestCommit)),
      "sha256": .string(sha256),
      "replaces": [],
      "resume": self.isRedriven ? nil : event(self.tail.json),
    ]
    if self.isRedriven, let members = line.members {
      return JSONValue(.object(members + [JSONMember("redriven", true)]))
    }
    guard let pass, let members = line.members else { return line }
    let snapshot: JSONValue = [
      "pass": .integer(pass.number), "request": .integer(pass.request),
      "first_system_modstamp": time(self.oldestCommit),
      "last_system_modstamp": time(self.newestCommit),
    ]
    return JSONValue(.object(members + [JSONMember("snapshot", snapshot)]))
  }
}

/// The writer of files, which distinguishes a pipeline's files from those of others.
struct SegmentIdentity: Equatable {
  var pipeline: String
  var org: String
}
