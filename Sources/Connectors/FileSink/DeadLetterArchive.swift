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
  /// - Throws: `FileSinkError`: `.inconsistent` for a file that is not the one in the manifest, `.io`;
  ///   whatever `body` throws.
  public func visit(
    openFiles state: JSONValue?, _ body: (StoredDeadLetter) throws -> Void
  ) throws {
    let cursor = try self.cursor(openFiles: state)
    while try cursor.next(body) {}
  }

  /// The letters of `visit`, some at a time, for whoever works between them.
  public func cursor(openFiles state: JSONValue?) throws -> DeadLetterCursor {
    var files: [DeadLetterCursor.File] = []
    var finished: Set<String> = []
    try ExportedFile.visit(.deadLetters, in: self.directory, pipeline: self.pipeline) { file in
      guard self.org == nil || file.org == self.org else { return }
      files.append(
        .init(paths: ["\(self.directory)/\(file.name)"], extent: .whole, exported: file))
      finished.insert(file.name)
    }
    for json in state?["files"]?.array ?? [] {
      let record = try SegmentRecord(json: json)
      // A file that a run has finished in the meantime has its final name.
      guard !finished.contains(record.name) else { continue }
      // The run may finish the file in between; it then begins with the same bytes.
      files.append(
        .init(
          paths: [record.part, record.name].map { "\(self.directory)/\($0)" },
          extent: .first(record.committedByteCount)))
    }
    return DeadLetterCursor(files, directory: self.directory)
  }

  /// The number of letters that were retried or dropped, and whose files are missing; 0 if it cannot
  /// be determined.
  func missingHandledCount(openFiles state: JSONValue?) -> Int64 {
    guard
      let ledger = try? DeadLetterLedger(
        directory: self.directory, pipeline: self.pipeline, state: state)
    else { return 0 }
    var count = ledger.outcomes.count
    do {
      try self.visit(openFiles: state) { letter in
        if ledger[letter] != nil { count -= 1 }
      }
    } catch {
      return 0
    }
    return Int64(count)
  }
}

/// Reads dead letters once, some at a time.
public final class DeadLetterCursor {
  struct File {
    /// The names that the file may have.
    var paths: [String]
    var extent: SegmentLines.Extent
    /// The manifest's description of a finished file.
    var exported: ExportedFile?
  }

  private var files: ArraySlice<File>
  private var open: (path: String, lines: SegmentLines.Cursor)?
  private let directory: String
  private let fileSystem = SystemFileSystem()

  init(_ files: [File], directory: String) {
    self.files = files[...]
    self.directory = directory
  }

  /// Calls `body` with the next letters: those that end in the next 128 KiB of text.
  ///
  /// - Returns: false after the last one.
  /// - Throws: as `DeadLetterArchive.visit`.
  public func next(_ body: (StoredDeadLetter) throws -> Void) throws -> Bool {
    var path = ""
    do {
      if self.open == nil {
        guard let file = self.files.popFirst() else { return false }
        self.open = try self.lines(of: file)
      }
      guard let open = self.open else { return true }
      path = open.path
      let goesOn = try open.lines.next { line, number in
        guard
          let json = try? JSONValue(
            parsing: Array(line), limits: JSONLimits(byteCount: SegmentLines.maxLineByteCount)),
          let letter = StoredDeadLetter(json: json)
        else { throw SegmentLines.Fault(line: number, reason: "it is not a dead letter") }
        try body(letter)
      }
      if !goesOn { self.open = nil }
      return true
    } catch let fault as SegmentLines.Fault {
      throw FileSinkError(
        .inconsistent,
        "\(path)\(fault.line > 0 ? " line \(fault.line)" : "") was changed: \(fault.reason); put "
          + "back a copy of the file")
    } catch let error as FileSystemError {
      throw FileSinkError(error)
    }
  }

  /// Nil if somebody has removed the file.
  private func lines(of file: File) throws -> (String, SegmentLines.Cursor)? {
    if let exported = file.exported,
      case .changed(let fault) = try OutputVerification.compare(exported, in: self.directory)
    {
      throw FileSinkError(
        .inconsistent,
        "\(fault); put back a copy of the file, or remove it and start 'run --accept-missing'")
    }
    for path in file.paths where try self.fileSystem.size(of: path) != nil {
      let lines = SegmentLines(path: path, extent: file.extent, fileSystem: self.fileSystem)
      return (path, try SegmentLines.Cursor(lines))
    }
    return nil
  }
}
