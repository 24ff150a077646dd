internal import DurableFiles
package import JSON
internal import Pipeline

/// Checks the newest finished files of a pipeline against the manifest.
///
/// The manifest is the evidence for the files, and the checkpoint for the manifest, because it
/// names the file that was finished last (`last_finished`). An existing file must have its recorded
/// size. A missing file was either lost or removed by a reader; see
/// `FileSinkConfiguration.MissingPolicy`. No loader removes dead letters: all their files are
/// checked, and one may be missing only if its letters were retried or dropped.
struct OutputCheck {
  /// The finding as text, without a remedy.
  private(set) var faults: [String] = []
  /// Missing files among those checked.
  private(set) var missingCount = 0
  /// The number of files checked.
  private(set) var count = 0
  /// The last file of the pipeline in the manifest.
  private(set) var lastFinished: String?

  /// Dead letters that are lost with missing or changed files.
  private(set) var lostLetters: [LostLetters] = []

  /// The last run wrote to another directory, and no accepted loss ends with that.
  private(set) var isElsewhere = false

  private let directory: String
  /// The directory of the last run, if it is another one.
  private let formerDirectory: String?
  private let policy: FileSinkConfiguration.MissingPolicy?
  /// The letters, for files of dead letters.
  private let archive: DeadLetterArchive?
  private let state: JSONValue?
  private let matcher: SegmentName.Matcher
  /// The last finished file according to the checkpoint.
  private let expected: String?
  private let acceptedThrough: [UInt8]?
  private var hasExpected = false
  private var hasAccepted = false
  private var lastName: [UInt8] = []
  /// The newest lines; once there are enough, the oldest is at `next`.
  private var lines: [[UInt8]] = []
  private var next = 0

  /// The maximum number of data files checked, with a stat(2) call for each at every start.
  private static let maxCount = 100

  /// - Parameters:
  ///   - policy: nil checks only that the directory is the one of the last run, or has its files.
  ///   - state: the sink's state in the last checkpoint.
  init(
    directory: String, kind: SegmentKind = .records, pipeline: String,
    policy: FileSinkConfiguration.MissingPolicy?, state: JSONValue?
  ) {
    self.directory = directory
    self.policy = policy
    self.state = state
    self.archive =
      kind == .deadLetters
      ? DeadLetterArchive(directory: directory, pipeline: pipeline, org: nil) : nil
    self.matcher = SegmentName.Matcher(kind: kind, pipeline: pipeline)
    self.formerDirectory = state?["directory"]?.string.flatMap { $0 == directory ? nil : $0 }
    // A directory that was moved has the manifest. Whoever removes that one must not move it.
    self.expected =
      policy == .fail || self.formerDirectory != nil ? state?[Self.lastFinishedKey]?.string : nil
    self.acceptedThrough = (state?[Self.acceptedKey]?.string).map { Array($0.utf8) }
  }

  static let lastFinishedKey = "last_finished"
  static let acceptedKey = "accepted_through"

  /// Takes the lines of the manifest in order.
  mutating func visit(
    _ line: UnsafeBufferPointer<UInt8>, name: UnsafeBufferPointer<UInt8>
  ) {
    let start = name.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
    guard self.matcher.parse(UnsafeBufferPointer(rebasing: name[start...])) != nil else { return }
    self.lastName.replaceAll(with: name)
    if let expected, !self.hasExpected { self.hasExpected = expected.utf8.elementsEqual(name) }
    if let acceptedThrough, acceptedThrough.elementsEqual(name) {
      self.hasAccepted = true
      self.lines.removeAll()
      self.next = 0
    } else if self.archive != nil || self.lines.count < Self.maxCount {
      self.lines.append(Array(line))
    } else {
      self.lines[self.next].replaceAll(with: line)
      self.next = (self.next + 1) % Self.maxCount
    }
  }

  /// Checks the files. Call this after all lines were visited.
  mutating func finish(on fileSystem: any FileSystem) throws(FileSystemError) {
    if !self.lastName.isEmpty { self.lastFinished = String(decoding: self.lastName, as: UTF8.self) }
    if let fault = try self.manifestFault(on: fileSystem) {
      self.faults.append(fault)
      self.isElsewhere = self.formerDirectory != nil
      if self.archive != nil { self.lostLetters.append(LostLetters(manifest: Manifest.fileName)) }
    }
    guard self.policy != nil else { return }
    if let archive {
      try self.checkLetters(archive, on: fileSystem)
    } else {
      try self.checkFiles(on: fileSystem)
    }
  }

  private mutating func checkFiles(on fileSystem: any FileSystem) throws(FileSystemError) {
    /// Directories of entities with an older existing file.
    var kept: Set<String> = []
    var missing: [String] = []
    for json in self.presentFiles {
      guard let name = json["name"]?.string, let byteCount = json["bytes"]?.integer else {
        continue
      }
      self.count += 1
      let entity = String(name.prefix { $0 != "/" })
      guard let size = try fileSystem.size(of: "\(self.directory)/\(name)") else {
        self.missingCount += 1
        if self.policy == .fail, kept.contains(entity) { missing.append(name) }
        continue
      }
      kept.insert(entity)
      if size != byteCount { self.faults.append(self.changed(name, size, byteCount)) }
    }
    guard let first = missing.first else { return }
    self.faults.append(
      missing.count == 1
        ? "\(self.directory)/\(first) is missing, but older files of its entity are still there"
        : "\(missing.count) files are missing, but older files of their entities are still "
          + "there; the first is \(self.directory)/\(first)")
  }

  /// The newest lines without those of files that were replaced. A file that replaces others is in
  /// the place of the first, because loaders delete the oldest files first.
  private var presentFiles: [JSONValue] {
    var places: [String: Int] = [:]
    var replaced: Set<String> = []
    var files: [(place: Int, name: String, line: JSONValue)] = []
    for (index, line) in (self.lines[self.next...] + self.lines[..<self.next]).enumerated() {
      guard let json = try? JSONValue(parsing: line), let name = json["name"]?.string else {
        continue
      }
      let names = Manifest.replaced(by: json)
      replaced.formUnion(names)
      // What is not among the newest lines is older.
      let place = names.map { places[$0] ?? -1 }.min() ?? index
      places[name] = place
      files.append((place, name, json))
    }
    return files.enumerated().filter { !replaced.contains($0.element.name) }
      .sorted { ($0.element.place, $0.offset) < ($1.element.place, $1.offset) }
      .map { $0.element.line }
  }

  private func changed(_ name: String, _ size: Int, _ byteCount: Int64) -> String {
    "\(self.directory)/\(name) has \(size) bytes, the manifest says \(byteCount): it was cut or "
      + "changed after it was finished"
  }

  /// A file may be missing or changed if all its letters were retried or dropped.
  private mutating func checkLetters(
    _ archive: DeadLetterArchive, on fileSystem: any FileSystem
  ) throws(FileSystemError) {
    var sizes: [String: Int] = [:]
    var unreadable: [ExportedFile] = []
    for json in self.presentFiles {
      guard let file = ExportedFile(json: json) else { continue }
      self.count += 1
      let size = try fileSystem.size(of: "\(self.directory)/\(file.name)")
      guard size != Int(file.bytes) else { continue }
      sizes[file.name] = size
      if size == nil { self.missingCount += 1 }
      unreadable.append(file)
    }
    guard !unreadable.isEmpty else { return }
    let lost = archive.lost(unreadable, openFiles: self.state)
    self.lostLetters += lost
    let byteCounts = [String: Int64](
      unreadable.map { ($0.name, $0.bytes) }, uniquingKeysWith: { $1 })
    for file in lost {
      guard let size = sizes[file.name], let byteCount = byteCounts[file.name] else { continue }
      self.faults.append(self.changed(file.name, size, byteCount))
    }
    let missing = lost.filter { sizes[$0.name] == nil }
    guard let first = missing.first else { return }
    let lostCount = missing.reduce(0) { $0 + $1.count }
    let letters =
      lostCount == 1
      ? "1 dead letter is lost that was" : "\(lostCount) dead letters are lost that were"
    self.faults.append(
      (missing.count == 1
        ? "\(self.directory)/\(first.name) is missing"
        : "\(missing.count) files are missing, the first is \(self.directory)/\(first.name)")
        + "; \(letters) neither retried nor dropped")
  }

  /// The file up to which losses were accepted earlier, as long as the manifest has it.
  var stillAccepted: String? {
    self.hasAccepted ? self.acceptedThrough.map { String(decoding: $0, as: UTF8.self) } : nil
  }

  /// The evidence that the manifest is not the one that the checkpoint knows; nil if it is.
  private func manifestFault(on fileSystem: any FileSystem) throws(FileSystemError) -> String? {
    guard let expected, !self.hasExpected else { return nil }
    let path = "\(self.directory)/\(Manifest.fileName)"
    if let formerDirectory {
      return "the pipeline's files are in \(formerDirectory), but the pipeline file now names "
        + "\(self.directory), where \(path) "
        + (try fileSystem.size(of: path) == nil ? "does not exist" : "does not list \(expected)")
    }
    guard try fileSystem.size(of: path) != nil else {
      return "\(path) is missing, but files were finished there, most recently \(expected); "
        + "check that the file system is mounted and that the directory was not emptied"
    }
    return "\(path) does not list \(expected), the last file finished there; check whether the "
      + "directory was emptied or replaced by an older copy"
  }

  /// Whether the manifest is missing; checked before anything is created in the directory.
  func isManifestGone(on fileSystem: any FileSystem) throws(FileSystemError) -> Bool {
    guard self.expected != nil else { return false }
    return try fileSystem.size(of: "\(self.directory)/\(Manifest.fileName)") == nil
  }

  /// What to do about faults.
  var remedy: String {
    if self.isElsewhere { return Self.moveRemedy }
    return self.archive == nil ? Self.missingRemedy : Self.missingLettersRemedy
  }

  private static let moveRemedy =
    "change \"directory\" back; or move the old directory with everything in it, _manifest.ndjson "
    + "included, to the new place; or give a copy of the pipeline its own \"name\"; or begin in the "
    + "new directory after the pipeline's position: 'run --accept-missing'"

  private static let missingRemedy =
    "put back what is missing; or continue without it: 'run --accept-missing' (events of the "
    + "last 72 h can be read again with 'checkpoint set'); or, if a loader removes files in any "
    + "order, set \"when_missing\": \"ignore\" in the sink"

  static let missingLettersRemedy =
    "put back a copy of the file; or give up the letters: remove the file if it is there, then "
    + "'run --accept-missing' (and 'pubsub-etl snapshot' reads their records)"
}

/// The result of `status` for a sink's newest finished files, or for dead letters; needs no lock and can be used during
/// a run.
package struct OutputState: Sendable, Equatable {
  /// What was lost, in words.
  package var faults: [String] = []
  /// The number of files checked, and of those missing.
  package var fileCount = 0
  package var missingCount = 0
  /// What to do about `faults`.
  package var remedy = ""
  /// The files are in another directory, where the last run wrote them.
  package var isElsewhere = false

  package init(faults: [String] = [], fileCount: Int = 0, missingCount: Int = 0) {
    self.faults = faults
    self.fileCount = fileCount
    self.missingCount = missingCount
  }

  /// - Parameter state: the sink's state in the checkpoint.
  /// - Throws: `FileSinkError.inconsistent` for a manifest that was edited, `.io`.
  package static func read(
    directory: String, pipeline: String, whenMissing: FileSinkConfiguration.MissingPolicy,
    state: JSONValue?
  ) throws(FileSinkError) -> OutputState {
    let inUse = FilesInUse(readingFrom: directory)
    defer { withExtendedLifetime(inUse) {} }
    return try self.read(
      OutputCheck(directory: directory, pipeline: pipeline, policy: whenMissing, state: state),
      FileList(in: directory, pipeline: pipeline))
  }

  /// The state of the files of dead letters.
  ///
  /// - Parameter state: the checkpoint's state of the dead letters.
  /// - Throws: as `read`.
  package static func readDeadLetters(
    directory: String, pipeline: String, state: JSONValue?
  ) throws(FileSinkError) -> OutputState {
    try self.read(
      OutputCheck(
        directory: directory, kind: .deadLetters, pipeline: pipeline, policy: .fail, state: state),
      FileList(in: directory, pipeline: pipeline, .deadLetters))
  }

  private static func read(
    _ check: OutputCheck, _ list: FileList
  ) throws(FileSinkError) -> OutputState {
    let fileSystem = SystemFileSystem()
    var check = check
    try list.visitAll { check.visit($0, name: $1) }
    do throws(FileSystemError) {
      try check.finish(on: fileSystem)
    } catch {
      throw FileSinkError(error)
    }
    var output = OutputState(
      faults: check.faults, fileCount: check.count, missingCount: check.missingCount)
    output.remedy = check.remedy
    output.isElsewhere = check.isElsewhere
    return output
  }
}
