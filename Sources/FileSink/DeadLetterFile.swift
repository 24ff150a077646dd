internal import Bytes
internal import DurableFiles
public import JSON
public import Pipeline

/// Dead letters as zstd NDJSON files, by the same protocol as the files of a sink.
///
/// `<directory>/export_date=2026-02-17/opps-OpportunityChangeEvent-e1-000000000042.dead.ndjson.zst`
/// with a manifest beside. One line per letter: `topic`, `replay_id` (hexadecimal), `event_id`,
/// `schema_id`, `epoch`, `ordinal`, `time`, `reason`, `field_path`, `offset`, `payload` (base64).
/// The row position is the event's: the line says which place in the stream is not in the sinks.
public final class DeadLetterFile: DeadLetterStore {
  /// Letters taken since the start of the run.
  public private(set) var count = 0

  private let store: SegmentStore
  private let acceptsMissing: Bool
  private let clock: SinkClock
  private var line = ByteBuffer()

  /// - Parameters:
  ///   - directory: absolute path; made when missing.
  ///   - pipeline: the pipeline's name, part of file names.
  ///   - org: ID of the org, kept in the manifest.
  ///   - acceptsMissing: go on without letters in progress that are gone.
  public convenience init(
    directory: String, pipeline: String, org: String, acceptsMissing: Bool = false
  ) {
    self.init(
      directory: directory, pipeline: pipeline, org: org, acceptsMissing: acceptsMissing,
      fileSystem: SystemFileSystem(), clock: .system)
  }

  init(
    directory: String, pipeline: String, org: String, acceptsMissing: Bool = false,
    fileSystem: any FileSystem, clock: SinkClock
  ) {
    self.acceptsMissing = acceptsMissing
    self.clock = clock
    self.store = SegmentStore(
      directory: directory, kind: .deadLetters,
      identity: SegmentIdentity(pipeline: pipeline, org: org), level: 3,
      rotation: FileSinkConfiguration.Rotation(), fileSystem: fileSystem, clock: clock)
  }

  public var finishedFileCount: Int { self.store.finishedFileCount }

  /// As `FileSink.recover`, but earlier letters without a checkpoint are no error: what the sinks'
  /// manifests say decides whether state was lost.
  public func recover(from state: JSONValue?) throws {
    try self.store.recover(
      self.store.survey(from: state, acceptsMissing: self.acceptsMissing))
  }

  public func append(_ letter: DeadLetter) throws {
    let now = self.clock.utcMilliseconds()
    let writer = try self.store.writer(
      for: SegmentKey(
        topic: letter.topic, entity: "", day: UTCTime.day(ofMilliseconds: now), isExportDate: true),
      epoch: letter.epoch, ordinal: letter.ordinal, now: self.clock.monotonic())
    self.line.removeAll()
    Self.write(letter, time: now, to: &self.line)
    try self.store.append(self.line.bytes, to: writer)
    writer.summary.count(lines: 1, ordinal: letter.ordinal, commitTimestamp: nil)
    letter.replayID.bytes.withUnsafeBufferPointer { replayID in
      writer.summary.note(
        schemaID: letter.schemaID, firstReplayID: replayID, lastReplayID: replayID)
    }
    self.count += 1
    if self.store.isFull(writer) { try self.store.seal(writer) }
  }

  public func flush(finish: Bool) throws -> JSONValue { try self.store.flush(finish: finish) }

  public func committed() throws -> Bool { try self.store.committed() }

  public var isDue: Bool { self.store.isDue }

  public var pendingByteCount: Int { self.store.pendingByteCount }

  private static func write(_ letter: DeadLetter, time: Int64, to line: inout ByteBuffer) {
    let head: JSONValue = [
      "topic": .string(letter.topic),
      "replay_id": .string(letter.replayID.hex),
      "event_id": .string(letter.eventID),
      "schema_id": .string(letter.schemaID),
      "epoch": .integer(letter.epoch),
      "ordinal": .integer(letter.ordinal),
      "time": .string(UTCTime.timestamp(milliseconds: time)),
      "reason": .string(letter.reason),
      "field_path": letter.fieldPath.map { .string($0) } ?? nil,
      "offset": letter.byteOffset.map { .integer($0) } ?? nil,
    ]
    head.write(to: &line)
    line.truncate(to: line.count - 1)
    line.append(utf8: ",\"payload\":\"" as StaticString)
    letter.payload.withUnsafeBufferPointer { line.appendBase64($0) }
    line.append(utf8: "\"}\n" as StaticString)
  }
}
