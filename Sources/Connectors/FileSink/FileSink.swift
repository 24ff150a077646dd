internal import Bytes
internal import Clocks
internal import DurableFiles
package import JSON
package import Pipeline

/// Writes rows to zstd-compressed NDJSON files. Each event is in exactly one finished file, even
/// after crashes.
///
/// A file holds one topic, one entity and one UTC date, or records of one entity and one pass. It
/// is written under a name that begins with a dot and gets its final name when it is complete; then
/// it never changes. The protocol is `SegmentLedger`; the files are `SegmentStore`'s.
///
/// Used by one thread, like every `CheckpointedSink`. After an error, every call throws, because
/// the run has to end and the next one recovers.
package final class FileSink: BufferingSink {
  package let configuration: FileSinkConfiguration
  /// The exports of earlier runs of this pipeline, according to the manifest; set by `survey`. A
  /// run that starts again uses higher epochs; a run whose position is behind has old state.
  @exclusivity(unchecked) package private(set) var history = ExportHistory()

  let store: SegmentStore
  /// The last survey, until it has been recovered from.
  @exclusivity(unchecked) private var surveyed: FileSurvey?
  let clock: SinkClock
  let instants: InstantClock
  @exclusivity(unchecked) var freshness = FreshnessLedger()
  /// By object.
  @exclusivity(unchecked) var passes: [String: FilePass] = [:]
  /// Objects whose records have to be read and for which no pass has begun since that request.
  @exclusivity(unchecked) var awaited: Set<String> = []
  @exclusivity(unchecked) var gapEvents = GapEvents()
  /// Changed records of objects of which the files have only a part.
  @exclusivity(unchecked) var changed: [String: ChangedRecords] = [:]
  /// The calls made to read them, on the last day on which there were any.
  @exclusivity(unchecked) var calls = (day: Int64(0), count: 0)
  /// The state that the last `flush` returned.
  @exclusivity(unchecked) var flushed: JSONValue?
  /// The layouts in which records can be read, by object.
  @exclusivity(unchecked) var readLayouts: [String: RecordLayout] = [:]
  /// Objects whose changes this run keeps from the sink.
  var leftOut: Set<String> = []
  @exclusivity(unchecked) private(set) var encoders = LayoutCache<any RowEncoder>()
  /// The encoders of lines that include their places.
  @exclusivity(unchecked) private var placingEncoders = LayoutCache<any RowEncoder>()
  @exclusivity(unchecked) private var readEncoders = LayoutCache<any RowEncoder>()
  /// By topic.
  @exclusivity(unchecked) private var tails: [String: StreamTail] = [:]
  /// Lines of events in commits since the start.
  @exclusivity(unchecked) package private(set) var committedRowCount: Int64 = 0
  /// Lines including uncommitted ones, and as of the last flush.
  @exclusivity(unchecked) private var writtenRowCount: Int64 = 0
  @exclusivity(unchecked) private var flushedRowCount: Int64 = 0
  /// Lines of records that were read since the start.
  @exclusivity(unchecked) package internal(set) var readRowCount: Int64 = 0
  /// Reused.
  @exclusivity(unchecked) private var recordIDs: [UInt8] = []

  package convenience init(_ configuration: FileSinkConfiguration) {
    let permissions = configuration.permissions.map {
      FilePermissions(mode: $0.mode, groupID: $0.groupID)
    }
    self.init(
      configuration, fileSystem: SystemFileSystem(permissions: permissions),
      clock: SinkClock(configuration.clock))
  }

  /// - Parameters:
  ///   - finished: where finished files go; nil for the sink's directory.
  ///   - pieceByteCount: the number of bytes at which lines go to the thread that writes.
  init(
    _ configuration: FileSinkConfiguration, fileSystem: any FileSystem, clock: SinkClock,
    finished: (any FinishedFiles)? = nil, pieceByteCount: Int = LinePiece.byteCount
  ) {
    self.configuration = configuration
    self.clock = clock
    self.instants = InstantClock(reading: clock.utcMilliseconds(), readAt: configuration.clock.now)
    self.store = SegmentStore(
      directory: configuration.directory, kind: .records,
      identity: SegmentIdentity(pipeline: configuration.pipeline, org: configuration.org),
      level: configuration.compressionLevel, rotation: configuration.rotation,
      fileSystem: fileSystem, lineForm: configuration.format.name,
      finished: finished
        ?? FinishedDirectory(
          configuration.directory, isGuarded: configuration.whenMissing == .fail, on: fileSystem),
      clock: clock, writesAside: configuration.writesAside, pieceByteCount: pieceByteCount)
  }

  package var name: String { self.configuration.name }

  /// Receives each file that is finished.
  package var onFinished: ((FinishedFile) -> Void)? {
    get { self.store.onFinished }
    set { self.store.onFinished = newValue }
  }

  /// What the org says about the fields of objects, by object; written with the next commit.
  @exclusivity(unchecked) var descriptions: [String: [FieldDescription]] = [:]

  /// Receives, once in a run, why `_freshness.ndjson` or the files of fields and choices cannot be
  /// kept up to date.
  @exclusivity(unchecked) package var onOutdatedFreshness: ((String) -> Void)?

  /// What the file system lacks, and what is done instead; nil before `survey`, or if it has all.
  package var fileSystemShortcomings: String? { self.store.shortcomings }

  /// Files finished since the start, including those finished by recovery.
  package var finishedFileCount: Int { self.store.finishedFileCount }
  /// Compressed bytes of finished files.
  package var finishedByteCount: Int { self.store.finishedByteCount }
  /// Compressed bytes of finished files and of files in progress.
  package var writtenByteCount: Int {
    self.store.writers.values.reduce(self.store.finishedByteCount) { $0 + $1.byteCount }
  }
  /// Files in progress.
  package var openFileCount: Int { self.store.openFileCount }
  /// Memory of the compressors of open files, in bytes.
  var memoryByteCount: Int { self.store.memoryByteCount }

  /// Finishes the files that the last checkpoint knows, in progress or announced, and removes those
  /// in progress that it does not know.
  ///
  /// - Parameter state: that of the last `survey`, if there was one.
  /// - Throws: what `survey` throws; `FileSinkError.io`; `.inconsistent` for damaged files.
  package func recover(from state: JSONValue?) throws {
    let survey = try self.surveyed ?? self.survey(from: state)
    self.surveyed = nil
    try self.recover(survey)
  }

  /// Checks the existing files and changes nothing, for callers that need `history` before they
  /// know whether the checkpoint is the latest.
  ///
  /// - Throws: `FileSinkError`: `.lostState` if `state` is nil and the manifest has files of this
  ///   pipeline and org, or a run left files open, unless `acceptsReset`; `.lostOutput` for missing
  ///   finished files, unless `acceptsMissing`; `.unknownFile`, `.inconsistent`, `.locked`, `.io`.
  package func survey(from state: JSONValue?) throws -> FileSurvey {
    var survey = try self.store.survey(
      from: state, whenMissing: state == nil ? nil : self.configuration.whenMissing,
      acceptsMissing: self.configuration.acceptsMissing)
    self.history = survey.history
    // The records of a directory that was moved are here.
    self.passes = try FilePass.passes(
      in: state,
      directory: state?["directory"]?.string ?? self.configuration.directory)
    self.awaited = FilePass.awaited(in: state)
    self.gapEvents = try GapEvents(in: state)
    for entity in self.configuration.subsets {
      self.changed[entity] = try Self.changedRecords(
        of: entity, in: state, directory: self.configuration.directory,
        pipeline: self.configuration.pipeline, on: self.store.fileSystem)
    }
    self.calls = Self.calls(in: state)
    if !survey.acceptedFaults.isEmpty, !self.passes.isEmpty {
      // Some of the records may be in lost files.
      self.passes = [:]
      survey.acceptedFaults.append(
        "records that were read into files are treated as not read; 'pubsub-etl snapshot' reads them again"
      )
    }
    guard state == nil, !self.history.isEmpty || survey.showsKeptFiles,
      !self.configuration.acceptsReset
    else {
      self.surveyed = survey
      return survey
    }
    guard !self.history.isEmpty else {
      throw FileSinkError(
        .lostState,
        "there is no checkpoint, but \(self.store.keptMark) shows that pipeline "
          + "'\(self.configuration.pipeline)' has exported events to files that are still open: put "
          + "the checkpoint back, or begin a new epoch with 'run --accept-reset'")
    }
    let topics = self.history.topics.sorted { $0.key < $1.key }.map { topic, exported in
      "\(topic) up to replay ID \(exported.lastReplayID) (epoch \(exported.epoch))"
    }
    throw FileSinkError(
      .lostState,
      "there is no checkpoint, but according to \(self.store.finished.listPath) pipeline "
        + "'\(self.configuration.pipeline)' exported \(topics.joined(separator: ", ")): restore "
        + "the positions with 'checkpoint restore --from-manifest', or begin a new epoch with "
        + "'run --accept-reset'")
  }

  /// Checks what a run reads from a state, without looking at the files.
  ///
  /// - Parameter state: of a sink, or of dead letters.
  /// - Throws: `FileSinkError.inconsistent` for a state that no run stores.
  package static func check(_ state: JSONValue?, directory: String) throws {
    _ = try SegmentRecord.records(in: state, directory: directory)
    _ = try FilePass.passes(
      in: state, directory: state?["directory"]?.string ?? directory)
    _ = try GapEvents(in: state)
  }

  /// - Parameter survey: a survey of this sink.
  package func recover(_ survey: FileSurvey) throws {
    try self.store.recover(survey)
    for changed in self.changed.values {
      try changed.recover(acceptsMissing: self.configuration.acceptsMissing)
    }
    try self.store.renewViews()
  }

  package func write(_ batch: RecordBatch) throws {
    guard !batch.events.isEmpty else { return }
    // Layouts without rows for this sink are not described.
    let plainEncoder = batch.rowCount > 0 ? try self.encoder(for: batch.layout) : nil
    let now = self.clock.monotonic()
    let exportDay = UTCTime.day(ofMilliseconds: self.clock.utcMilliseconds())
    let events = batch.events
    let isPart = self.changed[batch.layout.entity] != nil
    var next = self.nextOrdinal(of: batch)
    var index = 0
    while index < events.count {
      let event = events[index]
      // An event that became a dead letter may come later and has its place in between.
      if event.ordinal != next, !batch.isRedriven {
        self.store.noteHole(
          inTopic: batch.layout.topic, epoch: batch.epoch, before: event.ordinal)
      }
      next = event.ordinal + 1
      // An event without rows does not create a file.
      guard event.rowCount > 0 else {
        index += 1
        continue
      }
      let day = EventDay(of: event, orExport: exportDay)
      let writer = try self.store.writer(
        for: SegmentKey(
          topic: batch.layout.topic, entity: batch.layout.entity, day: day.number,
          isExportDate: day.isExportDate, isRedriven: batch.isRedriven),
        epoch: batch.epoch, ordinal: event.ordinal, now: now)
      let run = index..<day.end(of: events, from: index, orExport: exportDay)
      // A read of a changed record may belong between any two events.
      if let plainEncoder, !writer.tellsPlaces, !isPart {
        index = try self.append(run, of: batch, by: plainEncoder, to: writer)
      } else {
        index = try self.appendPlaced(run, of: batch, to: writer)
      }
      try self.endRun(of: writer, batch, run.lowerBound..<index)
      next = events[index - 1].ordinal + 1
      if self.store.isFull(writer) { try self.store.seal(writer) }
    }
    self.writtenRowCount += Int64(batch.rowCount)
    if isPart { self.noteChanged(batch) }
    guard !batch.isRedriven else { return }
    self.store.places.advance(batch.layout.topic, epoch: batch.epoch, to: next)
    self.tails[batch.layout.topic, default: StreamTail()].advance(
      over: batch, count: batch.events.count, &self.recordIDs)
  }

  package func flush(finish: Bool) throws -> JSONValue {
    let state = try self.store.flush(finish: finish)
    self.flushedRowCount = self.writtenRowCount
    self.freshness.flushed(
      self.passes, awaited: self.awaited, leftOut: self.gapEvents.leftOut,
      changed: self.changed.mapValues(\.count))
    let now = self.clock.utcMilliseconds()
    try self.store.attempt { () throws(FileSystemError) in
      for changed in self.changed.values { try changed.flush(at: now) }
    }
    let result = self.addingChanged(
      to: self.gapEvents.adding(
        to: FilePass.adding(self.passes, awaited: self.awaited, to: state)))
    self.flushed = result
    return result
  }

  package func committed() throws -> Bool {
    self.committedRowCount = self.flushedRowCount
    try self.store.attempt { () throws(FileSystemError) in
      for changed in self.changed.values { try changed.committed() }
    }
    return try self.store.committed()
  }

  package var isDue: Bool { self.store.isDue }

  package var pendingByteCount: Int { self.store.pendingByteCount }

  /// Appends events until the file is full, and returns the end of those that were appended.
  private func append(
    _ run: Range<Int>, of batch: RecordBatch, by encoder: any RowEncoder, to writer: SegmentWriter
  ) throws -> Int {
    let first = batch.events[run.lowerBound]
    // Their places follow from the file.
    let origin = RowOrigin.event(epoch: batch.epoch, ordinal: first.ordinal)
    let run = run.prefix(of: batch.events, lasting: self.store.remainingEventCount(of: writer))
    let last = batch.events[run.upperBound - 1]
    var rows = first.firstRow..<last.rows.upperBound
    var end = run.upperBound
    while !rows.isEmpty {
      let appended = encoder.append(
        rows, of: batch, from: origin, to: &self.store.piece.lines, limit: LinePiece.byteCount)
      rows = appended..<rows.upperBound
      guard self.store.piece.lines.count >= LinePiece.byteCount else { continue }
      try self.store.endLines(of: writer)
      if end == run.upperBound, self.store.isFull(writer) {
        // The file may exceed its size by the event whose rows have just been begun.
        end = run.first { batch.events[$0].rows.upperBound >= appended }.map { $0 + 1 } ?? end
        rows = appended..<batch.events[end - 1].rows.upperBound
      }
    }
    self.note(run.lowerBound..<end, of: batch, in: writer)
    return end
  }

  /// Appends events with their places in the stream until the file is full, and returns the end of
  /// those that were appended.
  private func appendPlaced(
    _ run: Range<Int>, of batch: RecordBatch, to writer: SegmentWriter
  ) throws -> Int {
    let encoder = self.placingEncoder(for: batch.layout)
    for index in run {
      let event = batch.events[index]
      if event.rowCount > 0 {
        try self.append(
          event, of: batch, by: encoder, from: .event(epoch: batch.epoch, ordinal: event.ordinal),
          to: writer)
      }
      self.note(index..<index + 1, of: batch, in: writer)
      if self.store.isFull(writer) { return index + 1 }
    }
    return run.upperBound
  }

  private func note(_ events: Range<Int>, of batch: RecordBatch, in writer: SegmentWriter) {
    writer.summary.count(batch.events[events])
    for event in batch.events[events] where event.rowCount > 0 {
      if event.kind != .change || !self.gapEvents.isEmpty { self.gapEvents.note(event, of: batch) }
    }
  }

  /// Consecutive events of a batch in the same file.
  private func endRun(
    of writer: SegmentWriter, _ batch: RecordBatch, _ events: Range<Int>
  ) throws {
    try self.store.endLines(of: writer)
    writer.summary.note(
      schemaID: batch.layout.schemaID,
      firstReplayID: batch.bytes(batch.events[events.lowerBound].replayID),
      lastReplayID: batch.bytes(batch.events[events.upperBound - 1].replayID))
    guard !batch.isRedriven else { return }
    writer.summary.tail.copy(self.tails[batch.layout.topic, default: StreamTail()])
    writer.summary.tail.advance(over: batch, count: events.upperBound, &self.recordIDs)
  }

  /// Encodes the rows of an event, or of a record that was read.
  func append(
    _ event: RecordBatch.Event, of batch: RecordBatch, by encoder: any RowEncoder,
    from origin: RowOrigin, to writer: SegmentWriter
  ) throws {
    var rows = event.rows
    while !rows.isEmpty {
      let end = encoder.append(
        rows, of: batch, from: origin, to: &self.store.piece.lines, limit: LinePiece.byteCount)
      rows = end..<rows.upperBound
      if self.store.piece.lines.count >= LinePiece.byteCount { try self.store.endLines(of: writer) }
    }
  }

  func readEncoder(for layout: RecordLayout) throws -> any RowEncoder {
    if let encoder = self.readEncoders[layout] { return encoder }
    try self.store.describe(layout, isOfReads: true)
    let encoder = self.configuration.format.encoder(for: layout, of: .reads)
    self.readEncoders.insert(encoder, for: layout)
    return encoder
  }

  /// The ordinal of the first event of a batch if no event before it is missing.
  private func nextOrdinal(of batch: RecordBatch) -> Int64 {
    let first = batch.events[0].ordinal
    guard !batch.isRedriven else { return first }
    return self.store.places.nextOrdinal(ofTopic: batch.layout.topic, epoch: batch.epoch) ?? first
  }

  private func placingEncoder(for layout: RecordLayout) -> any RowEncoder {
    if let encoder = self.placingEncoders[layout] { return encoder }
    let encoder = self.configuration.format.encoder(for: layout, of: .placedEvents)
    self.placingEncoders.insert(encoder, for: layout)
    return encoder
  }

  private func encoder(for layout: RecordLayout) throws -> any RowEncoder {
    if let encoder = self.encoders[layout] { return encoder }
    // The place of a read among the changes has to be known.
    if self.changed[layout.entity] != nil { _ = try ComparedColumns(layout) }
    try self.store.describe(layout)
    let encoder = self.configuration.format.encoder(for: layout, of: .events)
    self.encoders.insert(encoder, for: layout)
    self.freshness.note(layout)
    self.passes[layout.entity]?.note(layout, at: self.clock.utcMilliseconds())
    return encoder
  }
}

/// The date in the path of an event's file.
private struct EventDay: Equatable {
  /// Days since 1970, of the commit time or of the wall clock.
  let number: Int64
  let isExportDate: Bool

  @inline(__always)
  init(of event: RecordBatch.Event, orExport exportDay: Int64) {
    self.number = event.commitTimestamp.map(UTCTime.day(ofMilliseconds:)) ?? exportDay
    self.isExportDate = event.commitTimestamp == nil
  }

  /// The end of the events from `first` on that belong to the same file and follow each other in the
  /// stream. Events without rows belong to any file.
  func end(of events: [RecordBatch.Event], from first: Int, orExport exportDay: Int64) -> Int {
    var index = first + 1
    while index < events.count, events[index].ordinal == events[index - 1].ordinal + 1,
      events[index].rowCount == 0 || Self(of: events[index], orExport: exportDay) == self
    {
      index += 1
    }
    return index
  }
}

extension Range<Int> {
  /// The first events that have rows, at most `count` of them, and those without rows in between.
  fileprivate func prefix(of events: [RecordBatch.Event], lasting count: Int) -> Self {
    // Events are seldom near the limit.
    guard self.count > count else { return self }
    var left = count
    for index in self where events[index].rowCount > 0 {
      left -= 1
      if left == 0 { return self.lowerBound..<index + 1 }
    }
    return self
  }
}

/// A file with its final name and a line in the manifest.
package struct FinishedFile: Sendable, Equatable {
  /// Relative to the sink's directory.
  package var name: String
  package var events: Int64
  /// Includes records that were read.
  package var lines: Int64
  /// Compressed.
  package var byteCount: Int
}
