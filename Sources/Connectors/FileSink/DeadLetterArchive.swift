internal import DurableFiles
package import JSON
internal import Pipeline

/// Reads the dead letters in a pipeline's directory. Takes no lock and writes nothing, so it can be
/// used during a run.
package struct DeadLetterArchive {
  private let directory: String
  private let pipeline: String
  /// The pipeline's org; letters of other orgs are skipped.
  private let org: String?

  /// - Parameter directory: absolute.
  package init(directory: String, pipeline: String, org: String?) {
    self.directory = directory
    self.pipeline = pipeline
    self.org = org
  }

  /// Calls `body` with each letter, in the order of the manifest, then those in files in progress.
  ///
  /// Skips files that are missing, which `OutputCheck` reports.
  ///
  /// - Parameter state: the checkpoint's state of the dead letters; nil if there is none.
  /// - Returns: the files that were changed or cannot be read.
  /// - Throws: `FileSinkError` for the manifest; whatever `body` throws.
  @discardableResult
  package func visit(
    openFiles state: JSONValue?, _ body: (StoredDeadLetter) throws -> Void
  ) throws -> [DeadLetterCursor.DamagedFile] {
    let cursor = try self.cursor(openFiles: state)
    while try cursor.next(body) {}
    return cursor.damaged
  }

  /// The letters of `visit`, some at a time, for whoever works between them.
  package func cursor(openFiles state: JSONValue?) throws -> DeadLetterCursor {
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

  /// The finished files that are missing or have another size, although their letters were dropped.
  ///
  /// - Throws: `FileSinkError`.
  package func droppedFiles() throws(FileSinkError) -> [LostLetters] {
    let ledger = try DeadLetterLedger(directory: self.directory, pipeline: self.pipeline)
    guard !ledger.lostFiles.isEmpty else { return [] }
    var dropped: [LostLetters] = []
    let fileSystem = SystemFileSystem()
    try ExportedFile.visit(.deadLetters, in: self.directory, pipeline: self.pipeline) { file in
      guard self.org == nil || file.org == self.org, let count = ledger.lostFiles[file.name],
        (try? fileSystem.size(of: "\(self.directory)/\(file.name)")).map({ $0 != Int(file.bytes) })
          ?? true
      else { return }
      dropped.append(LostLetters(file, count: count))
    }
    return dropped
  }

  /// What is lost with files that cannot be read: those without a waiting letter are left out.
  ///
  /// - Parameter state: as for `visit`.
  func lost(_ files: [ExportedFile], openFiles state: JSONValue?) -> [LostLetters] {
    let ledger = try? DeadLetterLedger(
      directory: self.directory, pipeline: self.pipeline, state: state)
    let files = files.filter { ledger?.lostFiles[$0.name] == nil }
    guard !files.isEmpty else { return [] }
    var handled = Set((ledger?.outcomes ?? [:]).keys)
    var waiting: [String: [String]] = [:]
    // Without the letters that are there, none counts as retried or dropped.
    let isRead =
      (try? self.visit(openFiles: state) { letter in
        if handled.remove(DeadLetterLedger.Key(letter)) == nil {
          waiting[letter.letter.topic, default: []].append(letter.letter.replayID.hex)
        }
      }) != nil
    if !isRead { handled = [] }
    var places: [String: [Int64]] = [:]
    for key in handled {
      let id = key.id.description
      guard let end = id.lastIndex(of: "-"), let ordinal = Int64(id[id.index(after: end)...])
      else { continue }
      places[String(id[...end]), default: []].append(ordinal)
    }
    return files.compactMap { file in
      var lost = LostLetters(file, count: file.events)
      guard let range = lost.range else { return lost }
      let id = StoredDeadLetter.ID(topic: file.topic, epoch: file.epoch, ordinal: 0)
      let stem = String(id.description.dropLast())
      // A letter is in one file, even where the ranges of two overlap.
      var rest: [Int64] = []
      for ordinal in places[stem] ?? [] {
        if range.ordinals.contains(ordinal), lost.count > 0 {
          lost.count -= 1
        } else {
          rest.append(ordinal)
        }
      }
      places[stem] = rest
      lost.waitingReplayIDs = waiting[file.topic] ?? []
      return lost.count > 0 ? lost : nil
    }
  }
}

/// Letters that cannot be read, because their file is missing or was changed.
package struct LostLetters: Sendable, Equatable {
  package struct Range: Sendable, Equatable {
    package var topic: String
    package var epoch: Int
    package var ordinals: ClosedRange<Int64>
  }

  /// The file's name in the manifest.
  package var name: String
  /// The places of its events; nil for the manifest, with which all letters are lost.
  package var range: Range?
  /// The number of letters that were neither retried nor dropped; 0 for the manifest.
  package var count: Int64
  /// Letters of the topic in other files, which still wait; hexadecimal.
  package var waitingReplayIDs: [String] = []

  init(_ file: ExportedFile, count: Int64) {
    self.name = file.name
    self.count = count
    self.range = Range(
      topic: file.topic, epoch: file.epoch,
      ordinals: min(file.firstOrdinal, file.lastOrdinal)...max(file.firstOrdinal, file.lastOrdinal))
  }

  init(manifest name: String) { (self.name, self.count) = (name, 0) }
}

/// Reads dead letters once, some at a time.
package final class DeadLetterCursor {
  struct File {
    /// The names that the file may have.
    var paths: [String]
    var extent: SegmentLines.Extent
    /// The manifest's description of a finished file.
    var exported: ExportedFile?
  }

  /// A file that was changed or cannot be read.
  package struct DamagedFile: Sendable, Equatable {
    /// What was found, without a remedy.
    package var fault: String
    /// It does not have the size in the manifest, which `OutputCheck` reports.
    package var hasOtherSize = false
    /// Nil for a file in progress.
    var exported: ExportedFile?
  }

  /// The files so far that could not be read, or not to their end. Their letters are not lent, or
  /// only those before the fault.
  package private(set) var damaged: [DamagedFile] = []

  private var files: ArraySlice<File>
  private var open: (file: File, path: String, lines: SegmentLines.Cursor)?
  private let directory: String
  private let fileSystem = SystemFileSystem()

  init(_ files: [File], directory: String) {
    self.files = files[...]
    self.directory = directory
  }

  /// Calls `body` with the next letters: those that end in the next 128 KiB of text.
  ///
  /// - Returns: false after the last one.
  /// - Throws: whatever `body` throws.
  package func next(_ body: (StoredDeadLetter) throws -> Void) throws -> Bool {
    if self.open == nil {
      guard let file = self.files.popFirst() else { return false }
      do {
        try self.begin(file)
      } catch let error as FileSystemError {
        self.damaged.append(DamagedFile(fault: "\(error)", exported: file.exported))
      }
    }
    guard let open = self.open else { return true }
    var hasFailed = false
    do {
      let goesOn = try open.lines.next { line, number in
        guard
          let json = try? JSONValue(
            parsing: Array(line), limits: JSONLimits(byteCount: SegmentLines.maxLineByteCount)),
          let letter = StoredDeadLetter(json: json)
        else { throw SegmentLines.Fault(line: number, reason: "it is not a dead letter") }
        do {
          try body(letter)
        } catch {
          hasFailed = true
          throw error
        }
      }
      if !goesOn { self.open = nil }
    } catch let error where !hasFailed && (error is SegmentLines.Fault || error is FileSystemError)
    {
      self.open = nil
      let fault = (error as? SegmentLines.Fault).map { fault in
        "\(open.path)\(fault.line > 0 ? " line \(fault.line)" : "") was changed: \(fault.reason)"
      }
      self.damaged.append(DamagedFile(fault: fault ?? "\(error)", exported: open.file.exported))
    }
    return true
  }

  /// Opens a file, unless it is missing or was changed.
  private func begin(_ file: File) throws {
    if let exported = file.exported {
      switch try OutputVerification.compare(exported, in: self.directory) {
      case .equal: break
      case .missing: return
      case .changed(let fault):
        let size = try self.fileSystem.size(of: "\(self.directory)/\(exported.name)")
        self.damaged.append(
          DamagedFile(
            fault: fault, hasOtherSize: size != Int(exported.bytes), exported: exported))
        return
      }
    }
    for path in file.paths where try self.fileSystem.size(of: path) != nil {
      let lines = SegmentLines(path: path, extent: file.extent, fileSystem: self.fileSystem)
      self.open = (file, path, try SegmentLines.Cursor(lines))
      return
    }
    guard file.exported == nil, let name = file.paths.last else { return }
    self.damaged.append(
      DamagedFile(fault: "\(name) is missing, both as a finished file and in progress"))
  }
}
