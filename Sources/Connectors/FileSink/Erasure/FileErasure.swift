internal import DurableFiles
package import JSON
package import Pipeline

/// Clears the values of some records in the finished files of a directory: the one exception to the
/// rule that a finished file never changes.
///
/// A file with such lines is replaced by one with another name, and the manifest says so. A folder is
/// exchanged in one step, as by `FileCompaction`; after an error or a crash, the next run or erasure
/// completes the exchange or takes it back. Files in progress have to be finished before.
///
/// Driven by one thread, which it blocks.
package final class FileErasure {
  private let directory: String
  private let pipeline: String
  private let kind: SegmentKind
  /// The object's folder; nil for dead letters.
  private let objectFolder: String?
  private let level: Int
  private let state: JSONValue?
  private let editor: any ErasingEditor
  private let fileSystem: any FileSystem
  private let exchange: FolderExchange

  /// A finished file.
  private struct File {
    var name: String
    /// Its line in the manifest.
    var line: JSONValue
    var exported: ExportedFile
    var parsed: SegmentName.Parsed
  }

  /// Erases records of an object from the files of a sink.
  ///
  /// - Parameters:
  ///   - state: the sink's state in the checkpoint, which names the files in progress.
  ///   - pause: waits, on the caller's thread.
  package convenience init(
    _ records: [RecordID], of entity: String, in configuration: FileSinkConfiguration,
    state: JSONValue?, pause: @escaping (Duration) -> Void
  ) {
    let permissions = configuration.permissions.map {
      FilePermissions(mode: $0.mode, groupID: $0.groupID)
    }
    self.init(
      records, of: entity, in: configuration, state: state,
      fileSystem: SystemFileSystem(permissions: permissions), pause: pause)
  }

  init(
    _ records: [RecordID], of entity: String, in configuration: FileSinkConfiguration,
    state: JSONValue? = nil, fileSystem: any FileSystem,
    pause: @escaping (Duration) -> Void = { _ in }
  ) {
    self.directory = configuration.directory
    self.pipeline = configuration.pipeline
    self.kind = .records
    self.objectFolder = SegmentName.sanitized(entity)
    self.level = configuration.compressionLevel
    self.state = state
    self.editor = RecordEditor(records)
    self.fileSystem = fileSystem
    self.exchange = FolderExchange(
      .erasure, in: configuration.directory, pipeline: configuration.pipeline, on: fileSystem,
      pause: pause)
  }

  /// Changes dead letters.
  ///
  /// - Parameters:
  ///   - letters: the members that each gets for its payload.
  ///   - directory: that of the dead letters, absolute.
  ///   - state: their state in the checkpoint.
  package convenience init(
    _ letters: [DeadLetterLedger.Key: [JSONMember]], inDeadLettersOf pipeline: String,
    directory: String,
    state: JSONValue?
  ) {
    self.init(
      letters, inDeadLettersOf: pipeline, directory: directory, state: state,
      fileSystem: SystemFileSystem())
  }

  init(
    _ letters: [DeadLetterLedger.Key: [JSONMember]], inDeadLettersOf pipeline: String,
    directory: String,
    state: JSONValue?, fileSystem: any FileSystem
  ) {
    self.directory = directory
    self.pipeline = pipeline
    self.kind = .deadLetters
    self.objectFolder = nil
    self.level = 3
    self.state = state
    self.editor = LetterEditor(letters)
    self.fileSystem = fileSystem
    self.exchange = FolderExchange(
      .erasure, in: directory, pipeline: pipeline, .deadLetters, on: fileSystem, pause: { _ in })
  }

  /// What was changed in a directory, or would be.
  package struct Result: Sendable, Equatable {
    /// Files by their names before, with the number of lines that are cleared.
    package var files: [(name: String, lineCount: Int)] = []
    /// Why files could not be searched or changed; as text.
    package var faults: [String] = []

    package init() {}

    package var lineCount: Int { self.files.reduce(0) { $0 + $1.lineCount } }

    package static func == (left: Self, right: Self) -> Bool {
      left.faults == right.faults
        && left.files.elementsEqual(right.files) {
          $0.name == $1.name && $0.lineCount == $1.lineCount
        }
    }
  }

  /// Says what `run` would change. Takes no lock and writes nothing. Also reads the files in progress.
  ///
  /// - Throws: `FileSinkError`.
  package func examine() throws(FileSinkError) -> Result {
    let inUse = FilesInUse(readingFrom: self.directory, on: self.fileSystem)
    defer { withExtendedLifetime(inUse) {} }
    var result = Result()
    for (_, files) in try self.folders() {
      for file in files { _ = try self.search(file, &result) }
    }
    for record in try SegmentRecord.records(in: self.state, directory: self.directory)
    where self.isSearched(record.name) {
      let lines = SegmentLines(
        path: "\(self.directory)/\(record.part)", extent: .first(record.committedByteCount),
        fileSystem: self.fileSystem)
      if try self.exists(lines.path) { _ = try self.search(record.part, lines, &result) }
    }
    return result
  }

  /// Clears the lines. Does nothing where that is done already.
  ///
  /// A file that cannot be read is named in the result, and the other files are changed.
  ///
  /// - Throws: `FileSinkError`: `.inconsistent` for a manifest that was edited; `.locked` while others
  ///   use the directory; `.io`.
  package func run() throws(FileSinkError) -> Result {
    var result = Result()
    guard try self.exists(self.directory) else { return result }
    let lock = try SegmentStore.lock(
      self.directory, self.kind, pipeline: self.pipeline, on: self.fileSystem)
    try self.exchange.recovery.complete()
    try self.exchange.claim {}
    for (folder, files) in try self.folders() {
      var found: [File] = []
      for file in files where try self.search(file, &result) { found.append(file) }
      guard !found.isEmpty else { continue }
      try self.rewrite(found, of: folder, &result)
    }
    try self.exchange.finish()
    _ = consume lock
    return result
  }

  private func rewrite(
    _ files: [File], of folder: String, _ result: inout Result
  ) throws(FileSinkError) {
    do throws(FileSinkError) {
      var lines: [JSONValue]?
      if try self.exchange.isQuiet(folder) {
        lines = try self.exchange.exchange(folder) { staging throws(FileSinkError) in
          var lines: [JSONValue] = []
          for file in files { lines.append(try self.rewrite(file, of: folder, in: staging)) }
          return lines
        }
      }
      guard lines == nil else { return }
      result.faults.append(
        "\(self.directory)/\(folder) has a file in progress of another pipeline, a folder, or is a "
          + "symbolic link, so its files were not rewritten; run 'erase' for that pipeline first, or "
          + "move the folder or link away, and run 'erase' again")
    } catch {
      guard error.code == .inconsistent else { throw error }
      result.faults.append(error.message)
    }
    let names = Set(files.map(\.name))
    result.files.removeAll { names.contains($0.name) }
  }

  // MARK: Files

  private func isSearched(_ name: String) -> Bool {
    self.objectFolder.map { name.utf8.starts(with: "\($0)/".utf8) } ?? true
  }

  /// The finished files of this pipeline that exist, by folder.
  private func folders() throws(FileSinkError) -> [(folder: String, files: [File])] {
    var folders: [String: [File]] = [:]
    let matcher = SegmentName.Matcher(kind: self.kind, pipeline: self.pipeline)
    let list = try FileList(
      in: self.directory, pipeline: self.pipeline, self.kind, on: self.fileSystem)
    try list.visitPresent { line, name in
      let start = name.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
      let path = String(decoding: name, as: UTF8.self)
      guard self.isSearched(path),
        let parsed = matcher.parse(UnsafeBufferPointer(rebasing: name[start...])),
        let json = try? JSONValue(parsing: Array(line)),
        json["pipeline"]?.string == self.pipeline, let exported = ExportedFile(json: json)
      else { return }
      let folder = String(decoding: name[..<max(0, start - 1)], as: UTF8.self)
      // The manifest may have been edited.
      guard FolderSwitch.isFolder(folder, self.kind) else { return }
      folders[folder, default: []].append(
        File(name: path, line: json, exported: exported, parsed: parsed))
    }
    var existing: [(folder: String, files: [File])] = []
    for (folder, files) in folders.sorted(by: { $0.key < $1.key }) {
      var present: [File] = []
      // A loader may have removed some.
      for file in files where try self.exists("\(self.directory)/\(file.name)") {
        present.append(file)
      }
      existing.append((folder, present))
    }
    return existing
  }

  private func exists(_ path: String) throws(FileSinkError) -> Bool {
    do throws(FileSystemError) {
      return try self.fileSystem.status(at: path) != nil
    } catch {
      throw FileSinkError(error)
    }
  }

  private func source(_ file: File) -> SegmentLines {
    SegmentLines(
      path: "\(self.directory)/\(file.name)", extent: .whole, fileSystem: self.fileSystem)
  }

  private func search(_ file: File, _ result: inout Result) throws(FileSinkError) -> Bool {
    try self.search(file.name, self.source(file), &result)
  }

  /// Counts the lines of a file that are to be cleared.
  private func search(
    _ name: String, _ lines: SegmentLines, _ result: inout Result
  ) throws(FileSinkError) -> Bool {
    var count = 0
    do {
      try lines.read { line, number in
        if try self.editor.edited(line, number: number) != nil { count += 1 }
      }
    } catch let fault as SegmentLines.Fault {
      result.faults.append(
        "\(lines.path)\(fault.line > 0 ? " line \(fault.line)" : ""): \(fault.reason). The file was not "
          + "changed")
      return false
    } catch let error as FileSystemError {
      throw FileSinkError(error)
    } catch {
      preconditionFailure("neither the file system's nor of the lines: \(error)")
    }
    if count > 0 { result.files.append((name, count)) }
    return count > 0
  }

  /// Writes a file anew, and reads it back.
  ///
  /// - Returns: the line of the manifest.
  private func rewrite(
    _ file: File, of folder: String, in staging: String
  ) throws(FileSinkError) -> JSONValue {
    let matcher = SegmentName.Matcher(kind: self.kind, pipeline: self.pipeline)
    let source = self.source(file)
    guard
      let name = SegmentName.rewrittenPath(of: file.name, file.parsed, kind: self.kind),
      let base = FolderSwitch.base(name, in: folder), matcher.ownership(of: base) == .finished,
      let sha256 = file.exported.sha256
    else {
      throw FileSinkError(
        .inconsistent,
        "\(file.name) in the manifest has a name that this program does not give. "
          + LineCopy.Evidence.manifest.remedy)
    }
    let path = "\(staging)/\(base)"
    let copy = try LineCopy(to: path, level: self.level, on: self.fileSystem)
    do throws(FileSystemError) {
      try self.fileSystem.setPermissions(of: path, like: source.path)
    } catch {
      throw FileSinkError(error)
    }
    try copy.append(source, sha256: sha256, accordingTo: .manifest) { line in
      // The search has judged every line.
      (try? self.editor.edited(line, number: 0)) ?? nil
    }
    guard copy.lineCount == file.exported.lines else {
      throw FileSinkError(
        .inconsistent,
        "\(source.path) has \(copy.lineCount) lines, the manifest says \(file.exported.lines). "
          + LineCopy.Evidence.manifest.remedy)
    }
    let result = try copy.finish(endsFrame: true)
    try self.exchange.check(path, result, lineCount: copy.lineCount)
    return file.line.setting([
      ("name", .string(name)), ("bytes", .integer(result.byteCount)),
      ("uncompressed_bytes", .integer(result.uncompressedByteCount)),
      ("sha256", .string(result.sha256)), ("replaces", .array([.string(file.name)])),
    ])
  }
}
