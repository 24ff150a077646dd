internal import DurableFiles
internal import JSON
internal import Pipeline

/// The commit protocol of files in progress, as a value that turns events into steps.
///
/// A file goes *open → closing → finished*. It is open from its first event; one that an earlier run
/// left open is *kept* until its next event. A commit makes the appended bytes durable and returns
/// their record for the checkpoint (`records`). A file that
/// takes no more events (`seal`, or `closing` in `flush`) is announced as closing by that record,
/// and only when a checkpoint with the record is durable (`commit`) does it get its end, its final
/// name and its line in the manifest. If a crash interrupts this, `recovery` completes it from the
/// last checkpoint.
///
/// Methods return steps to be performed in order. After a failed step the ledger must not be used:
/// the run ends, and the next one recovers.
struct SegmentLedger {
  struct ID: Hashable { let number: Int }

  enum Step: Equatable {
    /// Create the file in progress; its name must not be taken.
    case create(ID)
    /// Open a file that an earlier run left open: compare its committed bytes with their hash,
    /// truncate it to them, and end their frame.
    case resume(ID)
    /// Write the compressor's buffered output, then call `flushed`.
    case flush(ID)
    /// Make the bytes of the file durable.
    case synchronizeData(ID)
    /// Free the descriptor and compressor; nothing more is appended.
    case release(ID)
    /// Compare the committed bytes of a file of several frames with their hash, and write its lines
    /// as one frame to another file in progress, durable except for its name. Then call `flushed`.
    case join(ID)
    /// Make the names in this relative directory durable.
    case synchronizeDirectory(String)
    /// Make the names of finished files in this relative directory durable.
    case synchronizeFinished(String)
    /// Compare the committed bytes of the file, which is in progress or finished, with their hash.
    case verify(SegmentRecord, isFinished: Bool)
    /// Truncate the file in progress to its committed bytes, append the end of the frame, and make
    /// it durable.
    case endFrame(SegmentRecord)
    /// Give the file its final name, which must not be taken.
    case rename(SegmentRecord)
    /// Take the name in progress from a file that has its final name as well.
    case removePart(SegmentRecord)
    /// Remove the file in progress whose lines are in the joined one.
    case removeFrames(SegmentRecord)
    /// Append the line to the manifest and make it durable.
    case appendToManifest(SegmentRecord)
  }

  private enum Phase { case kept, open, sealed, announced }

  private struct Entry {
    let id: ID
    var phase = Phase.open
    /// The file has bytes that the record does not cover.
    var isDirty = true
    /// The file has several frames.
    var hasFrames = false
    /// nil before the first flush.
    var record: SegmentRecord? { didSet { self.json = self.record?.json } }
    /// That of the record, made once.
    private(set) var json: JSONValue?
  }

  /// In the order in which they were opened.
  private var entries: [Entry] = []
  private var nextNumber = 0
  /// Directories that contain a new name.
  private var dirtyDirectories: [String] = []

  /// The records for the checkpoint. They are durable once the steps of `flush` are done.
  var states: [JSONValue] {
    self.entries.map { entry in
      guard let json = entry.json else {
        preconditionFailure("the state was asked for before the steps of flush were performed")
      }
      return json
    }
  }

  /// The committed records of files that are not finished, in progress or to be finished by the next
  /// commit.
  var unfinished: [SegmentRecord] { self.entries.compactMap(\.record) }

  /// Call this before the first event is appended to a new file in this directory.
  mutating func open(directory: String) -> (ID, [Step]) {
    let id = ID(number: self.nextNumber)
    self.nextNumber += 1
    self.entries.append(Entry(id: id))
    if !self.dirtyDirectories.contains(directory) { self.dirtyDirectories.append(directory) }
    return (id, [.create(id)])
  }

  /// Call this for a file that an earlier run left open and that may take more events.
  mutating func keep(_ record: SegmentRecord) -> ID {
    let id = ID(number: self.nextNumber)
    self.nextNumber += 1
    var entry = Entry(id: id, phase: .kept, isDirty: false, hasFrames: record.hasFrames)
    entry.record = record
    self.entries.append(entry)
    return id
  }

  /// Call this before the first event is appended to a file that was kept.
  mutating func resume(_ id: ID) -> [Step] {
    let index = self.index(of: id)
    precondition(self.entries[index].phase == .kept, "resumed a file that was not kept")
    self.entries[index].phase = .open
    self.entries[index].isDirty = true
    self.entries[index].hasFrames = true
    return [.resume(id)]
  }

  /// Call this after something was appended to an open file.
  mutating func appended(to id: ID) {
    let index = self.index(of: id)
    precondition(self.entries[index].phase == .open, "appended to a file that is closing")
    self.entries[index].isDirty = true
  }

  /// Closes the file for events. The next commit announces it.
  mutating func seal(_ id: ID) -> [Step] {
    let index = self.index(of: id)
    precondition([.open, .kept].contains(self.entries[index].phase), "sealed twice")
    let steps = self.endSteps(index)
    self.entries[index].phase = .sealed
    return steps
  }

  /// Begins a commit. `closing` says which open files are to be finished with it.
  mutating func flush(closing: (ID) -> Bool) -> [Step] {
    var steps: [Step] = []
    for index in self.entries.indices {
      let entry = self.entries[index]
      switch entry.phase {
      case .open where closing(entry.id), .kept where closing(entry.id):
        steps += self.endSteps(index)
        self.entries[index].phase = .announced
      case .kept: break
      case .open:
        steps += self.flushSteps(index)
      case .sealed:
        self.entries[index].phase = .announced
      case .announced:
        // Announced by a flush whose checkpoint is not stored yet, so still to be finished.
        break
      }
      if self.entries[index].phase == .announced { self.entries[index].record?.isClosing = true }
    }
    steps += self.dirtyDirectories.map { .synchronizeDirectory($0) }
    self.dirtyDirectories = []
    return steps
  }

  /// Call this after the steps `flush(id)` and `join(id)`; `record` describes the file as it is now.
  mutating func flushed(_ id: ID, _ record: SegmentRecord) {
    let index = self.index(of: id)
    var record = record
    record.isClosing = self.entries[index].phase == .announced
    self.entries[index].record = record
    self.entries[index].isDirty = false
  }

  /// Call this when the checkpoint that holds `records` is durable. Finishes what it announced.
  mutating func commit() -> [Step] {
    let announced = self.entries.filter { $0.phase == .announced }.compactMap(\.record)
    self.entries.removeAll { $0.phase == .announced }
    return Self.finishing(announced)
  }

  private static func finishing(_ records: [SegmentRecord]) -> [Step] {
    var steps: [Step] = records.flatMap { [.endFrame($0), .rename($0)] }
    var directories: [String] = []
    for record in records where !directories.contains(record.directory) {
      directories.append(record.directory)
    }
    steps += directories.map { .synchronizeFinished($0) }
    steps += records.map { .appendToManifest($0) }
    steps += records.filter(\.isJoined).map { .removeFrames($0) }
    return steps
  }

  private func flushSteps(_ index: Int) -> [Step] {
    let entry = self.entries[index]
    return entry.isDirty ? [.flush(entry.id), .synchronizeData(entry.id)] : []
  }

  /// The steps after which a file takes no more events.
  private mutating func endSteps(_ index: Int) -> [Step] {
    let entry = self.entries[index]
    var steps = self.flushSteps(index)
    if entry.phase == .open { steps.append(.release(entry.id)) }
    if entry.hasFrames {
      steps.append(.join(entry.id))
      let directory = self.record(of: entry.id).directory
      if !self.dirtyDirectories.contains(directory) { self.dirtyDirectories.append(directory) }
    } else if entry.phase == .kept {
      steps.append(.verify(self.record(of: entry.id), isFinished: false))
    }
    return steps
  }

  /// The record of a file that has been flushed, by this run or an earlier one.
  func record(of id: ID) -> SegmentRecord {
    guard let record = self.entries[self.index(of: id)].record else {
      preconditionFailure("file \(id.number) was never flushed")
    }
    return record
  }

  private func index(of id: ID) -> Int {
    guard let index = self.entries.firstIndex(where: { $0.id == id }) else {
      preconditionFailure("file \(id.number) is not in progress")
    }
    return index
  }
}

extension SegmentLedger {
  /// The state in which recovery finds a file of the checkpoint.
  struct Observation: Equatable {
    /// Size of the file in progress; nil if it does not exist.
    var partByteCount: Int?
    /// Size of the finished file; nil if it does not exist.
    var finishedByteCount: Int?
    /// Both names belong to one file.
    var isOneFile = false
    var isInManifest: Bool

    /// The file is in progress and nothing of it is finished, so that it may take more events.
    var isInProgress: Bool {
      self.partByteCount != nil && self.finishedByteCount == nil && !self.isInManifest
    }
  }

  static let damageRemedy =
    "Restore the file, or move it away with the checkpoint and run 'checkpoint restore "
    + "--from-manifest' to resume after the finished files. If none is finished, use 'run --accept-reset'"

  /// Steps that finish a file of the last checkpoint, whether open or closing: it is truncated to
  /// what was committed, and gets its end, its name and its manifest line. Repeating them from any
  /// point is safe.
  static func recovery(
    of record: SegmentRecord, observed: Observation
  ) throws(FileSinkError) -> [Step] {
    let manifest: [Step] = observed.isInManifest ? [] : [.appendToManifest(record)]
    switch (observed.partByteCount, observed.finishedByteCount) {
    case (.some, record.byteCount) where observed.isOneFile:
      // A crash in a file system without RENAME_NOREPLACE: the file has got its name by a link,
      // which has to be durable before the other name goes.
      return [
        .verify(record, isFinished: true), .synchronizeFinished(record.directory),
        .removePart(record), .synchronizeDirectory(record.directory),
      ] + manifest
    case (.some, .some):
      throw FileSinkError(
        .unknownFile,
        "\(record.name) exists, but the checkpoint lists it as still in progress "
          + "(\(record.part)): another run with this pipeline's name wrote here. Move one of "
          + "the two away; the checkpoint relies on the one in progress")
    case (.some(let byteCount), nil):
      guard byteCount >= record.committedByteCount else {
        throw FileSinkError(
          .inconsistent,
          "\(record.part) has \(byteCount) bytes, but \(record.committedByteCount) were "
            + "committed: the disk lost data or the file was changed. " + Self.damageRemedy)
      }
      return [
        .verify(record, isFinished: false), .endFrame(record), .rename(record),
        .synchronizeFinished(record.directory),
      ] + manifest
    case (nil, .some(let byteCount)):
      if observed.isInManifest { return [] }
      guard byteCount == record.byteCount else {
        throw FileSinkError(
          .inconsistent,
          "\(record.name) has \(byteCount) bytes, but the checkpoint says \(record.byteCount): "
            + "it was changed after it was finished. " + Self.damageRemedy)
      }
      return [
        .verify(record, isFinished: true), .synchronizeFinished(record.directory),
      ] + manifest
    case (nil, nil):
      // The file was finished and then removed by a reader.
      if observed.isInManifest { return [] }
      throw FileSinkError(
        .lostOutput,
        "\(record.name) is missing, both as a finished file and in progress, and the manifest "
          + "does not list it: the directory was moved or emptied, or the file was removed "
          + "before its line was in _manifest.ndjson. Put it back; or move the checkpoint away and run "
          + "'checkpoint restore --from-manifest' to resume after the finished files; or continue "
          + "without its events: 'run --accept-missing'")
    }
  }
}
