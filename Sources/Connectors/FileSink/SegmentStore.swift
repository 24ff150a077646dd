internal import Bytes
internal import Cryptography
internal import DurableFiles
internal import JSON
internal import Pipeline

/// The files of one family below one directory: opens, writes, commits and recovers them.
///
/// Performs the steps of `SegmentLedger`. After an error every call throws the same error, because
/// only the next run's recovery can determine what is on disk. Driven by one thread.
final class SegmentStore {
  let directory: String
  let kind: SegmentKind
  let identity: SegmentIdentity
  let level: Int
  let rotation: FileSinkConfiguration.Rotation
  /// The form of lines, in which a file is also continued.
  let lineForm: String
  let fileSystem: any FileSystem
  let clock: SinkClock
  var finished: any FinishedFiles
  var ledger = SegmentLedger()
  var writers: [SegmentLedger.ID: SegmentWriter] = [:]
  /// The open file of each key.
  private var current: [SegmentKey: SegmentWriter] = [:]
  /// Files that earlier runs left open, in the order of the checkpoint.
  var kept: [KeptSegment] = []
  var places = StreamPlaces()
  var isMarkedKept = false
  private var useCount = 0
  /// Relative directories that this run has created, or found and synchronized.
  private var durableDirectories: Set<String> = []
  var failure: FileSinkError?
  var lock: OpenFile?
  var filesInUse: FilesInUse?
  /// What the file system lacks, and what is done instead; nil if it has all.
  var shortcomings: String?
  /// Uncompressed bytes written since the last flush.
  private(set) var pendingByteCount = 0
  /// Files finished and their compressed bytes since the start, including recovered ones.
  var finishedFileCount = 0
  var onFinished: ((FinishedFile) -> Void)?
  var finishedByteCount = 0
  /// The file whose line was last appended to the manifest, by this run or an earlier one.
  var lastFinished: String?
  /// The user has accepted missing files up to this one.
  var acceptedThrough: String?
  let scratch = UnsafeMutableRawBufferPointer.allocate(
    byteCount: ZstdCompressor.outputByteCount, alignment: 16)
  /// The lines that are being encoded; `endLines` takes them.
  @exclusivity(unchecked) private(set) var piece = LinePiece()
  /// nil to write everything on the caller's thread.
  private let writerThread: WriterThread?
  /// The number of bytes at which lines go to `writerThread`.
  private let pieceByteCount: Int

  init(
    directory: String, kind: SegmentKind, identity: SegmentIdentity, level: Int,
    rotation: FileSinkConfiguration.Rotation, fileSystem: any FileSystem,
    lineForm: String = "", finished: any FinishedFiles, clock: SinkClock, writesAside: Bool = false,
    pieceByteCount: Int = LinePiece.byteCount
  ) {
    precondition(
      directory.utf8.first == UInt8(ascii: "/"), "the sink's directory \(directory) is not absolute"
    )
    self.directory = directory
    self.kind = kind
    self.identity = identity
    self.level = level
    self.rotation = rotation
    self.lineForm = lineForm
    self.fileSystem = fileSystem
    self.clock = clock
    self.finished = finished
    self.writerThread = writesAside ? WriterThread(wakingByteCount: pieceByteCount * 8) : nil
    self.pieceByteCount = pieceByteCount
  }

  deinit {
    // `lock` is released after this.
    self.writerThread?.stop()
    self.scratch.deallocate()
  }

  var openFileCount: Int { self.writers.count + self.kept.count }
  var memoryByteCount: Int { self.writers.values.reduce(0) { $0 + $1.memoryByteCount } }

  // MARK: Writing

  /// The open file for a key, created if there is none. `ordinal` is the ordinal of the next event,
  /// `row` the number of the next record of a pass.
  func writer(
    for key: SegmentKey, epoch: Int, ordinal: Int64, row: Int = 0, now: Duration
  ) throws(FileSinkError) -> SegmentWriter {
    self.useCount += 1
    if let writer = self.current[key], writer.summary.epoch == epoch {
      writer.lastUse = self.useCount
      writer.lastUsedAt = now
      return writer
    }
    // A file never spans two epochs, because its name contains the epoch.
    if let writer = self.current[key] { try self.seal(writer) }
    let kept = self.takeKept(key, epoch: epoch)
    if kept == nil { try self.makeRoom() }
    let writer =
      if let kept {
        try self.resume(kept)
      } else {
        try self.open(key, epoch: epoch, ordinal: ordinal, row: row, now: now)
      }
    writer.lastUse = self.useCount
    writer.lastUsedAt = now
    self.writers[writer.id] = writer
    self.current[key] = writer
    return writer
  }

  /// Closes a file if one more would be too many.
  private func makeRoom() throws(FileSinkError) {
    guard self.openFileCount >= self.rotation.maxOpenFileCount else { return }
    if let oldest = self.kept.min(by: { $0.openedAt < $1.openedAt }) {
      try self.sealKept { $0.id == oldest.id }
    } else if let oldest = self.writers.values.min(by: { $0.lastUse < $1.lastUse }) {
      try self.seal(oldest)
    }
  }

  /// Takes the lines in `piece` since the last call, which are complete and for an open file.
  ///
  /// They are written by the next `flush` or `seal` at the latest.
  func endLines(of writer: SegmentWriter) throws(FileSinkError) {
    self.pendingByteCount += self.piece.end(for: writer)
    self.ledger.appended(to: writer.id)
    guard let writerThread else { return try self.writePiece() }
    guard self.piece.lines.count >= self.pieceByteCount else { return }
    let isTaken = try self.attempt { () throws(FileSystemError) in
      try writerThread.take(&self.piece)
    }
    if !isTaken { try self.writePiece() }
  }

  private func writePiece() throws(FileSinkError) {
    defer { self.piece.removeAll() }
    try self.attempt { () throws(FileSystemError) in
      try self.piece.write(through: self.scratch)
    }
  }

  /// Writes all lines so far, as far as the compressors give them out. Afterwards the files are in
  /// use by this thread alone.
  private func writeLines() throws(FileSinkError) {
    if let writerThread {
      try self.attempt { () throws(FileSystemError) in try writerThread.drain() }
    }
    try self.writePiece()
  }

  /// Whether the file is so large that it has to be finished. Check this between events.
  @inline(__always)
  func isFull(_ writer: SegmentWriter) -> Bool {
    writer.summary.eventCount >= self.rotation.maxEventCount
      || writer.byteCount >= self.rotation.maxByteCount || self.isLongEnough(writer)
  }

  /// The number of events, at least one, that the file may still get.
  func remainingEventCount(of writer: SegmentWriter) -> Int {
    max(self.rotation.maxEventCount - writer.summary.eventCount, 1)
  }

  /// Notes that the event of the topic before `ordinal` is missing, so that from here on the lines of
  /// its open files include their places.
  func noteHole(inTopic topic: String, epoch: Int, before ordinal: Int64) {
    self.places.noteHole(inTopic: topic, epoch: epoch, before: ordinal)
    for writer in self.writers.values where writer.key.topic == topic { writer.tellsPlaces = true }
  }

  /// Closes the file for events.
  func seal(_ writer: SegmentWriter) throws(FileSinkError) {
    try self.writeLines()
    self.current[writer.key] = nil
    try self.perform(self.ledger.seal(writer.id))
  }

  /// Closes the open files of some keys for events.
  func seal(where isMeant: (SegmentKey) -> Bool) throws(FileSinkError) {
    for writer in self.current.values where isMeant(writer.key) { try self.seal(writer) }
    try self.sealKept { isMeant($0.key) }
  }

  private func open(
    _ key: SegmentKey, epoch: Int, ordinal: Int64, row: Int, now: Duration
  ) throws(FileSinkError) -> SegmentWriter {
    let name = SegmentName(
      kind: self.kind, pipeline: self.identity.pipeline, key: key, epoch: epoch, ordinal: ordinal,
      row: row)
    let (id, steps) = self.ledger.open(directory: name.directory)
    precondition(steps == [.create(id)], "a file is opened by creating it")
    return try self.attempt { () throws(FileSystemError) in
      try self.makeDirectory(name.directory)
      guard try self.finished.byteCount(of: name.path) == nil else {
        throw FileSystemError("open", self.absolute(name.path), code: FileSystemError.exists)
      }
      return SegmentWriter(
        id: id, key: key, name: name,
        // Appended to, so that a write after a truncation leaves no hole that looks complete.
        file: try OpenFile(
          self.absolute(name.partPath), [.write, .create, .exclusive, .append],
          on: self.fileSystem),
        compressor: ZstdCompressor(
          level: self.level, window: .init(besides: self.writers.count)),
        summary: SegmentSummary(
          topic: key.topic, entity: self.kind == .records ? key.entity : nil, epoch: epoch,
          firstOrdinal: ordinal, pass: key.pass, isRedriven: key.isRedriven),
        continuation: self.continuation(of: key), openedAt: now)
    }
  }

  var catalog: ColumnCatalog {
    ColumnCatalog(
      directory: self.directory, pipeline: self.identity.pipeline, fileSystem: self.fileSystem)
  }

  /// Updates the descriptions next to the data for a layout; called when it is first seen.
  func describe(_ layout: RecordLayout, isOfReads: Bool = false) throws(FileSinkError) {
    try self.attempt { () throws(FileSystemError) in
      try self.catalog.add(
        layout, isOfReads: isOfReads, entityDirectory: SegmentName.sanitized(layout.entity))
    }
  }

  /// Corrects the descriptions next to data that was moved here.
  func renewViews() throws(FileSinkError) {
    try self.attempt { () throws(FileSystemError) in
      try self.catalog.renewViews()
    }
  }

  /// Creates a relative directory, durable before a file in it is committed.
  private func makeDirectory(_ path: String) throws(FileSystemError) {
    guard !path.isEmpty, self.durableDirectories.insert(path).inserted else { return }
    let parent = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[..<$0]) } ?? ""
    try self.makeDirectory(parent)
    _ = try self.fileSystem.makeDirectory(self.absolute(path))
    // Also done for an existing directory, because a killed run may have just created it.
    try self.fileSystem.synchronizeDirectory(self.absolute(parent))
  }

  // MARK: Committing

  var isDue: Bool {
    guard !self.writers.isEmpty || !self.kept.isEmpty else { return false }
    let now = self.clock.monotonic()
    return self.writers.values.contains { self.isDue($0, now) }
      || self.kept.contains { self.isDue($0, now) }
  }

  private func isDue(_ kept: KeptSegment, _ now: Duration) -> Bool {
    kept.isDue || now - kept.openedAt >= self.rotation.maxAge
  }

  private func isDue(_ writer: SegmentWriter, _ now: Duration) -> Bool {
    now - writer.openedAt >= self.rotation.maxAge
      || now - writer.lastUsedAt >= self.rotation.maxIdle && !self.isKept(writer)
      || self.isFull(writer)
  }

  /// Makes everything durable and returns the state for the checkpoint.
  func flush(finish: Bool) throws(FileSinkError) -> JSONValue {
    if let failure { throw failure }
    try self.writeLines()
    let now = self.clock.monotonic()
    let closing = Set(
      self.writers.values.filter { finish && !self.isKept($0) || self.isDue($0, now) }.map(\.id)
        + self.kept.filter { self.isDue($0, now) }.map(\.id))
    for id in closing {
      if let writer = self.writers[id] { self.current[writer.key] = nil }
    }
    self.kept.removeAll { closing.contains($0.id) }
    try self.perform(self.ledger.flush { closing.contains($0) })
    self.pendingByteCount = 0
    var members = [
      JSONMember("directory", .string(self.directory)),
      JSONMember("files", .array(self.ledger.states)),
    ]
    if self.keepsFiles { members.append(JSONMember(StreamPlaces.key, self.places.json)) }
    if let lastFinished {
      members.append(JSONMember(OutputCheck.lastFinishedKey, .string(lastFinished)))
    }
    if let acceptedThrough {
      members.append(JSONMember(OutputCheck.acceptedKey, .string(acceptedThrough)))
    }
    return JSONValue(.object(members))
  }

  /// Finishes what the durable checkpoint announced. Returns true if there was anything.
  func committed() throws(FileSinkError) -> Bool {
    if let failure { throw failure }
    let steps = self.ledger.commit()
    try self.perform(steps)
    if self.keepsFiles, !self.ledger.unfinished.isEmpty { try self.markKept() }
    return !steps.isEmpty
  }
}
