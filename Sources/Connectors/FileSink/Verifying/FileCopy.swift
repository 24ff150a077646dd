internal import DurableFiles
internal import Glibc
internal import JSON
internal import Pipeline

/// The records of one object as the files of a pipeline have them, in a scratch file sorted by ID.
struct FileCopy {
  let records: EntryFile

  /// The files from which the copy is built.
  struct Source {
    /// Absolute.
    var directory: String
    var pipeline: String
    var entity: String
    var topic: String
    var org: String
    /// The sink's state in the checkpoint; read before the manifest, so that a file finished in
    /// between is in one of them.
    var state: JSONValue?
    /// Records that do not count.
    var erased = ErasedRecords()
  }

  /// - Parameter ids: the records to read; nil reads all.
  /// - Throws: `FileSinkError.lostOutput` if a file of the manifest is missing; `.inconsistent` for
  ///   content that this program does not write; `.io`.
  static func read(
    _ source: Source, _ columns: ComparedColumns, ids: Set<[UInt8]>? = nil, scratch: ScratchFiles,
    limits: EntrySorter.Limits = .init()
  ) throws(FileSinkError) -> FileCopy {
    let inUse = FilesInUse(readingFrom: source.directory)
    defer { withExtendedLifetime(inUse) {} }
    do {
      var sorter = EntrySorter(scratch, limits: limits)
      var reader = FileReader(
        columns: columns, ids: ids, entity: source.entity, erased: source.erased)
      for file in try Self.files(of: source) { try reader.read(file, into: &sorter) }
      let sorted = try sorter.finish()
      return FileCopy(records: try Self.fold(sorted, columns, scratch))
    } catch let error as FileSinkError {
      throw error
    } catch let error as FileSystemError {
      throw FileSinkError(error)
    } catch {
      preconditionFailure("neither the file system's nor this module's: \(error)")
    }
  }

  // MARK: Files

  struct File {
    var lines: SegmentLines
    /// The file once it is finished; nil for finished files.
    var finished: SegmentLines?
    var epoch: Int64
    var firstOrdinal: Int64
    /// The pass that read its records; nil for events.
    var pass: Int64?

    /// The file no longer counts, because all its events precede a complete pass, or because a pass
    /// newer than its own is complete.
    func isCovered(by complete: FilePass) -> Bool {
      if let pass = self.pass { return pass < Int64(complete.number) }
      return (self.epoch, self.firstOrdinal) < (Int64(complete.epoch), complete.nextOrdinal)
    }
  }

  /// Finished files according to the manifest, and the durable part of those in progress according
  /// to the checkpoint.
  private static func files(of source: Source) throws -> [File] {
    let fileSystem = SystemFileSystem()
    let matcher = SegmentName.Matcher(kind: .records, pipeline: source.pipeline)
    let folder = SegmentName.sanitized(source.entity) + "/"
    var files: [File] = []
    var names: Set<String> = []
    func add(_ name: String, _ lines: SegmentLines, finished: SegmentLines? = nil) {
      var base = String(
        name[(name.lastIndex(of: "/").map(name.index(after:)) ?? name.startIndex)...])
      guard let parsed = base.withUTF8({ matcher.parse($0) }), names.insert(name).inserted else {
        return
      }
      files.append(
        File(
          lines: lines, finished: finished, epoch: parsed.epoch,
          firstOrdinal: parsed.firstOrdinal, pass: parsed.pass))
    }
    for kind in [ExportedFile.Kind.records, .redriven, .snapshots] {
      try ExportedFile.visit(kind, in: source.directory, pipeline: source.pipeline) { file in
        guard file.topic == source.topic, file.org == source.org, file.name.hasPrefix(folder) else {
          return
        }
        add(
          file.name,
          SegmentLines(
            path: "\(source.directory)/\(file.name)", extent: .whole, fileSystem: fileSystem))
      }
    }
    for json in source.state?["files"]?.array ?? [] {
      let record = try SegmentRecord(json: json)
      guard record.manifest["topic"]?.string == source.topic,
        record.manifest["org"]?.string == source.org, record.name.hasPrefix(folder)
      else {
        continue
      }
      // A finished file begins with the same bytes, unless several frames were joined.
      let committed = SegmentLines.Extent.first(record.committedByteCount)
      add(
        record.name,
        SegmentLines(
          path: "\(source.directory)/\(record.part)", extent: committed, fileSystem: fileSystem),
        finished: SegmentLines(
          path: "\(source.directory)/\(record.name)",
          extent: record.continuation == nil ? committed : .whole, fileSystem: fileSystem))
    }
    return try Self.withoutCovered(files, source)
  }

  /// Drops files whose loss does not matter, because all records have been read again since.
  private static func withoutCovered(_ files: [File], _ source: Source) throws -> [File] {
    let passes = try FilePass.passes(in: source.state, directory: source.directory)
    guard let complete = passes[source.entity], complete.finishedAt != nil else { return files }
    return try files.filter { file in
      guard file.lines.extent == .whole, file.isCovered(by: complete) else { return true }
      return try file.lines.fileSystem.size(of: file.lines.path) != nil
    }
  }

  // MARK: Folding

  /// The class of a line in its key, after the ID: reads come before changes.
  static let (readClass, changeClass): (UInt8, UInt8) = (0, 1)
  /// A byte that no ID contains, so that keys sort by ID first.
  static let separator: UInt8 = 0
  /// The key after the ID: separator, class, epoch, ordinal, line.
  static let placeByteCount = 26

  private static func fold(
    _ lines: SortedEntries, _ columns: ComparedColumns, _ scratch: ScratchFiles
  ) throws -> EntryFile {
    let writer = try EntryWriter(scratch)
    let reader = try lines.reader()
    var stream = RecordStream(columnCount: columns.count)
    var id: [UInt8] = []
    var isChanging = false
    var bytes: [UInt8] = []
    func end() throws {
      guard !id.isEmpty, stream.isKnown else { return }
      if !isChanging { stream.beginChanges() }
      stream.finish(into: &bytes)
      try writer.append(key: id, value: bytes)
    }
    while try reader.next() {
      let (key, value) = (reader.key, reader.value)
      let idCount = key.count - Self.placeByteCount
      if !key[..<idCount].elementsEqual(id) {
        try end()
        id = Array(key[..<idCount])
        stream.begin()
        isChanging = false
      }
      if key[idCount + 1] == Self.readClass {
        stream.take(read: RecordPatch(value), value)
        continue
      }
      if !isChanging { stream.beginChanges() }
      isChanging = true
      stream.take(change: RecordPatch(value), value)
    }
    try end()
    return try writer.finish()
  }
}

/// Adds the lines of files to a sorter.
private struct FileReader {
  private var line: RecordLine
  private let ids: Set<[UInt8]>?
  private let entity: String
  private let erased: ErasedRecords
  private var id: [UInt8] = []
  private var bytes: [UInt8] = []

  init(columns: ComparedColumns, ids: Set<[UInt8]>?, entity: String, erased: ErasedRecords) {
    self.entity = entity
    self.line = RecordLine(columns)
    self.erased = erased
    self.ids = ids
  }

  private func isErased(_ id: [UInt8]) -> Bool {
    !self.erased.isEmpty && id.withUnsafeBufferPointer { self.erased.contains($0, of: self.entity) }
  }

  mutating func read(_ file: FileCopy.File, into sorter: inout EntrySorter) throws {
    do {
      try file.lines.read { text, number in
        let head: RecordLine.Head?
        do throws(RecordLine.Fault) {
          head = try self.line.read(
            text, epoch: file.epoch, ordinal: file.firstOrdinal, id: &self.id, bytes: &self.bytes)
        } catch {
          throw SegmentLines.Fault(line: number, reason: error.reason)
        }
        guard let head, self.ids?.contains(self.id) ?? true, !self.isErased(self.id) else { return }
        let isRead = head.patch.flags.contains(.isRead)
        self.id.append(FileCopy.separator)
        self.id.append(isRead ? FileCopy.readClass : FileCopy.changeClass)
        self.id.appendSortable(head.epoch ?? file.epoch)
        self.id.appendSortable(head.ordinal ?? file.firstOrdinal)
        self.id.appendSortable(Int64(number))
        try sorter.append(key: self.id, value: self.bytes)
      }
    } catch let fault as SegmentLines.Fault {
      throw FileSinkError(
        .inconsistent,
        "\(file.lines.path)\(fault.line > 0 ? " line \(fault.line)" : ""): \(fault.reason); put "
          + "back a copy of the file; 'verify --checksums' names all files that were changed")
    } catch let error as FileSystemError where error.code == ENOENT {
      if let lines = file.finished {
        // The file was finished in the meantime, and nothing of it has been read.
        var finished = file
        finished.lines = lines
        finished.finished = nil
        return try self.read(finished, into: &sorter)
      }
      throw FileSinkError(
        .lostOutput,
        "\(file.lines.path) is missing, so the state of its records cannot be determined; put it "
          + "back, or run 'pubsub-etl snapshot --accept-missing', which reads all records again",
        cause: error)
    }
  }
}

extension FileCopy.Source {
  /// The files as they are now.
  init(_ subject: FilesVerification.Subject, entity: String) throws {
    self.init(
      directory: subject.directory, pipeline: subject.pipeline, entity: entity,
      topic: subject.topic, org: subject.org, state: try subject.state(),
      erased: subject.erased)
  }
}
