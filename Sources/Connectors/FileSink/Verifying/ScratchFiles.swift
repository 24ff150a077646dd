internal import DurableFiles
internal import Glibc

/// Creates files for data that does not fit into memory. Each file is unlinked as soon as it is
/// open, so that nothing remains however the process ends.
package final class ScratchFiles {
  private let directory: String
  private let fileSystem: any FileSystem
  /// Part of the names; objects that are compared side by side have files of their own.
  private var number = UInt64.random(in: 0..<1 << 48)

  /// - Parameter directory: absolute; created if missing.
  package convenience init(directory: String) {
    self.init(directory: directory, on: SystemFileSystem())
  }

  init(directory: String, on fileSystem: any FileSystem) {
    self.directory = directory
    self.fileSystem = fileSystem
  }

  func make() throws(FileSystemError) -> ScratchFile {
    try self.fileSystem.makeDirectories(self.directory)
    self.number += 1
    let path = "\(self.directory)/.verify-\(getpid())-\(self.number).scratch"
    let flags: OpenFlags = [.write, .create, .exclusive, .ownerOnly]
    let file: OpenFile
    do throws(FileSystemError) {
      file = try OpenFile(path, flags, on: self.fileSystem)
    } catch {
      // An empty file of a process with the same ID that ended between opening and unlinking.
      guard error.code == FileSystemError.exists else { throw error }
      try self.fileSystem.remove(path)
      file = try OpenFile(path, flags, on: self.fileSystem)
    }
    try self.fileSystem.remove(path)
    return ScratchFile(file)
  }
}

/// A file without a name, written from its beginning to its end and then read.
final class ScratchFile {
  private let file: OpenFile
  private(set) var byteCount = 0

  init(_ file: consuming OpenFile) { self.file = file }

  func write(_ bytes: UnsafeRawBufferPointer) throws(FileSystemError) {
    try self.file.write(bytes)
    self.byteCount += bytes.count
  }

  func read(
    into bytes: UnsafeMutableRawBufferPointer, at offset: Int
  ) throws(FileSystemError) -> Int {
    try self.file.read(into: bytes, at: offset)
  }
}
