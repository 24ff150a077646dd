import DurableFiles
import EventLoop

/// Lets several threads use a file system that is made for one: one call at a time.
final class SerializedFileSystem: FileSystem {
  private let base: any FileSystem
  private let turn = Lock(())

  init(_ base: any FileSystem) { self.base = base }

  private func serialized<Result>(
    _ body: (any FileSystem) throws(FileSystemError) -> Result
  ) throws(FileSystemError) -> Result {
    try self.turn.withLock { _ throws(FileSystemError) in try body(self.base) }
  }

  func open(_ path: String, _ flags: OpenFlags) throws(FileSystemError) -> Int32 {
    try self.serialized { base throws(FileSystemError) in try base.open(path, flags) }
  }

  func close(_ file: Int32) { self.turn.withLock { _ in self.base.close(file) } }

  func write(
    _ bytes: UnsafeRawBufferPointer, to file: Int32, path: String
  ) throws(FileSystemError) -> Int {
    try self.serialized { base throws(FileSystemError) in
      try base.write(bytes, to: file, path: path)
    }
  }

  func read(
    into bytes: UnsafeMutableRawBufferPointer, from file: Int32, at offset: Int, path: String
  ) throws(FileSystemError) -> Int {
    try self.serialized { base throws(FileSystemError) in
      try base.read(into: bytes, from: file, at: offset, path: path)
    }
  }

  func truncate(_ file: Int32, to byteCount: Int, path: String) throws(FileSystemError) {
    try self.serialized { base throws(FileSystemError) in
      try base.truncate(file, to: byteCount, path: path)
    }
  }

  func synchronize(_ file: Int32, dataOnly: Bool, path: String) throws(FileSystemError) {
    try self.serialized { base throws(FileSystemError) in
      try base.synchronize(file, dataOnly: dataOnly, path: path)
    }
  }

  func status(at path: String) throws(FileSystemError) -> FileStatus? {
    try self.serialized { base throws(FileSystemError) in try base.status(at: path) }
  }

  func status(of file: Int32, path: String) throws(FileSystemError) -> FileStatus {
    try self.serialized { base throws(FileSystemError) in try base.status(of: file, path: path) }
  }

  func rename(_ from: String, to: String) throws(FileSystemError) {
    try self.serialized { base throws(FileSystemError) in try base.rename(from, to: to) }
  }

  func renameWithoutReplacing(_ from: String, to: String) throws(FileSystemError) {
    try self.serialized { base throws(FileSystemError) in
      try base.renameWithoutReplacing(from, to: to)
    }
  }

  func exchange(_ path: String, with other: String) throws(FileSystemError) {
    try self.serialized { base throws(FileSystemError) in try base.exchange(path, with: other) }
  }

  func link(_ from: String, to: String) throws(FileSystemError) {
    try self.serialized { base throws(FileSystemError) in try base.link(from, to: to) }
  }

  func remove(_ path: String) throws(FileSystemError) {
    try self.serialized { base throws(FileSystemError) in try base.remove(path) }
  }

  func makeDirectory(_ path: String) throws(FileSystemError) -> Bool {
    try self.serialized { base throws(FileSystemError) in try base.makeDirectory(path) }
  }

  func list(_ directory: String) throws(FileSystemError) -> [DirectoryEntry]? {
    try self.serialized { base throws(FileSystemError) in try base.list(directory) }
  }

  func makeDirectory(_ path: String, like other: String) throws(FileSystemError) -> Bool {
    try self.serialized { base throws(FileSystemError) in
      try base.makeDirectory(path, like: other)
    }
  }

  func setPermissions(of path: String, like other: String) throws(FileSystemError) {
    try self.serialized { base throws(FileSystemError) in
      try base.setPermissions(of: path, like: other)
    }
  }

  func removeDirectory(_ path: String) throws(FileSystemError) {
    try self.serialized { base throws(FileSystemError) in try base.removeDirectory(path) }
  }

  func lock(
    _ file: Int32, shared: Bool, wait: Bool, path: String
  ) throws(FileSystemError) -> Bool {
    try self.serialized { base throws(FileSystemError) in
      try base.lock(file, shared: shared, wait: wait, path: path)
    }
  }
}
