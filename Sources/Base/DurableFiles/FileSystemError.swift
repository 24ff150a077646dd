internal import Glibc

/// A system call on a file failed.
package struct FileSystemError: Error, Sendable, CustomStringConvertible {
  /// The name of the call, as in its manual page: `fsync`.
  package var call: String
  package var path: String
  /// errno.
  package var code: Int32
  /// What another process did to the file; nil for a call that failed.
  private var interference: String?

  package init(_ call: String, _ path: String, code: Int32) {
    self.call = call
    self.path = path
    self.code = code
  }

  /// Another process changed a file that this one is writing.
  init(_ path: String, interference: String) {
    self.init("fstat", path, code: ESTALE)
    self.interference = interference
  }

  /// A name that has to be free is not: `EEXIST`.
  package static var exists: Int32 { EEXIST }

  /// Errors of a file that its owner has to look at: no rights, or a directory of its name. A full
  /// disk and the like are not among them, since they concern other files, too.
  package static var unusable: [Int32] { [EACCES, EPERM, EISDIR, ENOTDIR, ELOOP] }

  /// Errors of fsync on a directory that this user may not read, or on a file system without it.
  static var notOurs: [Int32] { [EACCES, EPERM, EINVAL, EROFS] }

  /// Errors of a call that the file system, its server or the container does not support: EPERM of
  /// link(2) on FAT, and of unknown calls under old seccomp profiles; EMLINK where a file has one name.
  package static var notSupported: [Int32] {
    [EINVAL, ENOSYS, EOPNOTSUPP, EPERM, EMLINK]
  }

  package var description: String {
    if let interference {
      return "\(self.path): \(interference) while it was being written. Keep clean-up jobs, log "
        + "rotation and other programs away from it, then run again"
    }
    let reason = strerror(self.code).map { String(cString: $0) } ?? "error"
    return "\(self.call) of \(self.path): \(reason) (errno \(self.code)); \(self.remedy)"
  }

  /// What the user can do about it.
  package var remedy: String {
    switch self.code {
    case ENOSPC: "free space or inodes on that file system, then run again; nothing is lost"
    case EDQUOT: "raise the disk quota or free space, then run again; nothing is lost"
    case EMFILE: "raise this user's limit of open files (ulimit -n) to at least 256"
    case ENFILE: "the machine has too many open files; close some or raise fs.file-max"
    case EROFS:
      "the file system is read-only, perhaps after a disk error; check the kernel log and "
        + "remount it"
    case EIO:
      "the disk reported an error; check the kernel log. What was not yet committed will be "
        + "read again"
    case _ where ["fchmod", "fchown"].contains(self.call):
      "the file system there (\(MountedFileSystem.name(of: self.path))) or this user cannot set it; "
        + "remove \"mode\" and \"group\" of the sink, and set them when you mount the file system"
    case EACCES, EPERM: "give this user permission to read and write there"
    case ENOENT: "it was removed, or its file system is not mounted; put it back"
    case EEXIST: "a file of that name exists; move it away"
    case ELOOP: "it is a symbolic link, which this program does not write through; remove the link"
    case ENOTDIR: "part of the path is a file, not a directory"
    case ENAMETOOLONG: "choose a shorter directory or pipeline name"
    case ENOLCK:
      "the file system there (\(MountedFileSystem.name(of: self.path))) has no locks now; start its "
        + "lock service, or mount it with local locks"
    case EXDEV, EINVAL, ENOSYS, EOPNOTSUPP:
      "the file system there (\(MountedFileSystem.name(of: self.path))) does not support this call; "
        + "use a local one such as ext4 or xfs"
    default: "remove the cause and run again; nothing is lost"
    }
  }
}
