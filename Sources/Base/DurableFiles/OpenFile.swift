internal import Glibc

/// Owns an open file; closed when it goes.
package struct OpenFile: ~Copyable {
  package let path: String
  package let descriptor: Int32
  private let fileSystem: any FileSystem

  package init(
    _ path: String, _ flags: OpenFlags, on fileSystem: any FileSystem
  ) throws(FileSystemError) {
    self.descriptor = try fileSystem.open(path, flags)
    self.path = path
    self.fileSystem = fileSystem
  }

  /// Makes a file that is to be renamed to its name. One that a crash has left there is removed;
  /// whatever else has the name is never written through.
  package init(
    temporary path: String, on fileSystem: any FileSystem
  ) throws(FileSystemError) {
    let flags: OpenFlags = [.write, .create, .exclusive]
    do throws(FileSystemError) {
      self.descriptor = try fileSystem.open(path, flags)
    } catch {
      guard error.code == FileSystemError.exists else { throw error }
      try fileSystem.remove(path)
      self.descriptor = try fileSystem.open(path, flags)
    }
    self.path = path
    self.fileSystem = fileSystem
  }

  deinit { self.fileSystem.close(self.descriptor) }

  package borrowing func write(_ bytes: UnsafeRawBufferPointer) throws(FileSystemError) {
    var rest = bytes
    while !rest.isEmpty {
      let count = try self.fileSystem.write(rest, to: self.descriptor, path: self.path)
      // write(2) gives 0 for nothing but an empty request; some network file systems differ.
      guard count > 0 else { throw FileSystemError("write", self.path, code: EIO) }
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    }
  }

  package borrowing func write(_ bytes: [UInt8]) throws(FileSystemError) {
    var failure: FileSystemError?
    bytes.withUnsafeBytes { bytes in
      do throws(FileSystemError) { try self.write(bytes) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// Fills as much of `bytes` as the file has from `offset` on, and returns how much that is.
  package borrowing func read(
    into bytes: UnsafeMutableRawBufferPointer, at offset: Int
  ) throws(FileSystemError) -> Int {
    var filled = 0
    while filled < bytes.count {
      let count = try self.fileSystem.read(
        into: UnsafeMutableRawBufferPointer(rebasing: bytes[filled...]), from: self.descriptor,
        at: offset + filled, path: self.path)
      if count == 0 { break }
      filled += count
    }
    return filled
  }

  /// The bytes of the file from `offset` on, at most `byteCount`.
  package borrowing func content(
    from offset: Int = 0, byteCount: Int
  ) throws(FileSystemError) -> [UInt8] {
    var failure: FileSystemError?
    let bytes = [UInt8](unsafeUninitializedCapacity: byteCount) { bytes, count in
      do throws(FileSystemError) {
        count = try self.read(into: UnsafeMutableRawBufferPointer(bytes), at: offset)
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return bytes
  }

  package borrowing func truncate(to byteCount: Int) throws(FileSystemError) {
    try self.fileSystem.truncate(self.descriptor, to: byteCount, path: self.path)
  }

  package borrowing func synchronize(dataOnly: Bool = false) throws(FileSystemError) {
    try self.fileSystem.synchronize(self.descriptor, dataOnly: dataOnly, path: self.path)
  }

  package borrowing func lock(
    shared: Bool = false, wait: Bool
  ) throws(FileSystemError) -> Bool {
    try self.fileSystem.lock(self.descriptor, shared: shared, wait: wait, path: self.path)
  }

  package borrowing func status() throws(FileSystemError) -> FileStatus {
    try self.fileSystem.status(of: self.descriptor, path: self.path)
  }

  package borrowing func hasName() throws(FileSystemError) -> Bool {
    try self.status().linkCount > 0
  }

  /// Checks that this is the file that was seen before, and that it has not become shorter.
  ///
  /// - Throws: an error that says what another process did to the file.
  package borrowing func checkContinues(_ seen: FileStatus) throws(FileSystemError) {
    let own = try self.status()
    guard own.isSameFile(as: seen) else {
      throw FileSystemError(self.path, interference: "another process replaced or removed the file")
    }
    guard own.byteCount >= seen.byteCount else {
      throw FileSystemError(
        self.path,
        interference:
          "another process truncated the file, which has \(own.byteCount) bytes instead "
          + "of \(seen.byteCount)")
    }
  }

  /// Checks that the file has the size that this process has given it, and still its name.
  ///
  /// - Throws: an error that says what another process did to the file.
  package borrowing func checkIntact(byteCount: Int) throws(FileSystemError) {
    let own = try self.status()
    let named = try self.fileSystem.status(at: self.path)
    guard let named else { throw FileSystemError("stat", self.path, code: ENOENT) }
    let interference: String
    if !named.isSameFile(as: own) {
      interference = "another process replaced the file"
    } else if own.byteCount != byteCount {
      interference =
        "another process \(own.byteCount < byteCount ? "truncated" : "appended to") the file, which "
        + "has \(own.byteCount) bytes instead of \(byteCount)"
    } else {
      return
    }
    throw FileSystemError(self.path, interference: interference)
  }
}
