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
    case .create:
      preconditionFailure("files are created where their writer is made")
    case .flush(let id):
      let writer = self.writer(id)
      try self.attempt { () throws(FileSystemError) in try writer.flush(through: self.scratch) }
      self.ledger.flushed(id, writer.record(identity: self.identity))
    case .synchronizeData(let id):
      let writer = self.writer(id)
      try self.attempt { () throws(FileSystemError) in try writer.synchronize() }
    case .release(let id):
      self.writers[id] = nil
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
        // A run that was killed may have written more than it committed, but never less.
        try file.checkIntact(
          byteCount: max(file.status().byteCount, record.committedByteCount))
        try file.truncate(to: record.committedByteCount)
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
    let path = self.absolute(isFinished ? record.name : record.part)
    let sha256 = try self.attempt { () throws(FileSystemError) -> String in
      guard !isFinished else {
        return try self.finished.sha256(of: record.name, byteCount: record.byteCount)
      }
      var hash = try self.fileSystem.hash(of: path, byteCount: record.committedByteCount)
      hash.update(ZstdCompressor.endOfFrame)
      return hash.snapshot().hex
    }
    guard sha256 == record.sha256 else {
      throw self.fail(
        FileSinkError(
          .inconsistent,
          "\(path): its contents are not what was written (sha256 \(sha256), but the "
            + "checkpoint says \(record.sha256)): the disk lost data or the file was changed. "
            + SegmentLedger.damageRemedy))
    }
  }

  func absolute(_ path: String) -> String {
    path.isEmpty ? self.directory : "\(self.directory)/\(path)"
  }

  /// Performs file system calls. After a failure, everything else is refused.
  @discardableResult
  func attempt<Result>(
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
