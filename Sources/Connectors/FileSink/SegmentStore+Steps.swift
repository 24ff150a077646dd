internal import Cryptography
internal import DurableFiles
internal import JSON
internal import Pipeline

extension SegmentStore {
  func perform(_ steps: [SegmentLedger.Step]) throws(FileSinkError) {
    for step in steps { try self.perform(step) }
  }

  private func perform(_ step: SegmentLedger.Step) throws(FileSinkError) {
    switch step {
    case .create, .resume:
      preconditionFailure("files are opened where their writer is made")
    case .flush(let id):
      let writer = self.writer(id)
      try self.attempt { () throws(FileSystemError) in try writer.flush(through: self.scratch) }
      self.ledger.flushed(id, writer.record(identity: self.identity))
    case .synchronizeData(let id):
      let writer = self.writer(id)
      try self.attempt { () throws(FileSystemError) in try writer.synchronize() }
    case .release(let id):
      self.writers[id] = nil
    case .join(let id):
      self.ledger.flushed(id, try self.join(self.ledger.record(of: id)))
    case .synchronizeDirectory(let directory):
      try self.attempt { () throws(FileSystemError) in
        try self.fileSystem.synchronizeDirectory(self.absolute(directory))
      }
    case .verify(let record, let isFinished):
      try self.verify(record, isFinished: isFinished)
    case .endFrame(let record):
      try self.attempt { () throws(FileSystemError) in
        let file = try OpenFile(
          self.absolute(record.part), [.write, .append], on: self.fileSystem)
        try file.truncate(to: record)
        try file.write(ZstdCompressor.endOfFrame)
        try file.synchronize()
        try file.checkIntact(byteCount: record.byteCount)
      }
    case .rename(let record):
      try self.attempt { () throws(FileSystemError) in
        try self.finished.place(self.absolute(record.part), as: record.name)
      }
    case .synchronizeFinished(let directory):
      try self.attempt { () throws(FileSystemError) in
        try self.finished.synchronize(directory)
      }
    case .removePart(let record):
      try self.attempt { () throws(FileSystemError) in
        try self.fileSystem.remove(self.absolute(record.part))
      }
    case .removeFrames(let record):
      try self.attempt { () throws(FileSystemError) in
        try self.fileSystem.remove(self.absolute(SegmentName.partPath(forFinal: record.name)))
      }
    case .appendToManifest(let record):
      try self.attempt { () throws(FileSystemError) in
        try self.finished.list(record.manifest, isFirst: self.finishedFileCount == 0)
      }
      self.lastFinished = record.name
      self.finishedFileCount += 1
      self.finishedByteCount += record.byteCount
      self.onFinished?(
        FinishedFile(
          name: record.name, events: record.manifest["events"]?.integer ?? 0,
          lines: record.manifest["lines"]?.integer ?? 0, byteCount: record.byteCount))
    }
  }

  private func writer(_ id: SegmentLedger.ID) -> SegmentWriter {
    guard let writer = self.writers[id] else {
      preconditionFailure("file \(id.number) is not open")
    }
    return writer
  }

  /// Reads the committed bytes and compares them with their hash.
  private func verify(_ record: SegmentRecord, isFinished: Bool) throws(FileSinkError) {
    guard isFinished else {
      _ = try self.verifiedHash(of: record)
      return
    }
    let sha256 = try self.attempt { () throws(FileSystemError) in
      try self.finished.sha256(of: record.name, byteCount: record.byteCount)
    }
    guard sha256 == record.sha256 else {
      throw self.fail(
        .changed(self.absolute(record.name), found: sha256, expected: record.sha256))
    }
  }

  /// The hash of the committed bytes of a file in progress, which are as they were written.
  func verifiedHash(of record: SegmentRecord) throws(FileSinkError) -> SHA256 {
    let path = self.absolute(record.part)
    let hash = try self.attempt { () throws(FileSystemError) in
      try self.fileSystem.hash(of: path, byteCount: record.committedByteCount)
    }
    var finished = hash.copy()
    finished.update(ZstdCompressor.endOfFrame)
    let sha256 = finished.snapshot().hex
    guard sha256 == record.sha256 else {
      throw self.fail(.changed(path, found: sha256, expected: record.sha256))
    }
    return hash
  }

  func absolute(_ path: String) -> String {
    path.isEmpty ? self.directory : "\(self.directory)/\(path)"
  }

  /// Performs file system calls. After a failure, everything else is refused.
  @discardableResult
  func attempt<Result: ~Copyable>(
    _ body: () throws(FileSystemError) -> Result
  ) throws(FileSinkError) -> Result {
    if let failure { throw failure }
    do throws(FileSystemError) {
      return try body()
    } catch {
      throw self.fail(FileSinkError(error))
    }
  }

  func fail(_ error: FileSinkError) -> FileSinkError {
    self.failure = error
    return error
  }
}
