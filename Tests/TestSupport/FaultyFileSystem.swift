package import DurableFiles
import Glibc

/// A file system that fails on demand and takes short writes, around another.
package final class FaultyFileSystem: FileSystem, @unchecked Sendable {
  // Not guarded: each test uses its own from one thread.
  package struct Call: Equatable {
    package var name: String
    package var path: String
  }

  private let base: any FileSystem
  /// Asked before each call, with its number from 1: the errno it fails with.
  package var fault: (Int, Call) -> Int32? = { _, _ in nil }
  /// The most bytes one write takes.
  package var maxWriteByteCount = Int.max
  package private(set) var calls: [Call] = []

  package init(_ base: any FileSystem = SystemFileSystem()) { self.base = base }

  private func enter(_ name: String, _ path: String) throws(FileSystemError) {
    let call = Call(name: name, path: path)
    self.calls.append(call)
    if let code = self.fault(self.calls.count, call) {
      throw FileSystemError(name, path, code: code)
    }
  }

  package func open(_ path: String, _ flags: OpenFlags) throws(FileSystemError) -> Int32 {
    try self.enter("open", path)
    return try self.base.open(path, flags)
  }

  package func close(_ file: Int32) { self.base.close(file) }

  package func write(
    _ bytes: UnsafeRawBufferPointer, to file: Int32, path: String
  ) throws(FileSystemError) -> Int {
    try self.enter("write", path)
    let part = UnsafeRawBufferPointer(rebasing: bytes.prefix(self.maxWriteByteCount))
    return try self.base.write(part, to: file, path: path)
  }

  package func read(
    into bytes: UnsafeMutableRawBufferPointer, from file: Int32, at offset: Int, path: String
  ) throws(FileSystemError) -> Int {
    try self.enter("read", path)
    return try self.base.read(into: bytes, from: file, at: offset, path: path)
  }

  package func truncate(_ file: Int32, to byteCount: Int, path: String) throws(FileSystemError) {
    try self.enter("ftruncate", path)
    try self.base.truncate(file, to: byteCount, path: path)
  }

  package func synchronize(_ file: Int32, dataOnly: Bool, path: String) throws(FileSystemError) {
    try self.enter(dataOnly ? "fdatasync" : "fsync", path)
    try self.base.synchronize(file, dataOnly: dataOnly, path: path)
  }

  package func status(at path: String) throws(FileSystemError) -> FileStatus? {
    try self.enter("stat", path)
    return try self.base.status(at: path)
  }

  package func status(of file: Int32, path: String) throws(FileSystemError) -> FileStatus {
    try self.enter("fstat", path)
    return try self.base.status(of: file, path: path)
  }

  package func rename(_ from: String, to: String) throws(FileSystemError) {
    try self.enter("rename", to)
    try self.base.rename(from, to: to)
  }

  package func renameWithoutReplacing(_ from: String, to: String) throws(FileSystemError) {
    try self.enter("renameat2", to)
    try self.base.renameWithoutReplacing(from, to: to)
  }

  package func exchange(_ path: String, with other: String) throws(FileSystemError) {
    try self.enter("exchange", path)
    try self.base.exchange(path, with: other)
  }

  package func link(_ from: String, to: String) throws(FileSystemError) {
    try self.enter("link", to)
    try self.base.link(from, to: to)
  }

  package func remove(_ path: String) throws(FileSystemError) {
    try self.enter("unlink", path)
    try self.base.remove(path)
  }

  package func makeDirectory(_ path: String) throws(FileSystemError) -> Bool {
    try self.enter("mkdir", path)
    return try self.base.makeDirectory(path)
  }

  package func list(_ directory: String) throws(FileSystemError) -> [DirectoryEntry]? {
    try self.enter("opendir", directory)
    return try self.base.list(directory)
  }

  package func makeDirectory(
    _ path: String, like other: String
  ) throws(FileSystemError) -> Bool {
    try self.enter("mkdir", path)
    return try self.base.makeDirectory(path, like: other)
  }

  package func setPermissions(of path: String, like other: String) throws(FileSystemError) {
    try self.enter("chmod", path)
    try self.base.setPermissions(of: path, like: other)
  }

  package func removeDirectory(_ path: String) throws(FileSystemError) {
    try self.enter("rmdir", path)
    try self.base.removeDirectory(path)
  }

  package func lock(
    _ file: Int32, shared: Bool, wait: Bool, path: String
  ) throws(FileSystemError) -> Bool {
    try self.enter("flock", path)
    return try self.base.lock(file, shared: shared, wait: wait, path: path)
  }
}
