internal import DurableFiles
public import JSON

/// The dead letters of a pipeline as they lie in their directory. Takes no lock and writes nothing,
/// so it may be used beside a run.
public struct DeadLetterArchive {
  private let directory: String
  private let pipeline: String
  /// The pipeline's org; letters of others are not its own.
  private let org: String?

  /// A payload is a few megabytes at most, by the service's limit on messages.
  private static let maxLineByteCount = 64 << 20

  /// - Parameter directory: absolute.
  public init(directory: String, pipeline: String, org: String?) {
    self.directory = directory
    self.pipeline = pipeline
    self.org = org
  }

  /// Lends each letter, in the order of the manifest and, behind it, of the files in progress.
  ///
  /// Files that somebody has taken away are passed over.
  ///
  /// - Parameter state: what the checkpoint holds of the dead letters; nil when there is none.
  /// - Throws: `FileSinkError`: `.inconsistent` for a file that was edited, `.io`; whatever `body`
  ///   throws.
  public func visit(
    openFiles state: JSONValue?, _ body: (StoredDeadLetter) throws -> Void
  ) throws {
    let fileSystem = SystemFileSystem()
    var finished: [(name: String, byteCount: Int)] = []
    try ExportedFile.visit(.deadLetters, in: self.directory, pipeline: self.pipeline) { file in
      guard self.org == nil || file.org == self.org else { return }
      finished.append((file.name, Int(file.bytes)))
    }
    for file in finished {
      let path = "\(self.directory)/\(file.name)"
      guard try self.exists(path, on: fileSystem) else { continue }
      try self.read(path, byteCount: file.byteCount, on: fileSystem, body)
    }
    let known = Set(finished.map(\.name))
    for json in state?["files"]?.array ?? [] {
      let record = try SegmentRecord(json: json)
      // One that a run has finished meanwhile is under its other name.
      guard !known.contains(record.name) else { continue }
      for name in [record.part, record.name] {
        let path = "\(self.directory)/\(name)"
        guard try self.exists(path, on: fileSystem) else { continue }
        try self.read(path, byteCount: record.committedByteCount, on: fileSystem, body)
        break
      }
    }
  }

  private func exists(
    _ path: String, on fileSystem: SystemFileSystem
  ) throws(FileSinkError) -> Bool {
    do throws(FileSystemError) {
      return try fileSystem.size(of: path) != nil
    } catch {
      throw FileSinkError(error)
    }
  }

  private func read(
    _ path: String, byteCount: Int, on fileSystem: SystemFileSystem,
    _ body: (StoredDeadLetter) throws -> Void
  ) throws {
    var number = 0
    try ZstdDecompressor().lines(
      of: path, byteCount: byteCount, maxLineByteCount: Self.maxLineByteCount, on: fileSystem
    ) { line in
      number += 1
      guard
        let json = try? JSONValue(
          parsing: Array(line), limits: JSONLimits(byteCount: Self.maxLineByteCount)),
        let letter = StoredDeadLetter(json: json)
      else {
        throw FileSinkError(
          .inconsistent, "\(path) line \(number) is not a dead letter: the file was changed")
      }
      try body(letter)
    }
  }
}
