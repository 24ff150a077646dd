internal import CSystem
internal import Glibc

/// Permissions of new files and directories; exact, whatever the umask.
package struct FilePermissions: Sendable, Equatable {
  /// The mode of files, for example 0o640. Directories can be searched by those who can read them.
  package var mode: UInt32
  /// nil: that of the process, or of the directory where that has its group inherited.
  package var groupID: UInt32?

  package init(mode: UInt32, groupID: UInt32?) {
    self.mode = mode
    self.groupID = groupID
  }

  package var directoryMode: UInt32 { self.mode | (self.mode & 0o444) >> 2 }
}

/// The calls of the running system.
package struct SystemFileSystem: FileSystem {
  private let permissions: FilePermissions?
  /// Calls that a test wants the system to refuse, and with what errno.
  private let refused: [String: Int32]

  /// - Parameter permissions: nil for 0640 and 0750 as the umask leaves them.
  package init(permissions: FilePermissions? = nil, refusing refused: [String: Int32] = [:]) {
    self.permissions = permissions
    self.refused = refused
  }

  package func open(_ path: String, _ flags: OpenFlags) throws(FileSystemError) -> Int32 {
    var bits = O_CLOEXEC | (flags.contains(.write) ? O_RDWR : O_RDONLY)
    // Files to write belong to this program, which creates no links, so links are refused. A pipe
    // in place of a file to read must not block: it cannot be read at an offset.
    bits |= flags.contains(.write) ? O_NOFOLLOW : O_NONBLOCK
    if flags.contains(.create) { bits |= O_CREAT }
    if flags.contains(.exclusive) { bits |= O_EXCL }
    if flags.contains(.truncate) { bits |= O_TRUNC }
    if flags.contains(.append) { bits |= O_APPEND }
    if flags.contains(.directory) { bits |= O_DIRECTORY }
    let isPrivate = flags.contains(.ownerOnly)
    let mode: mode_t = isPrivate ? 0o600 : 0o640
    let file = try self.call("open", path) { Glibc.open(path, bits, mode) }
    guard flags.contains(.create), !isPrivate, let permissions else { return file }
    do throws(FileSystemError) {
      try self.set(permissions.mode, permissions.groupID, of: file, path)
    } catch {
      self.close(file)
      throw error
    }
    return file
  }

  /// Sets permissions that differ. Files of other users are left unchanged, because only the owner
  /// may change them.
  private func set(
    _ mode: UInt32, _ groupID: UInt32?, of file: Int32, _ path: String
  ) throws(FileSystemError) {
    var status = stat()
    _ = try self.call("fstat", path) { fstat(file, &status) }
    guard status.st_uid == geteuid() else { return }
    // First: a change of the group may take bits of the mode away.
    if let groupID, status.st_gid != groupID {
      _ = try self.call("fchown", path) { fchown(file, uid_t.max, groupID) }
    }
    if status.st_mode & 0o777 != mode {
      _ = try self.call("fchmod", path) { fchmod(file, mode | status.st_mode & S_ISGID) }
    }
  }

  package func close(_ file: Int32) { _ = Glibc.close(file) }

  package func write(
    _ bytes: UnsafeRawBufferPointer, to file: Int32, path: String
  ) throws(FileSystemError) -> Int {
    try self.call("write", path) { Glibc.write(file, bytes.baseAddress, bytes.count) }
  }

  package func read(
    into bytes: UnsafeMutableRawBufferPointer, from file: Int32, at offset: Int, path: String
  ) throws(FileSystemError) -> Int {
    try self.call("read", path) { pread(file, bytes.baseAddress, bytes.count, offset) }
  }

  package func truncate(_ file: Int32, to byteCount: Int, path: String) throws(FileSystemError) {
    _ = try self.call("ftruncate", path) { ftruncate(file, byteCount) }
  }

  package func synchronize(
    _ file: Int32, dataOnly: Bool, path: String
  ) throws(FileSystemError) {
    do throws(FileSystemError) {
      if dataOnly {
        _ = try self.call("fdatasync", path) { fdatasync(file) }
      } else {
        _ = try self.call("fsync", path) { fsync(file) }
      }
    } catch {
      // Some file systems cannot synchronise directories, or single files; all together always.
      guard [EINVAL, ENOSYS, EOPNOTSUPP].contains(error.code) else { throw error }
      _ = try self.call("syncfs", path) { c_syncfs(file) }
    }
  }

  package func status(at path: String) throws(FileSystemError) -> FileStatus? {
    var status = stat()
    do {
      _ = try self.call("stat", path) { stat(path, &status) }
    } catch {
      if error.code == ENOENT { return nil }
      throw error
    }
    return Self.status(status)
  }

  package func status(of file: Int32, path: String) throws(FileSystemError) -> FileStatus {
    var status = stat()
    _ = try self.call("fstat", path) { fstat(file, &status) }
    return Self.status(status)
  }

  private static func status(_ status: stat) -> FileStatus {
    FileStatus(
      device: UInt64(status.st_dev), inode: UInt64(status.st_ino), byteCount: Int(status.st_size),
      linkCount: Int(status.st_nlink))
  }

  package func rename(_ from: String, to: String) throws(FileSystemError) {
    _ = try self.call("rename", to) { Glibc.rename(from, to) }
  }

  package func renameWithoutReplacing(_ from: String, to: String) throws(FileSystemError) {
    _ = try self.call("renameat2", to) {
      c_renameat2(AT_FDCWD, from, AT_FDCWD, to, C_RENAME_NOREPLACE)
    }
  }

  package func exchange(_ path: String, with other: String) throws(FileSystemError) {
    // RENAME_EXCHANGE of linux/fs.h.
    let exchanging: UInt32 = 2
    _ = try self.call("renameat2", path) {
      c_renameat2(AT_FDCWD, other, AT_FDCWD, path, exchanging)
    }
  }

  package func link(_ from: String, to: String) throws(FileSystemError) {
    _ = try self.call("link", to) { Glibc.link(from, to) }
  }

  package func remove(_ path: String) throws(FileSystemError) {
    _ = try self.call("unlink", path) { unlink(path) }
  }

  package func makeDirectory(_ path: String) throws(FileSystemError) -> Bool {
    do {
      _ = try self.call("mkdir", path) { mkdir(path, 0o750) }
    } catch {
      if error.code == EEXIST { return false }
      throw error
    }
    if let permissions {
      let directory = try self.open(path, [.directory])
      defer { self.close(directory) }
      try self.set(permissions.directoryMode, permissions.groupID, of: directory, path)
    }
    return true
  }

  package func makeDirectory(
    _ path: String, like other: String
  ) throws(FileSystemError) -> Bool {
    var status = stat()
    _ = try self.call("stat", other) { stat(other, &status) }
    do {
      _ = try self.call("mkdir", path) { mkdir(path, 0o700) }
    } catch {
      if error.code == EEXIST { return false }
      throw error
    }
    try self.setPermissions(of: path, status)
    return true
  }

  package func setPermissions(of path: String, like other: String) throws(FileSystemError) {
    var status = stat()
    _ = try self.call("stat", other) { stat(other, &status) }
    try self.setPermissions(of: path, status)
  }

  private func setPermissions(of path: String, _ status: stat) throws(FileSystemError) {
    var own = stat()
    _ = try self.call("stat", path) { stat(path, &own) }
    if own.st_uid != status.st_uid || own.st_gid != status.st_gid {
      _ = try self.call("chown", path) { chown(path, status.st_uid, status.st_gid) }
    }
    // After the change of the group, which may take bits of the mode away.
    _ = try self.call("chmod", path) { chmod(path, status.st_mode & 0o7777) }
  }

  package func removeDirectory(_ path: String) throws(FileSystemError) {
    _ = try self.call("rmdir", path) { rmdir(path) }
  }

  package func list(_ directory: String) throws(FileSystemError) -> [DirectoryEntry]? {
    guard let stream = opendir(directory) else {
      let code = errno
      if code == ENOENT { return nil }
      throw FileSystemError("opendir", directory, code: code)
    }
    defer { closedir(stream) }
    var entries: [DirectoryEntry] = []
    while true {
      // readdir tells end and error apart by errno alone.
      errno = 0
      guard let entry = readdir(stream) else { break }
      let name = withUnsafePointer(to: &entry.pointee.d_name) { tuple in
        tuple.withMemoryRebound(to: CChar.self, capacity: MemoryLayout.size(ofValue: tuple.pointee))
        { String(cString: $0) }
      }
      guard name != ".", name != ".." else { continue }
      var isDirectory = entry.pointee.d_type == UInt8(DT_DIR)
      var isLink = entry.pointee.d_type == UInt8(DT_LNK)
      if isLink || entry.pointee.d_type == UInt8(DT_UNKNOWN) {
        // Some file systems do not tell the type of an entry; a link may lead to another disk.
        let path = "\(directory)/\(name)"
        var status = stat()
        isLink = lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
        isDirectory = stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
      }
      entries.append(DirectoryEntry(name: name, isDirectory: isDirectory, isLink: isLink))
    }
    guard errno == 0 else { throw FileSystemError("readdir", directory, code: errno) }
    return entries
  }

  package func lock(
    _ file: Int32, shared: Bool, wait: Bool, path: String
  ) throws(FileSystemError) -> Bool {
    do throws(FileSystemError) {
      do throws(FileSystemError) {
        let kind = shared ? LOCK_SH : LOCK_EX
        _ = try self.call("flock", path) { flock(file, kind | (wait ? 0 : LOCK_NB)) }
      } catch {
        // Lustre and 9p may have locks of ranges only. Like those of flock, these belong to the
        // open file: a process that opens it again is locked out.
        guard [EINVAL, ENOSYS, EOPNOTSUPP, ENOLCK].contains(error.code) else { throw error }
        var whole = Glibc.flock()
        whole.l_type = Int16(shared ? F_RDLCK : F_WRLCK)
        whole.l_whence = Int16(SEEK_SET)
        _ = try self.call("fcntl", path) {
          fcntl(file, wait ? C_F_OFD_SETLKW : C_F_OFD_SETLK, &whole)
        }
      }
    } catch {
      if error.code == EWOULDBLOCK { return false }
      throw error
    }
    return true
  }

  /// Makes a call again while a signal interrupts it, and turns -1 into the error.
  private func call<Result: SignedInteger>(
    _ name: String, _ path: String, _ body: () -> Result
  ) throws(FileSystemError) -> Result {
    if let code = self.refused[name] { throw FileSystemError(name, path, code: code) }
    while true {
      let result = body()
      if result >= 0 { return result }
      let code = errno
      // fsync is not among those a signal interrupts (fsync(2)): its EINTR is a failure.
      if code == EINTR, name != "fsync", name != "fdatasync" { continue }
      throw FileSystemError(name, path, code: code)
    }
  }
}
