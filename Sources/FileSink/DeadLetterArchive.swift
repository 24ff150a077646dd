internal import DurableFiles
public import JSON

/// Reads the dead letters in a pipeline's directory. Takes no lock and writes nothing, so it can be
/// used during a run.
public struct DeadLetterArchive {
  private let directory: String
  private let pipeline: String
  /// The pipeline's org; letters of other orgs are skipped.
  private let org: String?

  /// - Parameter directory: absolute.
  public init(directory: String, pipeline: String, org: String?) {
    self.directory = directory
    self.pipeline = pipeline
    self.org = org
  }

  /// Calls `body` with each letter, in the order of the manifest, then those in files in progress.
  ///
  /// Skips files that somebody has removed.
  ///
  /// - Parameter state: the checkpoint's state of the dead letters; nil if there is none.
  /// - Throws: `FileSinkError`: `.inconsistent` for a file that was edited, `.io`; whatever `body`
  ///   throws.
  public func visit(
    openFiles state: JSONValue?, _ body: (StoredDeadLetter) throws -> Void
  ) throws {
    let fileSystem = SystemFileSystem()
    var finished: [String] = []
    try ExportedFile.visit(.deadLetters, in: self.directory, pipeline: self.pipeline) { file in
      guard self.org == nil || file.org == self.org else { return }
      finished.append(file.name)
    }
    for name in finished {
      let path = "\(self.directory)/\(name)"
      guard try self.exists(path, on: fileSystem) else { continue }
      try self.read(SegmentLines(path: path, extent: .whole, fileSystem: fileSystem), body)
    }
    let known = Set(finished)
    for json in state?["files"]?.array ?? [] {
      let record = try SegmentRecord(json: json)
      // A file that a run has finished in the meantime has its final name.
      guard !known.contains(record.name) else { continue }
      for name in [record.part, record.name] {
        let path = "\(self.directory)/\(name)"
        guard try self.exists(path, on: fileSystem) else { continue }
        // The run may finish the file in between; it then begins with the same bytes.
        let lines = SegmentLines(
          path: path, extent: .first(record.committedByteCount), fileSystem: fileSystem)
        try self.read(lines, body)
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
    _ lines: SegmentLines, _ body: (StoredDeadLetter) throws -> Void
  ) throws {
    do {
      try lines.read { line, number in
        guard
          let json = try? JSONValue(
            parsing: Array(line), limits: JSONLimits(byteCount: SegmentLines.maxLineByteCount)),
          let letter = StoredDeadLetter(json: json)
        else { throw SegmentLines.Fault(line: number, reason: "it is not a dead letter") }
        try body(letter)
      }
    } catch let fault as SegmentLines.Fault {
      throw FileSinkError(
        .inconsistent,
        "\(lines.path)\(fault.line > 0 ? " line \(fault.line)" : "") was changed: \(fault.reason); put "
          + "back a copy of the file")
    } catch let error as FileSystemError {
      throw FileSinkError(error)
    }
  }
}
