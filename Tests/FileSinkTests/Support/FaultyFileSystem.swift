import Checkpoint
import Glibc
import Pipeline

/// A file system that fails on demand and takes short writes, around another.
final class FaultyFileSystem: FileSystem, @unchecked Sendable {
  // Not guarded: each test uses its own from one thread.
  struct Call: Equatable {
    var name: String
    var path: String
  }

  private let base: any FileSystem
  /// Asked before each call, with its number from 1: the errno it fails with.
  var fault: (Int, Call) -> Int32? = { _, _ in nil }
  /// The most bytes one write takes.
  var maxWriteByteCount = Int.max
  private(set) var calls: [Call] = []

  init(_ base: any FileSystem = SystemFileSystem()) { self.base = base }

  private func enter(_ name: String, _ path: String) throws(FileSystemError) {
    let call = Call(name: name, path: path)
    self.calls.append(call)
    if let code = self.fault(self.calls.count, call) {
      throw FileSystemError(name, path, code: code)
    }
  }

  func open(_ path: String, _ flags: OpenFlags) throws(FileSystemError) -> Int32 {
    try self.enter("open", path)
    return try self.base.open(path, flags)
  }

  func close(_ file: Int32) { self.base.close(file) }

  func write(
    _ bytes: UnsafeRawBufferPointer, to file: Int32, path: String
  ) throws(FileSystemError) -> Int {
    try self.enter("write", path)
    let part = UnsafeRawBufferPointer(rebasing: bytes.prefix(self.maxWriteByteCount))
    return try self.base.write(part, to: file, path: path)
  }

  func read(
    into bytes: UnsafeMutableRawBufferPointer, from file: Int32, at offset: Int, path: String
  ) throws(FileSystemError) -> Int {
    try self.enter("read", path)
    return try self.base.read(into: bytes, from: file, at: offset, path: path)
  }

  func truncate(_ file: Int32, to byteCount: Int, path: String) throws(FileSystemError) {
    try self.enter("ftruncate", path)
    try self.base.truncate(file, to: byteCount, path: path)
  }

  func synchronize(_ file: Int32, dataOnly: Bool, path: String) throws(FileSystemError) {
    try self.enter(dataOnly ? "fdatasync" : "fsync", path)
    try self.base.synchronize(file, dataOnly: dataOnly, path: path)
  }

  func size(of path: String) throws(FileSystemError) -> Int? {
    try self.enter("stat", path)
    return try self.base.size(of: path)
  }

  func rename(_ from: String, to: String) throws(FileSystemError) {
    try self.enter("rename", to)
    try self.base.rename(from, to: to)
  }

  func renameWithoutReplacing(_ from: String, to: String) throws(FileSystemError) {
    try self.enter("renameat2", to)
    try self.base.renameWithoutReplacing(from, to: to)
  }

  func remove(_ path: String) throws(FileSystemError) {
    try self.enter("unlink", path)
    try self.base.remove(path)
  }

  func makeDirectory(_ path: String) throws(FileSystemError) -> Bool {
    try self.enter("mkdir", path)
    return try self.base.makeDirectory(path)
  }

  func list(_ directory: String) throws(FileSystemError) -> [DirectoryEntry]? {
    try self.enter("opendir", directory)
    return try self.base.list(directory)
  }

  func lock(_ file: Int32, wait: Bool, path: String) throws(FileSystemError) -> Bool {
    try self.enter("flock", path)
    return try self.base.lock(file, wait: wait, path: path)
  }

  func hasName(_ file: Int32, path: String) throws(FileSystemError) -> Bool {
    try self.enter("fstat", path)
    return try self.base.hasName(file, path: path)
  }
}
