package import Clocks
package import DurableFiles
internal import EventLoop
internal import Glibc

/// A file with a refresh token that the service replaces: read, used and replaced under a lock, so
/// that several processes can share it.
///
/// The lock is a file of its own beside it (`<name>.lock`), since replacing the token gives its name
/// to another file.
package struct RefreshTokenFile: Sendable {
  /// The path as it was given.
  package let path: String
  private let fileSystem: any FileSystem
  private let clock: ProcessClock

  /// The longest token that is accepted.
  static let maxByteCount = 16 << 10

  package init(
    _ path: String, on fileSystem: any FileSystem = SystemFileSystem(),
    clock: ProcessClock = ProcessClock()
  ) {
    self.path = path
    self.clock = clock
    self.fileSystem = fileSystem
  }

  /// Where the file is, links followed, so that a link stays one when the file is replaced.
  private var place: String {
    guard let real = realpath(self.path, nil) else { return self.path }
    defer { free(real) }
    return String(cString: real)
  }

  /// Runs `body` while no other process of this kind uses the file.
  ///
  /// - Parameters:
  ///   - attempts: how often the lock is asked for.
  ///   - pause: between two attempts.
  func locked<Value>(
    attempts: Int = 600, pause: Duration = .milliseconds(200), _ body: () async throws -> Value
  ) async throws -> Value {
    let lock = "\(self.place).lock"
    let file: OpenFile
    do throws(FileSystemError) {
      file = try OpenFile(lock, [.write, .create, .ownerOnly], on: self.fileSystem)
    } catch {
      // Where nothing can be written, nobody replaces the token either.
      guard [EROFS, EACCES, EPERM].contains(error.code) else {
        throw self.error(error, "cannot be locked")
      }
      return try await body()
    }
    for attempt in 1... {
      do throws(FileSystemError) {
        if try file.lock(wait: false) { break }
      } catch {
        throw self.error(error, "cannot be locked")
      }
      guard attempt < attempts else {
        throw AuthError(
          .unavailable,
          "another process has held \(lock) for two minutes; end the process that hangs")
      }
      try await self.clock.sleep(for: pause)
    }
    return try await body()
  }

  func read() throws(AuthError) -> String {
    let bytes: [UInt8]
    do throws(FileSystemError) {
      let file = try OpenFile(self.place, [], on: self.fileSystem)
      bytes = try file.content(byteCount: Self.maxByteCount + 1)
    } catch {
      throw self.error(error, "cannot be read")
    }
    let token = String(decoding: bytes, as: UTF8.self).trimmedOfWhitespace
    guard AccessToken.isUsable(token) else {
      throw AuthError(
        .configuration,
        "refresh_token_file \(self.path) must contain the token and nothing else: a single word of "
          + "printable ASCII, 16 KiB at most")
    }
    return token
  }

  /// A file that has the room for any token, so that a full disk is noticed before the service has
  /// replaced the one that is stored.
  struct Reservation {
    fileprivate let status: FileStatus
  }

  /// - Returns: nil where this process may not write, so that nobody replaces the token either.
  func reserve() throws(AuthError) -> Reservation? {
    let place = self.place
    let temporary = "\(place).new"
    do throws(FileSystemError) {
      let room = [UInt8](repeating: UInt8(ascii: "\n"), count: Self.maxByteCount + 1)
      return Reservation(status: try self.fill(temporary, with: room, for: place))
    } catch {
      self.release()
      if [EROFS, EACCES, EPERM].contains(error.code) { return nil }
      // The disk may have room in a moment.
      throw AuthError(
        [EMFILE, ENFILE, ENOMEM].contains(error.code) ? .exhausted : .unavailable,
        "no login was attempted, because a new refresh token could not be stored in "
          + "refresh_token_file \(self.path): \(error)")
    }
  }

  /// Removes what `reserve` has made and nothing was written to.
  func release() { try? self.fileSystem.remove("\(self.place).new") }

  /// Replaces the token in one step, durable on return. The file is its owner's alone afterwards,
  /// and belongs to whom it belonged before.
  func write(_ token: String, to reservation: Reservation? = nil) throws(AuthError) {
    let place = self.place
    let temporary = "\(place).new"
    let text = Array("\(token)\n".utf8)
    do throws(FileSystemError) {
      if try !self.refill(temporary, reservation, with: text) {
        _ = try self.fill(temporary, with: text, for: place)
      }
      try self.fileSystem.rename(temporary, to: place)
      try self.fileSystem.synchronizeDirectory(self.fileSystem.parent(of: place))
    } catch {
      throw self.error(error, "cannot be replaced")
    }
  }

  private func fill(
    _ temporary: String, with text: [UInt8], for place: String
  ) throws(FileSystemError) -> FileStatus {
    let file = try self.newFile(temporary)
    try file.write(text)
    try Self.keepOwner(of: place, in: temporary, file.descriptor)
    try file.synchronize()
    return try file.status()
  }

  /// Writes into the room that is reserved; false if it is gone, or has another name as well.
  private func refill(
    _ temporary: String, _ reservation: Reservation?, with text: [UInt8]
  ) throws(FileSystemError) -> Bool {
    guard let reservation, try self.fileSystem.status(at: temporary) == reservation.status else {
      return false
    }
    let file = try OpenFile(temporary, [.write], on: self.fileSystem)
    guard try file.status() == reservation.status, reservation.status.linkCount == 1 else {
      return false
    }
    try file.write(text)
    try file.truncate(to: text.count)
    try file.synchronize()
    return true
  }

  /// What a crash has left under the name is removed; nothing is written through it.
  private func newFile(_ path: String) throws(FileSystemError) -> OpenFile {
    let flags: OpenFlags = [.write, .create, .exclusive, .ownerOnly]
    do throws(FileSystemError) {
      return try OpenFile(path, flags, on: self.fileSystem)
    } catch {
      guard error.code == FileSystemError.exists else { throw error }
      try self.fileSystem.remove(path)
      return try OpenFile(path, flags, on: self.fileSystem)
    }
  }

  /// Root may renew the token of a user, who has to be able to read it afterwards.
  private static func keepOwner(
    of path: String, in temporary: String, _ descriptor: Int32
  ) throws(FileSystemError) {
    var old = stat()
    var new = stat()
    guard stat(path, &old) == 0, fstat(descriptor, &new) == 0,
      old.st_uid != new.st_uid || old.st_gid != new.st_gid
    else { return }
    guard fchown(descriptor, old.st_uid, old.st_gid) == 0 else {
      // Another user's file: with the same group that user may still be served, but not surely.
      guard old.st_uid == new.st_uid else {
        throw FileSystemError("fchown", temporary, code: errno)
      }
      return
    }
  }

  private func error(_ error: FileSystemError, _ what: String) -> AuthError {
    let isTransient = [EMFILE, ENFILE, ENOMEM].contains(error.code)
    return AuthError(
      isTransient ? .exhausted : .configuration,
      "refresh_token_file \(self.path) \(what): \(error)")
  }
}

extension String {
  var trimmedOfWhitespace: String {
    let text = self.drop { $0.isWhitespace }
    guard let last = text.lastIndex(where: { !$0.isWhitespace }) else { return "" }
    return String(text[...last])
  }
}
