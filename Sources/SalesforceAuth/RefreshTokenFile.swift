internal import Clocks
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

  /// The longest token that is accepted.
  static let maxByteCount = 16 << 10

  package init(_ path: String, on fileSystem: any FileSystem = SystemFileSystem()) {
    self.path = path
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
      try await ProcessClock.sleep(for: pause)
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

  /// Replaces the token in one step, durable on return. The file is its owner's alone afterwards,
  /// and belongs to whom it belonged before.
  func write(_ token: String) throws(AuthError) {
    let place = self.place
    let temporary = "\(place).new"
    do throws(FileSystemError) {
      try self.fill(temporary, with: token, for: place)
      try self.fileSystem.rename(temporary, to: place)
      try self.fileSystem.synchronizeDirectory(self.fileSystem.parent(of: place))
    } catch {
      throw self.error(error, "cannot be replaced")
    }
  }

  private func fill(
    _ temporary: String, with token: String, for place: String
  ) throws(FileSystemError) {
    let file = try self.newFile(temporary)
    try file.write(Array("\(token)\n".utf8))
    try Self.keepOwner(of: place, in: temporary, file.descriptor)
    try file.synchronize()
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
