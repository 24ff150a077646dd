internal import Bytes
internal import CSystem
internal import Cryptography
internal import DurableFiles
internal import Glibc
package import JSON
internal import Pipeline

/// Joins the small finished files of a sink's directory into larger ones (Files.md#compacting-files).
///
/// One date folder after the other is exchanged for a new one in a single call, so a reader that lists
/// it finds each event once. The lines keep their order and are not changed. After an error or a
/// crash, the next run or compaction completes the exchange or takes it back; see `FolderSwitch`.
///
/// Driven by one thread, which it blocks.
package final class FileCompaction {
  private let configuration: FileSinkConfiguration
  private let state: JSONValue?
  private let letters: Letters
  private let fileSystem: any FileSystem
  private let exchange: FolderExchange
  private let before: String?

  /// Where the pipeline's dead letters are.
  package struct Letters: Sendable {
    /// Absolute.
    package var directory: String
    /// Their state in the checkpoint.
    package var state: JSONValue?

    package init(directory: String, state: JSONValue?) {
      self.directory = directory
      self.state = state
    }
  }

  /// - Parameters:
  ///   - state: the sink's state in the checkpoint, read when no run can change it.
  ///   - before: leaves the folders of this date and later ones, `2026-02-17`; nil takes all.
  ///   - pause: waits, on the caller's thread.
  package convenience init(
    _ configuration: FileSinkConfiguration, state: JSONValue?, letters: Letters,
    before: String?, pause: @escaping (Duration) -> Void
  ) {
    let permissions = configuration.permissions.map {
      FilePermissions(mode: $0.mode, groupID: $0.groupID)
    }
    self.init(
      configuration, state: state, letters: letters,
      before: before, fileSystem: SystemFileSystem(permissions: permissions), pause: pause)
  }

  init(
    _ configuration: FileSinkConfiguration, state: JSONValue?, letters: Letters,
    before: String? = nil, fileSystem: any FileSystem,
    pause: @escaping (Duration) -> Void = { _ in }
  ) {
    self.configuration = configuration
    self.state = state
    self.letters = letters
    self.fileSystem = fileSystem
    self.exchange = FolderExchange(
      .compaction, in: configuration.directory, pipeline: configuration.pipeline, on: fileSystem,
      pause: pause)
    self.before = before
  }

  private var directory: String { self.configuration.directory }
  private var pipeline: String { self.configuration.pipeline }

  // MARK: The whole directory

  /// Says what `run` would do, as far as it is known without doing it. Takes no lock and writes
  /// nothing.
  ///
  /// - Throws: as `run`.
  package func examine() throws(FileSinkError) -> [CompactedObject] {
    let inUse = FilesInUse(readingFrom: self.directory, on: self.fileSystem)
    defer { withExtendedLifetime(inUse) {} }
    var objects: [CompactedObject] = []
    for folder in try self.objectFolders() {
      let plan = try self.plan(of: folder)
      var object = Self.object(folder, plan)
      for (folder, groups) in try self.groups(of: plan) {
        guard try self.exchange.isQuiet(folder) else {
          object.busyFolderCount += 1
          continue
        }
        object.replacedFileCount += groups.reduce(0) { $0 + $1.count }
        object.newFileCount += groups.count
      }
      if object.fileCount > 0 { objects.append(object) }
    }
    return objects
  }

  /// Compacts what can be compacted.
  ///
  /// - Parameter isStopped: asked before each folder.
  /// The folder of a file that differs from the manifest stays as it is, and the others are compacted.
  ///
  /// - Throws: `FileSinkError`: `.inconsistent` for a manifest that was edited; `.locked` while others
  ///   use the directory; `.io`.
  package func run(isStopped: () -> Bool) throws(FileSinkError) -> [CompactedObject] {
    guard try self.exists(self.directory) else { return [] }
    let lock = try SegmentStore.lock(
      self.directory, .records, pipeline: self.pipeline, on: self.fileSystem)
    try self.exchange.recovery.complete()
    // Found out before anything is copied.
    try self.exchange.claim {}
    var objects: [CompactedObject] = []
    for folder in try self.objectFolders() where !isStopped() {
      let object = try self.compact(object: folder, isStopped)
      if object.fileCount > 0 { objects.append(object) }
    }
    try self.exchange.finish()
    _ = consume lock
    return objects
  }

  private func objectFolders() throws(FileSinkError) -> [String] {
    try self.attempt { () throws(FileSystemError) in
      try (self.fileSystem.list(self.directory) ?? [])
        .filter { $0.isDirectory && !$0.name.hasPrefix(".") && !$0.name.hasPrefix("_") }
        .map(\.name).sorted()
    }
  }

  // MARK: One object

  private func compact(
    object folder: String, _ isStopped: () -> Bool
  ) throws(FileSinkError) -> CompactedObject {
    let plan = try self.plan(of: folder)
    var object = Self.object(folder, plan)
    for (folder, groups) in try self.groups(of: plan) where !isStopped() {
      let lines: [JSONValue]?
      do throws(FileSinkError) {
        lines = try self.exchange.isQuiet(folder) ? self.compact(folder, groups) : nil
      } catch {
        guard error.code == .inconsistent else { throw error }
        object.faults.append(error.message)
        continue
      }
      guard let lines else {
        object.busyFolderCount += 1
        continue
      }
      object.replacedFileCount += groups.reduce(0) { $0 + $1.count }
      object.replacedByteCount += groups.joined().reduce(0) { $0 + $1.exported.bytes }
      object.newFileCount += lines.count
      object.newByteCount += lines.reduce(0) { $0 + ($1["bytes"]?.integer ?? 0) }
    }
    return object
  }

  private static func object(_ folder: String, _ plan: CompactionPlan) -> CompactedObject {
    var object = CompactedObject(folder: folder)
    object.snapshotFileCount = plan.snapshotFileCount
    for file in plan.files.values.joined() {
      object.fileCount += 1
      object.byteCount += file.exported.bytes
    }
    return object
  }

  /// The files of an object, and what has to stay between them.
  private func plan(of object: String) throws(FileSinkError) -> CompactionPlan {
    var plan = CompactionPlan(self.configuration.rotation)
    let matcher = SegmentName.Matcher(kind: .records, pipeline: self.pipeline)
    let head = Array("\(object)/".utf8)
    let list = try FileList(in: self.directory, pipeline: self.pipeline, on: self.fileSystem)
    try list.visitPresent { line, name in
      let start = name.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
      guard name.starts(with: head),
        let parsed = matcher.parse(UnsafeBufferPointer(rebasing: name[start...])),
        let json = try? JSONValue(parsing: Array(line)),
        json["pipeline"]?.string == self.pipeline, let file = ExportedFile(json: json)
      else { return }
      let own = CompactionPlan.File(exported: file, line: json, compaction: parsed.compaction)
      // The manifest may have been edited.
      guard FolderSwitch.isFolder(own.folder),
        [file.firstOrdinal, file.lastOrdinal].allSatisfy(ExportedFile.counts.contains)
      else { return }
      if parsed.pass != nil {
        plan.add(snapshotBefore: file.firstOrdinal, of: .init(file))
        plan.snapshotFileCount += 1
      } else if json["redriven"]?.boolean == true {
        plan.add(other: file, isOpen: false)
      } else {
        plan.add(own)
      }
    }
    let passes = try FilePass.passes(in: self.state, directory: self.directory)
    for pass in passes.values where SegmentName.sanitized(pass.entity) == object {
      plan.add(snapshotBefore: pass.nextOrdinal, epoch: pass.epoch)
    }
    for record in try SegmentRecord.records(in: self.state, directory: self.directory) {
      guard record.name.utf8.starts(with: head), let file = ExportedFile(json: record.manifest)
      else { continue }
      plan.add(other: file, isOpen: true)
    }
    try self.addLetters(to: &plan)
    return plan
  }

  private func addLetters(to plan: inout CompactionPlan) throws(FileSinkError) {
    let list = try FileList(in: self.letters.directory, pipeline: nil, on: self.fileSystem)
    let matcher = SegmentName.Matcher(kind: .deadLetters, pipeline: self.pipeline)
    try list.visitAll { line, name in
      let start = name.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
      guard matcher.parse(UnsafeBufferPointer(rebasing: name[start...])) != nil,
        let json = try? JSONValue(parsing: Array(line)), let file = ExportedFile(json: json)
      else { return }
      plan.add(letters: file)
    }
    let open = try SegmentRecord.records(
      in: self.letters.state, directory: self.letters.directory)
    for record in open {
      if let file = ExportedFile(json: record.manifest) { plan.add(letters: file) }
    }
  }

  private func groups(
    of plan: CompactionPlan
  ) throws(FileSinkError) -> [(folder: String, groups: [[CompactionPlan.File]])] {
    try plan.groups(
      exists: { file throws(FileSinkError) in
        guard self.isOld(file.folder) else { return false }
        return try self.exists("\(self.directory)/\(file.exported.name)")
      },
      placesLines: { file throws(FileSinkError) in try self.placesLines(file) })
  }

  /// Whether a folder, `Opportunity/commit_date=2026-02-17`, is of a date that may be compacted.
  private func isOld(_ folder: String) -> Bool {
    guard let before else { return true }
    return folder.split(separator: "=").last.map { $0 < before } ?? false
  }

  private func exists(_ path: String) throws(FileSinkError) -> Bool {
    try self.attempt { () throws(FileSystemError) in
      try self.fileSystem.status(at: path) != nil
    }
  }

  /// Whether lines of a file have their own places.
  private func placesLines(_ file: CompactionPlan.File) throws(FileSinkError) -> Bool {
    let key: StaticString = "\"_ordinal\""
    let source = self.source(file)
    var hasPlaces = false
    do {
      try source.read { line, _ in
        guard !hasPlaces, let start = line.baseAddress,
          c_memmem(start, line.count, key.utf8Start, key.utf8CodeUnitCount) != nil
        else { return }
        hasPlaces = (try? JSONValue(parsing: Array(line)))?["_ordinal"] != nil
      }
    } catch is SegmentLines.Fault {
      // Whoever joins the file finds that it was changed.
      return false
    } catch let error as FileSystemError {
      throw FileSinkError(error)
    } catch {
      preconditionFailure("neither the file system's nor of the lines: \(error)")
    }
    return hasPlaces
  }

  private func source(_ file: CompactionPlan.File) -> SegmentLines {
    SegmentLines(
      path: "\(self.directory)/\(file.exported.name)", extent: .whole, fileSystem: self.fileSystem)
  }

  // MARK: One folder

  /// Exchanges a folder.
  ///
  /// - Returns: the lines of the new files; nil if somebody else has begun to use the folder.
  private func compact(
    _ folder: String, _ groups: [[CompactionPlan.File]]
  ) throws(FileSinkError) -> [JSONValue]? {
    try self.exchange.exchange(folder) { staging throws(FileSinkError) in
      var lines: [JSONValue] = []
      for group in groups { lines.append(try self.join(group, of: folder, in: staging)) }
      return lines
    }
  }

  /// Writes the lines of files into one, and reads it back.
  ///
  /// - Returns: the line of the manifest.
  private func join(
    _ group: [CompactionPlan.File], of folder: String, in staging: String
  ) throws(FileSinkError) -> JSONValue {
    let name = SegmentName.compactedPath(
      first: group[0].exported.name, compaction: group[0].compaction + 1)
    let path = "\(staging)/\(FolderSwitch.base(name, in: folder) ?? name)"
    let matcher = SegmentName.Matcher(kind: .records, pipeline: self.pipeline)
    guard let base = FolderSwitch.base(name, in: folder),
      matcher.ownership(of: base) == .finished
    else {
      throw FileSinkError(
        .inconsistent,
        "\(group[0].exported.name) in the manifest has a name that this program does not give. "
          + LineCopy.Evidence.manifest.remedy)
    }
    let copy = try LineCopy(
      to: path, level: self.configuration.compressionLevel, on: self.fileSystem)
    // Whoever may read the old files may read the new one.
    try self.attempt { () throws(FileSystemError) in
      try self.fileSystem.setPermissions(
        of: path, like: "\(self.directory)/\(group[0].exported.name)")
    }
    for file in group {
      let (source, before) = (self.source(file), copy.lineCount)
      try copy.append(source, sha256: file.exported.sha256 ?? "", accordingTo: .manifest)
      guard copy.lineCount - before == file.exported.lines else {
        throw FileSinkError(
          .inconsistent,
          "\(source.path) has \(copy.lineCount - before) lines, the manifest says "
            + "\(file.exported.lines). " + LineCopy.Evidence.manifest.remedy)
      }
    }
    let result = try copy.finish(endsFrame: true)
    try self.exchange.check(path, result, lineCount: copy.lineCount)
    return Self.line(of: name, joining: group, result)
  }

  private func attempt<Result>(
    _ body: () throws(FileSystemError) -> Result
  ) throws(FileSinkError) -> Result {
    do throws(FileSystemError) {
      return try body()
    } catch {
      throw FileSinkError(error)
    }
  }
}

extension FileCompaction {
  /// The manifest's line of a file that replaces others.
  private static func line(
    of name: String, joining group: [CompactionPlan.File], _ result: LineCopy.Result
  ) -> JSONValue {
    let (first, last) = (group[0], group[group.count - 1])
    var schemaIDs: [String] = []
    for file in group {
      for id in (file.line["schema_ids"]?.array ?? []).compactMap(\.string)
      where !schemaIDs.contains(id) { schemaIDs.append(id) }
    }
    func time(_ key: String, isLast: Bool) -> JSONValue {
      let times = group.compactMap { file in
        file.line[key]?.string.flatMap { text in
          ObjectFreshness.milliseconds(of: text).map { (time: $0, text: text) }
        }
      }.sorted { $0.time < $1.time }
      return (isLast ? times.last : times.first).map { .string($0.text) } ?? nil
    }
    let events: Int64 = group.reduce(0) { $0 + $1.exported.events }
    let lines: Int64 = group.reduce(0) { $0 + $1.exported.lines }
    return first.line.setting([
      ("name", .string(name)), ("events", .integer(events)), ("lines", .integer(lines)),
      ("bytes", .integer(result.byteCount)),
      ("uncompressed_bytes", .integer(result.uncompressedByteCount)),
      ("last_replay_id", .string(last.exported.lastReplayID)),
      ("last_ordinal", .integer(last.exported.lastOrdinal)),
      ("schema_ids", .array(schemaIDs.map { .string($0) })),
      ("first_commit_timestamp", time("first_commit_timestamp", isLast: false)),
      ("last_commit_timestamp", time("last_commit_timestamp", isLast: true)),
      ("sha256", .string(result.sha256)),
      ("replaces", .array(group.map { .string($0.exported.name) })),
      ("resume", last.line["resume"] ?? nil),
    ])
  }
}

/// What compaction did with the files of one object, or would do.
package struct CompactedObject: Sendable, Equatable {
  /// The object's folder.
  package var folder: String
  /// Finished files of events before.
  package var fileCount = 0
  /// Their compressed bytes.
  package var byteCount: Int64 = 0
  package var replacedFileCount = 0
  /// Known once they are replaced.
  package var replacedByteCount: Int64 = 0
  package var newFileCount = 0
  package var newByteCount: Int64 = 0
  /// Date folders that would be compacted, but have files in progress or folders of somebody else.
  package var busyFolderCount = 0
  /// Files of snapshots, which are not among the others and stay as they are.
  package var snapshotFileCount = 0
  /// Folders that stay as they are, because a file differs from the manifest; as text.
  package var faults: [String] = []

  package var fileCountAfter: Int {
    self.fileCount - self.replacedFileCount + self.newFileCount
  }
  package var byteCountAfter: Int64 {
    self.byteCount - self.replacedByteCount + self.newByteCount
  }

  package init(folder: String) { self.folder = folder }
}
