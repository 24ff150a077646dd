internal import Bytes
package import Clocks
package import Cryptography
internal import DurableFiles
package import JSON
package import Pipeline

/// Dead letters as zstd NDJSON files, by the same protocol as the files of a sink.
///
/// `<directory>/export_date=2026-02-17/opps-OpportunityChangeEvent-e1-000000000042.dead.ndjson.zst`
/// with a manifest next to it. One line per letter: `topic`, `replay_id` (hexadecimal), `event_id`,
/// `schema_id`, `epoch`, `ordinal`, `time`, `kind` (`undecodable`, `unprocessable`, `refused`),
/// `reason`, `field_path`, `offset`, `sink`, `column`, `sqlstate`, `other_sinks` if several sinks
/// refused it, and `payload` (base64, or null if payloads are not kept) or `sealed` (base64 of
/// nonce, ciphertext and tag) with `key_id`. Members that do not apply are null. The row position
/// is the event's, so the line identifies the place in the stream that the sinks lack.
///
/// A retry is part of the commit that has the letter's rows: the state names the letter until it is
/// in the `DeadLetterLedger`.
package final class DeadLetterFile: DeadLetterStore {
  /// How much of the event a letter keeps.
  package enum Payload: Sendable, Equatable {
    case full
    /// The payload, encrypted for the holders of the key.
    case sealed(SealingKey)
    /// Only position and reason, from which the event cannot be restored.
    case none
  }

  /// Letters taken since the start of the run.
  package private(set) var count = 0

  /// Losses of earlier letters that `recover` accepted, as text.
  package private(set) var acceptedFaults: [String] = []

  /// Receives lost letters before they are noted as dropped. If it throws, they stay lost.
  package var onDrop: ([LostLetters]) throws -> Void = { _ in }

  /// Payloads of letters do not name these records; a letter about no other record has none.
  package var erased = ErasedRecords()

  private let store: SegmentStore
  private let directory: String
  private let pipeline: String
  private let org: String
  private let fileSystem: any FileSystem
  /// Nil until somebody asks for it.
  private var known: WaitingLetters?
  /// The state that the last `flush` returned, or with which the run began.
  private var state: JSONValue?
  /// Letters whose rows are in the next commit, and those of the previous commit that still have to
  /// be noted in the ledger.
  private var retried: [DeadLetterLedger.Key] = []
  private var announced: [DeadLetterLedger.Key] = []
  /// Read once: the run has the lock, so nobody else writes to it.
  private var ledger: DeadLetterLedger?
  private let payload: Payload
  private let acceptsMissing: Bool
  private let clock: SinkClock

  /// - Parameters:
  ///   - directory: absolute path; created if missing.
  ///   - pipeline: the pipeline's name, part of file names.
  ///   - org: ID of the org, kept in the manifest.
  ///   - acceptsMissing: continues without missing or changed letters (`--accept-missing`).
  package convenience init(
    directory: String, pipeline: String, org: String, payload: Payload = .full,
    acceptsMissing: Bool = false, clock: ProcessClock = ProcessClock()
  ) {
    self.init(
      directory: directory, pipeline: pipeline, org: org, payload: payload,
      acceptsMissing: acceptsMissing,
      fileSystem: SystemFileSystem(), clock: SinkClock(clock))
  }

  init(
    directory: String, pipeline: String, org: String, payload: Payload = .full,
    acceptsMissing: Bool = false,
    fileSystem: any FileSystem, clock: SinkClock
  ) {
    self.directory = directory
    self.pipeline = pipeline
    self.org = org
    self.fileSystem = fileSystem
    self.payload = payload
    self.acceptsMissing = acceptsMissing
    self.clock = clock
    self.store = SegmentStore(
      directory: directory, kind: .deadLetters,
      identity: SegmentIdentity(pipeline: pipeline, org: org), level: 3,
      rotation: FileSinkConfiguration.Rotation(), fileSystem: fileSystem,
      finished: FinishedDirectory(directory, isGuarded: false, on: fileSystem), clock: clock)
  }

  package var finishedFileCount: Int { self.store.finishedFileCount }

  /// Like `FileSink.recover`, except that earlier letters without a checkpoint are not an error:
  /// whether state was lost is decided by the sinks' manifests.
  package func recover(from state: JSONValue?) throws {
    let survey = try self.store.survey(
      from: state, whenMissing: state == nil ? nil : .fail, acceptsMissing: self.acceptsMissing)
    self.acceptedFaults = survey.acceptedFaults
    if !survey.lostLetters.isEmpty {
      try self.onDrop(survey.lostLetters)
      var ledger = try self.readLedger()
      try ledger.drop(survey.lostLetters, now: self.clock.utcMilliseconds())
    }
    try self.store.recover(survey)
    self.state = state
    try self.note(DeadLetterLedger.Key.retried(in: state))
  }

  private func readLedger() throws(FileSinkError) -> DeadLetterLedger {
    try DeadLetterLedger(
      directory: self.directory, pipeline: self.pipeline, fileSystem: self.fileSystem)
  }

  /// Reads the letters of earlier runs when it is called first, unless all were retried or dropped.
  /// If a file of letters was changed or cannot be read, all its letters are waiting, whatever is
  /// read later.
  package func waiting() -> WaitingLetters {
    if let known { return known }
    let waiting = (try? self.readWaiting()) ?? WaitingLetters()
    self.known = waiting
    return waiting
  }

  private func readWaiting() throws -> WaitingLetters {
    var waiting = WaitingLetters()
    // Without it, no letter is known to be settled.
    let ledger = try? self.readLedger()
    var count: Int64 = 0
    try ExportedFile.visit(.deadLetters, in: self.directory, pipeline: self.pipeline) {
      count += $0.events
    }
    let isOpen = self.state?["files"]?.array?.isEmpty == false
    guard isOpen || count > ledger?.outcomes.count ?? 0 else { return waiting }
    let archive = DeadLetterArchive(
      directory: self.directory, pipeline: self.pipeline, org: self.org)
    let damaged = try archive.visit(openFiles: self.state) { letter in
      guard ledger?[letter] == nil else { return }
      waiting.add(letter.letter, at: Self.time(of: letter))
    }
    for file in damaged.compactMap(\.exported) where ledger?.lostFiles[file.name] == nil {
      let letter = DeadLetter(
        topic: file.topic, replayID: ReplayID([]), eventID: "", schemaID: "", payload: [],
        reason: "", epoch: file.epoch, ordinal: file.firstOrdinal)
      for _ in 0..<file.events { waiting.add(letter, at: .max) }
    }
    return waiting
  }

  private static func time(of letter: StoredDeadLetter) -> Int64 {
    ObjectFreshness.milliseconds(of: letter.time) ?? .max
  }

  /// Notes that the open commit has the rows of letters that were read from the archive.
  package func noteRetried(_ letters: [StoredDeadLetter]) {
    self.retried += letters.map(DeadLetterLedger.Key.init)
    for letter in letters { self.known?.remove(letter.letter, at: Self.time(of: letter)) }
  }

  private func note(_ keys: [DeadLetterLedger.Key]) throws {
    guard !keys.isEmpty else { return }
    var ledger = try self.ledger ?? self.readLedger()
    // Not copied when it changes, and read again after a failure.
    self.ledger = nil
    try ledger.note(.retried, keys, now: self.clock.utcMilliseconds())
    self.ledger = ledger
  }

  package func append(_ letter: DeadLetter) throws {
    let now = self.clock.utcMilliseconds()
    let writer = try self.store.writer(
      for: SegmentKey(
        topic: letter.topic, entity: "", day: UTCTime.day(ofMilliseconds: now), isExportDate: true),
      epoch: letter.epoch, ordinal: letter.ordinal, now: self.clock.monotonic())
    self.write(letter, time: now, to: &self.store.piece.lines)
    try self.store.endLines(of: writer)
    writer.summary.count(lines: 1, ordinal: letter.ordinal, commitTimestamp: nil)
    letter.replayID.bytes.withUnsafeBufferPointer { replayID in
      writer.summary.note(
        schemaID: letter.schemaID, firstReplayID: replayID, lastReplayID: replayID)
    }
    self.known?.add(letter, at: now)
    self.count += 1
    if self.store.isFull(writer) { try self.store.seal(writer) }
  }

  package func flush(finish: Bool) throws -> JSONValue {
    let state = try self.store.flush(finish: finish)
    self.state = state
    (self.announced, self.retried) = (self.retried, [])
    guard !self.announced.isEmpty, let members = state.members else { return state }
    let keys = JSONValue(.array(self.announced.map(\.json)))
    return JSONValue(.object(members + [JSONMember(DeadLetterLedger.Key.retriedMember, keys)]))
  }

  package func committed() throws -> Bool {
    let hasFinished = try self.store.committed()
    guard !self.announced.isEmpty else { return hasFinished }
    try self.note(self.announced)
    self.announced.removeAll()
    return true
  }

  package var isDue: Bool { self.store.isDue }

  package var pendingByteCount: Int { self.store.pendingByteCount }

  private func write(_ letter: DeadLetter, time: Int64, to line: inout ByteBuffer) {
    var head: JSONValue = [
      "topic": .string(letter.topic),
      "replay_id": .string(letter.replayID.hex),
      "event_id": .string(letter.eventID),
      "schema_id": .string(letter.schemaID),
      "epoch": .integer(letter.epoch),
      "ordinal": .integer(letter.ordinal),
      "time": .string(UTCTime.timestamp(milliseconds: time)),
      "kind": .string(letter.kind),
      "reason": .string(letter.reason),
      "field_path": letter.fieldPath.map { .string($0) } ?? nil,
      "offset": letter.byteOffset.map { .integer($0) } ?? nil,
      "sink": letter.refusal.map { .string($0.sink) } ?? nil,
      "column": letter.refusal?.column.map { .string($0) } ?? nil,
      "sqlstate": letter.refusal?.sqlState.map { .string($0) } ?? nil,
    ]
    if let others = letter.refusal?.otherSinks, !others.isEmpty {
      head = JSONValue(
        .object(
          (head.members ?? []) + [
            JSONMember("other_sinks", .array(others.map { .string($0) }))
          ]))
    }
    head.write(to: &line)
    line.truncate(to: line.count - 1)
    var (letter, kept) = (letter, self.payload)
    switch self.erased.remainder(of: letter.payload, topic: letter.topic) {
    case .all: break
    case .others(let payload): letter.payload = payload
    case .nothing: kept = .none
    }
    switch kept {
    case .none:
      line.append(utf8: ",\"payload\":null}\n" as StaticString)
    case .full:
      line.append(utf8: ",\"payload\":\"" as StaticString)
      letter.payload.withUnsafeBufferPointer { line.appendBase64($0) }
      line.append(utf8: "\"}\n" as StaticString)
    case .sealed(let key):
      let sealed = SealedPayload(letter, key: key)
      line.append(utf8: ",\"sealed\":\"" as StaticString)
      sealed.bytes.withUnsafeBufferPointer { line.appendBase64($0) }
      line.append(utf8: "\",\"key_id\":\"")
      line.append(utf8: sealed.keyID)
      line.append(utf8: "\"}\n" as StaticString)
    }
  }
}
