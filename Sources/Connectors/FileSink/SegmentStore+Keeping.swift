internal import Cryptography
internal import DurableFiles
internal import JSON
internal import Pipeline

/// A file that an earlier run left open and that has taken no event of this one.
struct KeptSegment {
  let id: SegmentLedger.ID
  let key: SegmentKey
  let name: SegmentName
  let epoch: Int
  /// On the sink's monotonic clock.
  let openedAt: Duration
  /// The file takes no more events, whatever its age.
  let isDue: Bool
}

/// Files stay open from run to run while they are smaller than `rotate.min_bytes`.
///
/// Each run that continues a file appends a frame. Before it is finished, a file of several frames
/// is joined into one, because some readers stop after the first.
extension SegmentStore {
  var keepsFiles: Bool { self.rotation.minByteCount > 0 && self.kind == .records }

  /// An empty file that shows, as long as no file is finished, that a checkpoint exists.
  var keptMark: String { self.absolute(Self.keptMark(of: self.lockName)) }

  static func keptMark(of lockName: String) -> String { "\(lockName).kept" }

  /// Call this when a checkpoint with open files is durable.
  func markKept() throws(FileSinkError) {
    guard !self.isMarkedKept else { return }
    try self.attempt { () throws(FileSystemError) in
      guard try self.fileSystem.size(of: self.keptMark) == nil else { return }
      _ = try OpenFile(self.keptMark, [.write, .create], on: self.fileSystem)
      try self.fileSystem.synchronizeDirectory(self.directory)
    }
    self.isMarkedKept = true
  }

  /// What later runs need to continue a new file; nil if none may.
  func continuation(of key: SegmentKey) -> SegmentRecord.Continuation? {
    guard self.keepsFiles, key.pass == nil, !key.isRedriven else { return nil }
    return SegmentRecord.Continuation(
      openedAt: self.clock.utcMilliseconds(), day: key.day, isExportDate: key.isExportDate,
      form: self.lineForm, frameCount: 1)
  }

  /// Whether the file stays open when the run ends, and when it is idle.
  func isKept(_ writer: SegmentWriter) -> Bool {
    writer.continuation != nil && writer.byteCount < self.rotation.minByteCount
  }

  /// A file that several runs wrote ends as soon as it is large enough, because joining it takes
  /// time.
  func isLongEnough(_ writer: SegmentWriter) -> Bool {
    guard let continuation = writer.continuation, continuation.frameCount > 1 else { return false }
    return writer.byteCount >= self.rotation.minByteCount
  }

  /// Whether recovery leaves a file of the checkpoint open instead of finishing it. Files of several
  /// frames have to be joined, which takes a commit.
  func keeps(_ record: SegmentRecord, _ observed: SegmentLedger.Observation) -> Bool {
    record.continuation != nil && !record.isClosing && observed.isInProgress
      && (self.keepsFiles || record.hasFrames)
  }

  /// Leaves files of the last checkpoint open.
  func keep(_ records: [SegmentRecord]) throws(FileSinkError) {
    for record in records {
      guard let continuation = record.continuation else { continue }
      let summary = try SegmentSummary(continuing: record)
      let key = SegmentKey(
        topic: summary.topic, entity: summary.entity ?? "", day: continuation.day,
        isExportDate: continuation.isExportDate)
      let name = SegmentName(
        kind: self.kind, pipeline: self.identity.pipeline, key: key, epoch: summary.epoch,
        ordinal: summary.firstOrdinal)
      // A clock that was set back says nothing about the age.
      let age = self.clock.utcMilliseconds() - continuation.openedAt
      self.kept.append(
        KeptSegment(
          id: self.ledger.keep(record), key: key, name: name, epoch: summary.epoch,
          openedAt: self.clock.monotonic() - .milliseconds(max(0, age)),
          isDue: !self.keepsFiles || age < 0 || name.path != record.name
            || record.manifest["org"]?.string != self.identity.org
            || continuation.form != self.lineForm
            || record.byteCount >= self.rotation.minByteCount
            || summary.eventCount >= self.rotation.maxEventCount))
    }
  }

  /// The kept file of a key, which is not in `kept` any more.
  func takeKept(_ key: SegmentKey, epoch: Int) -> KeptSegment? {
    guard
      let index = self.kept.firstIndex(where: { $0.key == key && $0.epoch == epoch && !$0.isDue })
    else { return nil }
    return self.kept.remove(at: index)
  }

  /// Closes kept files for events.
  func sealKept(where isMeant: (KeptSegment) -> Bool) throws(FileSinkError) {
    let sealed = self.kept.filter(isMeant)
    self.kept.removeAll(where: isMeant)
    for segment in sealed { try self.perform(self.ledger.seal(segment.id)) }
  }

  /// Opens a kept file for more events.
  func resume(_ kept: KeptSegment) throws(FileSinkError) -> SegmentWriter {
    let steps = self.ledger.resume(kept.id)
    precondition(steps == [.resume(kept.id)], "a kept file is opened where its writer is made")
    let record = self.ledger.record(of: kept.id)
    let summary = try SegmentSummary(continuing: record)
    var continuation = record.continuation
    continuation?.frameCount += 1
    let hash = try self.verifiedHash(of: record)
    return try self.attempt { () throws(FileSystemError) in
      let file = try OpenFile(self.absolute(record.part), [.write, .append], on: self.fileSystem)
      try file.truncate(to: record)
      let writer = SegmentWriter(
        id: kept.id, key: kept.key, name: kept.name, file: file,
        compressor: ZstdCompressor(level: self.level, window: .init(besides: self.writers.count)),
        summary: summary, continuation: continuation, openedAt: kept.openedAt)
      try writer.begin(after: record, hash)
      writer.tellsPlaces = self.places.hasHole(
        inTopic: kept.key.topic, epoch: kept.epoch, since: summary.firstOrdinal)
      return writer
    }
  }

  /// Writes the lines of a file of several frames as one frame.
  func join(_ record: SegmentRecord) throws(FileSinkError) -> SegmentRecord {
    let path = SegmentName.joinedPath(forFinal: record.name)
    let source = SegmentLines(
      path: self.absolute(record.part), extent: .first(record.committedByteCount),
      fileSystem: self.fileSystem)
    do throws(FileSinkError) {
      if let failure { throw failure }
      let copy = try LineCopy(to: self.absolute(path), level: self.level, on: self.fileSystem)
      try copy.append(source, sha256: record.sha256)
      let result = try copy.finish()
      return SegmentRecord(
        part: path, name: record.name, byteCount: result.byteCount, sha256: result.sha256,
        manifest: record.manifest.replacing([
          "bytes": .integer(result.byteCount), "sha256": .string(result.sha256),
        ]), isClosing: false)
    } catch {
      throw self.fail(error)
    }
  }
}

extension OpenFile {
  /// Truncates a file in progress to its committed bytes.
  func truncate(to record: SegmentRecord) throws(FileSystemError) {
    // A run that was killed may have written more than it committed, but never less.
    try self.checkIntact(byteCount: max(self.status().byteCount, record.committedByteCount))
    try self.truncate(to: record.committedByteCount)
  }
}

extension JSONValue {
  /// The object with other values of some members.
  func replacing(_ values: [String: JSONValue]) -> JSONValue {
    guard let members = self.members else { return self }
    return JSONValue(
      .object(members.map { JSONMember($0.name, values[$0.name] ?? $0.value) }))
  }
}

extension FileSink {
  /// Whether runs of a pipeline have left files open, which only its checkpoint knows.
  ///
  /// - Parameter directory: absolute.
  package static func hasOpenFiles(
    in directory: String, pipeline: String
  ) throws(FileSinkError) -> Bool {
    let mark = SegmentStore.keptMark(of: SegmentStore.lockName(.records, pipeline: pipeline))
    do throws(FileSystemError) {
      return try SystemFileSystem().size(of: "\(directory)/\(mark)") != nil
    } catch {
      throw FileSinkError(error)
    }
  }
}
