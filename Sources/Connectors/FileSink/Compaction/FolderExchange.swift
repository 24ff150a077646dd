internal import Cryptography
internal import DurableFiles
internal import Glibc
internal import JSON

/// Exchanges date folders for new ones with other files, so that a reader that lists a folder finds the
/// old files or the new ones; see `FolderSwitch`.
///
/// Used by the holder of the pipeline's lock in the directory, on one thread, which it blocks.
final class FolderExchange {
  /// What the folders are exchanged for, for messages.
  enum Purpose {
    case compaction
    case erasure

    var command: String {
      switch self {
      case .compaction: "compact"
      case .erasure: "erase"
      }
    }

    var participle: String {
      switch self {
      case .compaction: "compacted"
      case .erasure: "rewritten"
      }
    }
  }

  let recovery: CompactionRecovery
  private let purpose: Purpose
  private let directory: String
  private let pipeline: String
  private let kind: SegmentKind
  private let fileSystem: any FileSystem
  private let pause: (Duration) -> Void
  /// Folders were exchanged, and the old ones are still there.
  private var hasOldFolders = false

  init(
    _ purpose: Purpose, in directory: String, pipeline: String, _ kind: SegmentKind = .records,
    on fileSystem: any FileSystem, pause: @escaping (Duration) -> Void
  ) {
    self.purpose = purpose
    self.directory = directory
    self.pipeline = pipeline
    self.kind = kind
    self.fileSystem = fileSystem
    self.pause = pause
    self.recovery = CompactionRecovery(directory, pipeline: pipeline, kind, on: fileSystem)
  }

  /// Exchanges a folder.
  ///
  /// - Parameter prepare: writes the new files into the hidden folder whose path it gets, and returns
  ///   their lines of the manifest, at least one.
  /// - Returns: these lines; nil if somebody else has begun to use the folder.
  func exchange(
    _ folder: String, _ prepare: (String) throws(FileSinkError) -> [JSONValue]
  ) throws(FileSinkError) -> [JSONValue]? {
    let hidden = FolderSwitch.staging(of: folder, pipeline: self.pipeline, self.kind)
    let staging = "\(self.directory)/\(hidden)"
    try self.attempt { () throws(FileSystemError) in
      let parent = self.fileSystem.parent(of: staging)
      let visible = "\(self.directory)/\(folder)"
      if try !self.fileSystem.makeDirectory(parent, like: self.fileSystem.parent(of: visible)) {
        try self.checkIsDirectory(parent)
      }
      try self.fileSystem.synchronizeDirectory(self.fileSystem.parent(of: parent))
      guard try self.fileSystem.makeDirectory(staging, like: visible) else {
        throw FileSystemError("mkdir", staging, code: FileSystemError.exists)
      }
      try self.fileSystem.synchronizeDirectory(parent)
    }
    let lines: [JSONValue]
    do throws(FileSinkError) {
      lines = try prepare(staging)
    } catch {
      // The first error counts; what is left is removed by the next run.
      try? self.recovery.remove(new: staging)
      throw error
    }
    let planned = FolderSwitch(folder: folder, lines: lines)
    var isMade = false
    try self.claim { () throws(FileSinkError) in isMade = try self.make(planned, staging) }
    guard isMade else {
      try self.recovery.remove(new: staging)
      return nil
    }
    self.hasOldFolders = true
    return lines
  }

  /// Removes the old folders.
  func finish() throws(FileSinkError) {
    self.awaitListings()
    try self.recovery.removeStaging()
  }

  /// Whoever began to list a folder before its exchange would miss names that are removed meanwhile.
  private func awaitListings() {
    if self.hasOldFolders { self.pause(Self.listingTime) }
  }

  private static let listingTime = Duration.seconds(1)

  /// Whether a folder has nothing but finished files, of this pipeline or others, and is no symbolic
  /// link: that would be exchanged, and not the folder.
  func isQuiet(_ folder: String) throws(FileSinkError) -> Bool {
    let path = "\(self.directory)/\(folder)"
    let parent = self.fileSystem.parent(of: path)
    let entries = try self.attempt { () throws(FileSystemError) in
      try self.fileSystem.list(parent) ?? []
    }
    guard entries.contains(where: { "\(parent)/\($0.name)" == path && !$0.isLink }) else {
      return false
    }
    return try self.names(in: folder) != nil
  }

  /// The names in a folder; nil if it has a file in progress, or a folder.
  private func names(in folder: String) throws(FileSinkError) -> [String]? {
    let entries = try self.attempt { () throws(FileSystemError) in
      try self.fileSystem.list("\(self.directory)/\(folder)") ?? []
    }
    let isBusy = entries.contains { $0.isDirectory || $0.name.hasSuffix(".part") }
    return isBusy ? nil : entries.map(\.name)
  }

  /// A symbolic link would lead out of the directory.
  private func checkIsDirectory(_ path: String) throws(FileSystemError) {
    let parent = self.fileSystem.parent(of: path)
    let entry = try self.fileSystem.list(parent)?.first { "\(parent)/\($0.name)" == path }
    guard let entry, entry.isDirectory, !entry.isLink else {
      throw FileSystemError("mkdir", path, code: FileSystemError.exists)
    }
  }

  /// The old files are going to be removed, so the new one has to be readable.
  func check(
    _ path: String, _ result: LineCopy.Result, lineCount: Int
  ) throws(FileSinkError) {
    var text = SHA256()
    var file = SHA256()
    let lineEnd = [UInt8(ascii: "\n")]
    var count: Int? = 0
    do {
      let hashing: (UnsafeRawBufferPointer) -> Void = { file.update($0) }
      try SegmentLines(path: path, extent: .whole, fileSystem: self.fileSystem).read(
        hashing: hashing
      ) { line, _ in
        text.update(line)
        text.update(lineEnd)
        count? += 1
      }
    } catch let error as FileSystemError {
      throw FileSinkError(error)
    } catch {
      // A fault of its content.
      count = nil
    }
    guard count == lineCount, text.snapshot().hex == result.textSHA256,
      file.snapshot().hex == result.sha256
    else {
      throw FileSinkError(
        .inconsistent,
        "\(path) was written and cannot be read back as it was: the disk lost data. The files of "
          + "this folder stay as they are; check the disk")
    }
  }

  /// With the folder's lock: nobody begins a file in it, and no program of this version lists it.
  ///
  /// - Returns: false if it is in use, and stays as it is.
  private func make(_ planned: FolderSwitch, _ staging: String) throws(FileSinkError) -> Bool {
    let folder = "\(self.directory)/\(planned.folder)"
    let replaced = Set(planned.replaced.compactMap { FolderSwitch.base($0, in: planned.folder) })
    guard let names = try self.names(in: planned.folder), replaced.isSubset(of: names) else {
      return false
    }
    do throws(FileSystemError) {
      for name in names where !replaced.contains(name) {
        try self.fileSystem.link("\(folder)/\(name)", to: "\(staging)/\(name)")
      }
      // A run may have removed a name just before, for example a file in progress.
      try self.fileSystem.synchronizeDirectory(folder)
      try self.fileSystem.synchronizeDirectory(staging)
      try planned.store(
        in: self.directory, pipeline: self.pipeline, self.kind, on: self.fileSystem)
      try self.fileSystem.exchange(folder, with: staging)
    } catch {
      // A reader has removed a file.
      if error.call == "link", error.code == ENOENT { return false }
      // Not every file system can link files and exchange folders.
      guard
        FileSystemError.notSupported.contains(error.code) || [EXDEV, EBUSY].contains(error.code)
      else {
        throw FileSinkError(error)
      }
      self.awaitListings()
      try self.recovery.complete()
      throw FileSinkError(
        .io,
        "\(folder) cannot be \(self.purpose.participle) and was not changed: \(error)", cause: error
      )
    }
    try self.keepLateFiles(from: staging, in: folder, listed: Set(names))
    try self.recovery.list(planned)
    return true
  }

  /// Files of others that came after the old folder was listed and before the exchange.
  private func keepLateFiles(
    from old: String, in folder: String, listed: Set<String>
  ) throws(FileSinkError) {
    try self.attempt { () throws(FileSystemError) in
      for entry in try self.fileSystem.list(old) ?? [] where !listed.contains(entry.name) {
        try self.fileSystem.move("\(old)/\(entry.name)", to: "\(folder)/\(entry.name)")
      }
    }
  }

  /// Calls `body` while nobody else uses the directory.
  func claim(_ body: () throws(FileSinkError) -> Void) throws(FileSinkError) {
    // Only runs of this pipeline use its dead letters.
    guard self.kind == .records else { return try body() }
    var attempts = 0
    let inUse = try FilesInUse(
      replacingIn: self.directory, for: self.purpose.command, on: self.fileSystem
    ) {
      attempts += 1
      guard attempts < Self.attemptCount else { return false }
      self.pause(Self.attemptPause)
      return true
    }
    defer { withExtendedLifetime(inUse) {} }
    try body()
  }

  /// `status` takes a moment; a run of another pipeline or `verify` takes longer than anybody wants to
  /// wait.
  private static let (attemptCount, attemptPause) = (50, Duration.milliseconds(100))

  private func attempt<Result>(
    _ body: () throws(FileSystemError) -> Result
  ) throws(FileSinkError) -> Result {
    do throws(FileSystemError) { return try body() } catch { throw FileSinkError(error) }
  }
}

extension JSONValue {
  /// The object with other values of some members, which are added if it lacks them.
  func setting(_ values: [(name: String, value: JSONValue)]) -> JSONValue {
    var members = self.members ?? []
    for (name, value) in values {
      if let index = members.firstIndex(where: { $0.name == name }) {
        members[index] = JSONMember(name, value)
      } else {
        members.append(JSONMember(name, value))
      }
    }
    return JSONValue(.object(members))
  }
}
