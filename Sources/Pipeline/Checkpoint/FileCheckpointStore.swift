internal import Bytes
package import Clocks
package import DurableFiles
internal import Glibc
internal import JSON

/// The checkpoint of one pipeline in a file, and the host lock that keeps a second run away.
///
/// The file is replaced as a whole: written beside, synchronised, renamed, and the directory
/// synchronised. A reader sees the old checkpoint or the new one. The lock is an flock(2) of
/// `<pipeline>.lock`, held until the object goes or the process ends in whatever way. Driven by one
/// thread; calls block.
package final class FileCheckpointStore {
  /// Where the checkpoint is: `<directory>/<pipeline>.checkpoint.json`.
  package let path: String
  private let directory: String
  private let pipeline: String
  private let fileSystem: any FileSystem
  private let clock: @Sendable () -> Int64
  private let lock: OpenFile
  private var text = CheckpointText()

  /// Creates the directory when there is none, and takes the lock.
  ///
  /// - Parameters:
  ///   - directory: absolute path.
  ///   - pipeline: becomes part of a file name: not empty, without `/`, not beginning with a dot.
  ///   - isRun: false for a command that changes the state and may end without a change. The lock then
  ///     still names the last run, which may have been killed.
  /// - Throws: `CheckpointError.alreadyRunning` with the process ID of the holder; `.io`.
  package convenience init(
    directory: String, pipeline: String, isRun: Bool = true, clock: ProcessClock = ProcessClock()
  ) throws(CheckpointError) {
    try self.init(
      directory: directory, pipeline: pipeline, isRun: isRun, fileSystem: SystemFileSystem(),
      clock: { clock.wallTime })
  }

  package init(
    directory: String, pipeline: String, isRun: Bool = true, fileSystem: any FileSystem,
    clock: @escaping @Sendable () -> Int64
  ) throws(CheckpointError) {
    precondition(
      directory.utf8.first == UInt8(ascii: "/"), "the state directory \(directory) is not absolute")
    guard !pipeline.isEmpty, !pipeline.hasPrefix("."), !pipeline.utf8.contains(UInt8(ascii: "/")),
      !pipeline.utf8.contains(0)
    else {
      throw CheckpointError(
        .mismatch,
        "the pipeline's name '\(pipeline)' cannot be a file name; it must not be empty, "
          + "contain '/' or begin with '.'"
      )
    }
    self.directory = directory
    self.pipeline = pipeline
    self.fileSystem = fileSystem
    self.clock = clock
    let paths = StatePaths(directory: directory, pipeline: pipeline)
    self.path = paths.checkpoint
    do throws(FileSystemError) {
      try fileSystem.makeDirectories(directory)
      self.lock = try OpenFile(paths.lock, [.write, .create], on: fileSystem)
    } catch {
      throw CheckpointError("cannot use the state directory of pipeline '\(pipeline)'", error)
    }
    try self.takeLock(isRun: isRun)
  }

  /// The stored checkpoint, durable on return; nil when none was ever stored.
  package func load() throws(CheckpointError) -> CheckpointDocument? {
    try Self.load(
      StatePaths(directory: self.directory, pipeline: self.pipeline), on: self.fileSystem,
      isOwner: true)
  }

  /// Reads the stored checkpoint without the lock, also during a run. Writes nothing.
  package static func peek(_ paths: StatePaths) throws(CheckpointError) -> CheckpointDocument? {
    try Self.load(paths, on: SystemFileSystem(), isOwner: false)
  }

  private static func load(
    _ paths: StatePaths, on fileSystem: any FileSystem, isOwner: Bool
  ) throws(CheckpointError) -> CheckpointDocument? {
    let path = paths.checkpoint
    let bytes: [UInt8]
    do throws(FileSystemError) {
      guard let size = try fileSystem.size(of: path) else { return nil }
      guard size <= Self.maxByteCount else { throw FileSystemError("read", path, code: EFBIG) }
      bytes = try Self.content(of: path, size: size, isOwner: isOwner, on: fileSystem)
      // A run that was killed between rename and synchronisation left a checkpoint that a power cut
      // would take back, while what recovery is about to do by it would stay.
      if isOwner { try fileSystem.synchronizeDirectory(paths.directory) }
    } catch {
      throw CheckpointError("cannot read the checkpoint of pipeline '\(paths.pipeline)'", error)
    }
    let document: CheckpointDocument
    do {
      document = try CheckpointDocument(
        json: JSONValue(parsing: bytes, limits: JSONLimits(byteCount: Self.maxByteCount)))
    } catch {
      throw CheckpointError(
        .damaged,
        "\(path) is not a valid checkpoint: \(error). Put back a copy of it; or, with a files "
          + "sink, move it away and restore the positions: 'checkpoint restore --from-manifest'",
        cause: error)
    }
    guard document.pipeline == paths.pipeline else {
      throw CheckpointError(
        .mismatch,
        "\(path) belongs to pipeline '\(document.pipeline)', not to '\(paths.pipeline)'; give "
          + "each pipeline its own name or state directory")
    }
    return document
  }

  /// Without the lock the file may be replaced by one of another size between the calls: what is
  /// opened then is read to its end.
  private static func content(
    of path: String, size: Int, isOwner: Bool, on fileSystem: any FileSystem
  ) throws(FileSystemError) -> [UInt8] {
    let file = try OpenFile(path, [], on: fileSystem)
    guard !isOwner else { return try file.content(byteCount: size) }
    var byteCount = size + 4096
    while true {
      let bytes = try file.content(byteCount: byteCount)
      if bytes.count < byteCount { return bytes }
      byteCount *= 2
      guard byteCount <= Self.maxByteCount * 2 else {
        throw FileSystemError("read", path, code: EFBIG)
      }
    }
  }

  /// Replaces the stored checkpoint; durable on return. Sets `savedAt`.
  ///
  /// After an error it is unknown whether the old or the new document is stored, so the run has to
  /// end. A document above the limit for reading is not written.
  package func save(_ document: CheckpointDocument) throws(CheckpointError) {
    var document = document
    document.savedAt = self.clock()
    let text = self.text.text(of: document)
    guard text.count <= Self.maxByteCount else {
      throw CheckpointError(
        .tooLarge,
        "the checkpoint of pipeline '\(self.pipeline)' would take \(text.count) bytes, more "
          + "than the \(Self.maxByteCount) that can be read back, so the previous one is kept. "
          + "Too many events of a channel have the same replay ID; use fewer topics, or "
          + "subscribe to the channel's objects one by one")
    }
    let temporary = "\(self.directory)/.\(self.pipeline).checkpoint.json.tmp"
    do throws(FileSystemError) {
      guard try self.lock.hasName() else {
        throw FileSystemError("stat", self.lock.path, code: ENOENT)
      }
      let file = try OpenFile(temporary: temporary, on: self.fileSystem)
      try file.write(UnsafeRawBufferPointer(text.bytes))
      try file.synchronize()
      // A checkpoint that somebody has cut would replace one that is complete.
      try file.checkIntact(byteCount: text.count)
      try self.fileSystem.rename(temporary, to: self.path)
      try self.fileSystem.synchronizeDirectory(self.directory)
    } catch {
      throw CheckpointError("cannot store the checkpoint of pipeline '\(self.pipeline)'", error)
    }
  }

  /// Identifies this state directory, and this pipeline in it, for as long as the file exists: 16
  /// hexadecimal digits, random, durable on return.
  package func identity() throws(CheckpointError) -> String {
    let paths = StatePaths(directory: self.directory, pipeline: self.pipeline)
    do throws(FileSystemError) {
      return try StateIdentity.value(paths.identity, in: self.directory, on: self.fileSystem)
    } catch {
      throw CheckpointError(
        "cannot read or make the identity of pipeline '\(self.pipeline)'", error)
    }
  }

  private func takeLock(isRun: Bool) throws(CheckpointError) {
    let isFree: Bool
    var holder: Int32?
    do throws(FileSystemError) {
      isFree = try self.lock.lock(wait: false)
      if isFree {
        var content = "\(getpid())\n"
        if !isRun {
          let isNew = try self.fileSystem.size(of: self.lock.path) == 0
          let state = isNew ? RunLockState() : RunLockState.read(self.lock.path)
          content = state.content(ofCommand: getpid())
        }
        try self.lock.truncate(to: 0)
        try self.lock.write(Array(content.utf8))
      } else {
        let text = try self.lock.content(byteCount: 32)
        holder = Int32(String(decoding: text.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
      }
    } catch {
      throw CheckpointError("cannot lock pipeline '\(self.pipeline)'", error)
    }
    guard !isFree else { return }
    throw CheckpointError(
      .alreadyRunning,
      "pipeline '\(self.pipeline)' is already running\(holder.map { " (pid \($0))" } ?? ""): "
        + "\(self.lock.path) is locked; wait for that run or command to end, or stop it",
      processID: holder)
  }

  /// Far above any checkpoint: a topic takes 2 kB, and so does an open file. The limit holds for
  /// reading and for writing.
  package static let maxByteCount = 64 << 20
}
