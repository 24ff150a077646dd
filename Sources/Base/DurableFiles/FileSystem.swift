/// The system calls that durable files are made with: the one funnel of checkpoint and files sink.
///
/// Tests put a file system in memory here that forgets what was not synchronised, or one that
/// fails at the n-th call. Paths are absolute. No call is retried but those that a signal
/// interrupted; a failed synchronisation never is.
package protocol FileSystem: Sendable {
  /// open(2), always with `O_CLOEXEC`; for writing with `O_NOFOLLOW`.
  func open(_ path: String, _ flags: OpenFlags) throws(FileSystemError) -> Int32
  /// close(2). Its errors are of no use: what matters was synchronised before.
  func close(_ file: Int32)
  /// write(2): returns how many bytes were taken, at least one.
  func write(
    _ bytes: UnsafeRawBufferPointer, to file: Int32, path: String
  ) throws(FileSystemError) -> Int
  /// pread(2): returns how many bytes were read, 0 at the end of the file.
  func read(
    into bytes: UnsafeMutableRawBufferPointer, from file: Int32, at offset: Int, path: String
  ) throws(FileSystemError) -> Int
  /// ftruncate(2).
  func truncate(_ file: Int32, to byteCount: Int, path: String) throws(FileSystemError)
  /// fsync(2), also of directories; fdatasync(2) with `dataOnly`.
  func synchronize(_ file: Int32, dataOnly: Bool, path: String) throws(FileSystemError)
  /// stat(2); nil when nothing has that name.
  func status(at path: String) throws(FileSystemError) -> FileStatus?
  /// fstat(2).
  func status(of file: Int32, path: String) throws(FileSystemError) -> FileStatus
  /// rename(2).
  func rename(_ from: String, to: String) throws(FileSystemError)
  /// renameat2(2) with `RENAME_NOREPLACE`: fails with `EEXIST` when the new name is taken. Many file
  /// systems refuse it; see `move`.
  func renameWithoutReplacing(_ from: String, to: String) throws(FileSystemError)
  /// renameat2(2) with `RENAME_EXCHANGE`: two names, of files or directories, change places in one
  /// step. Some file systems refuse it.
  func exchange(_ path: String, with other: String) throws(FileSystemError)
  /// link(2): fails with `EEXIST` when the new name is taken.
  func link(_ from: String, to: String) throws(FileSystemError)
  /// unlink(2).
  func remove(_ path: String) throws(FileSystemError)
  /// mkdir(2), with mode 0750 unless `FilePermissions` say otherwise; false when the name exists.
  func makeDirectory(_ path: String) throws(FileSystemError) -> Bool
  /// mkdir(2), with the mode, owner and group of another directory; false when the name exists.
  func makeDirectory(_ path: String, like other: String) throws(FileSystemError) -> Bool
  /// chown(2) and chmod(2): the mode, owner and group of another file.
  func setPermissions(of path: String, like other: String) throws(FileSystemError)
  /// rmdir(2): the directory is empty.
  func removeDirectory(_ path: String) throws(FileSystemError)
  /// readdir(3) without `.` and `..`, in no order; nil without such a directory.
  func list(_ directory: String) throws(FileSystemError) -> [DirectoryEntry]?
  /// flock(2), shared or exclusive. With `wait` false returns false when somebody else holds a lock
  /// that excludes this one.
  func lock(
    _ file: Int32, shared: Bool, wait: Bool, path: String
  ) throws(FileSystemError) -> Bool
}

/// The part of stat(2) that is used here.
package struct FileStatus: Sendable, Equatable {
  package var device: UInt64
  package var inode: UInt64
  package var byteCount: Int
  /// 0 for an open file that has lost its last name.
  package var linkCount: Int

  package init(device: UInt64, inode: UInt64, byteCount: Int, linkCount: Int) {
    self.device = device
    self.inode = inode
    self.byteCount = byteCount
    self.linkCount = linkCount
  }

  package func isSameFile(as other: FileStatus) -> Bool {
    (self.device, self.inode) == (other.device, other.inode)
  }
}

/// How a file is opened. Files are made with mode 0640 unless `FilePermissions` say otherwise, with
/// `ownerOnly` always with 0600.
package struct OpenFlags: OptionSet, Sendable {
  package let rawValue: Int
  package init(rawValue: Int) { self.rawValue = rawValue }

  package static let write = Self(rawValue: 1)
  package static let create = Self(rawValue: 2)
  /// With `create`: fails with `EEXIST` when the name exists.
  package static let exclusive = Self(rawValue: 4)
  package static let truncate = Self(rawValue: 8)
  package static let append = Self(rawValue: 16)
  package static let directory = Self(rawValue: 32)
  /// With `create`: nobody else may read the file.
  package static let ownerOnly = Self(rawValue: 64)
}

package struct DirectoryEntry: Sendable, Equatable {
  package var name: String
  /// Also true for a symbolic link to a directory.
  package var isDirectory: Bool
  /// A symbolic link.
  package var isLink: Bool

  package init(name: String, isDirectory: Bool, isLink: Bool = false) {
    self.name = name
    self.isDirectory = isDirectory
    self.isLink = isLink
  }
}

extension FileSystem {
  /// The size in bytes; nil when nothing has that name.
  package func size(of path: String) throws(FileSystemError) -> Int? {
    try self.status(at: path)?.byteCount
  }

  /// Gives a file another name in the same directory, which must not be taken: `EEXIST`.
  ///
  /// File systems without `RENAME_NOREPLACE` get a second name and lose the first; a crash in
  /// between leaves both, for the same file. Where links are refused as well, the name is looked up
  /// first: only a process that ignores the lock of the caller could take it in between.
  package func move(_ from: String, to: String) throws(FileSystemError) {
    do throws(FileSystemError) {
      return try self.renameWithoutReplacing(from, to: to)
    } catch {
      guard FileSystemError.notSupported.contains(error.code) else { throw error }
    }
    do throws(FileSystemError) {
      try self.link(from, to: to)
    } catch {
      if error.code == FileSystemError.exists, try self.isSameFile(from, to) {
        // NFS repeats a request whose answer was lost, and reports what the first one did.
      } else {
        guard FileSystemError.notSupported.contains(error.code) else { throw error }
        guard try self.status(at: to) == nil else {
          throw FileSystemError("rename", to, code: FileSystemError.exists)
        }
        return try self.rename(from, to: to)
      }
    }
    // A power cut must not take the new name back and leave the file without any.
    try self.synchronizeDirectory(self.parent(of: to))
    try self.remove(from)
  }

  /// Whether two names belong to one file.
  package func isSameFile(_ left: String, _ right: String) throws(FileSystemError) -> Bool {
    guard let left = try self.status(at: left), let right = try self.status(at: right) else {
      return false
    }
    return left.isSameFile(as: right)
  }

  /// Makes the names inside a directory durable.
  package func synchronizeDirectory(_ path: String) throws(FileSystemError) {
    let directory = try self.open(path, [.directory])
    defer { self.close(directory) }
    try self.synchronize(directory, dataOnly: false, path: path)
  }

  /// Makes a directory and those above it; all of them are durable on return.
  ///
  /// Also those that were there: a run that was killed may have made them a moment ago.
  package func makeDirectories(_ path: String) throws(FileSystemError) {
    let parent = Self.parent(of: path)
    guard parent != path else { return }
    try self.makeDirectories(parent)
    var isNew = false
    // This comes first: mkdir(2) fails in a directory that is closed to us, whatever is there.
    if try self.size(of: path) == nil { isNew = try self.makeDirectory(path) }
    if isNew {
      try self.synchronizeDirectory(parent)
    } else {
      do throws(FileSystemError) {
        try self.synchronizeDirectory(parent)
      } catch {
        // Directories far above may be closed to us; then we did not make what is in them.
        guard FileSystemError.notOurs.contains(error.code) else { throw error }
      }
    }
  }

  /// The directory that holds a path: `/a` for `/a/b`, `/` for `/a`.
  package static func parent(of path: String) -> String {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  package func parent(of path: String) -> String { Self.parent(of: path) }
}
