import DurableFiles
import EventLoop
import FoundationEssentials
import Glibc
import HTTPClient
import TestSupport
import Testing

@testable import SalesforceAuth

@Suite("Logins by refresh token")
struct RefreshTokenFlowTests {
  let directory: TemporaryDirectory
  let file: String
  init() throws {
    self.directory = try TemporaryDirectory()
    self.file = "\(self.directory.path)/token"
    try self.write("first\n")
  }

  private func write(_ text: String) throws {
    try Data(text.utf8).write(to: URL(filePath: self.file))
    chmod(self.file, 0o600)
  }

  private var stored: String {
    get throws { String(decoding: try Data(contentsOf: URL(filePath: self.file)), as: UTF8.self) }
  }

  private func flow(
    _ peer: PythonServer, _ source: RefreshTokenFlow.Source? = nil, secret: String? = nil,
    notices: NoticeLog = NoticeLog()
  ) -> RefreshTokenFlow {
    RefreshTokenFlow(
      .init(
        loginURL: "http://127.0.0.1:\(peer.port)", clientID: "app", clientSecret: secret),
      source: source ?? .file(RefreshTokenFile(self.file)), organizationID: nil,
      client: HTTPClient(), onNotice: { notices.add($0) })
  }

  private func error(_ flow: RefreshTokenFlow) async throws -> AuthError {
    try await #require(throws: AuthError.self) { _ = try await flow.obtain() }
  }

  @Test("An unchanged token is used again, and its file is not touched")
  func keeps() async throws {
    let peer = try PythonServer("refresh_peer.py", ["first", "keep", "s3cretWord"])
    try self.write(" first\r\n")
    let flow = self.flow(peer, secret: "s3cretWord")
    for number in 1...3 {
      #expect(try await flow.obtain().token.value == "001Dp00000JJkkH!secret.\(number)")
    }
    #expect(try self.stored == " first\r\n")
  }

  @Test("A replaced token is in the file, for its owner alone, before the login returns")
  func rotates() async throws {
    let peer = try PythonServer("refresh_peer.py", ["first", "rotate"])
    let flow = self.flow(peer)
    for number in 1...3 {
      _ = try await flow.obtain()
      #expect(try self.stored == "next-\(number)\n")
      var status = stat()
      #expect(stat(self.file, &status) == 0 && status.st_mode & 0o777 == 0o600)
    }
    // A crash may leave one; nothing else has its name.
    try Data("torn".utf8).write(to: URL(filePath: "\(self.file).new"))
    _ = try await flow.obtain()
    #expect(try self.stored == "next-4\n")
    #expect(!FileManager.default.fileExists(atPath: "\(self.file).new"))
  }

  @Test("A replaced token is stored, even if the rest of the answer is missing")
  func incomplete() async throws {
    let peer = try PythonServer("refresh_peer.py", ["first", "incomplete"])
    let flow = self.flow(peer)
    let error = await #expect(throws: AuthError.self) { try await flow.obtain() }
    #expect(error?.code == .unavailable)
    #expect(try self.stored == "next-1\n")
    _ = try await flow.obtain()
    #expect(try self.stored == "next-2\n")
  }

  @Test("A symbolic link to the file stays a link")
  func link() async throws {
    let peer = try PythonServer("refresh_peer.py", ["first", "rotate"])
    let link = "\(self.directory.path)/link"
    #expect(symlink("token", link) == 0)
    _ = try await self.flow(peer, .file(RefreshTokenFile(link))).obtain()
    #expect(try self.stored == "next-1\n")
    var status = stat()
    #expect(lstat(link, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK)
  }

  @Test("Processes that share a file all survive a replacement")
  func shared() async throws {
    let peer = try PythonServer("refresh_peer.py", ["first", "rotate"])
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<6 {
        let flow = self.flow(peer)
        group.addTask { for _ in 0..<4 { _ = try await flow.obtain() } }
      }
      try await group.waitForAll()
    }
    #expect(try self.stored == "next-24\n")
  }

  @Test("The error says that the lock was held for too long")
  func lockTaken() async throws {
    let file = RefreshTokenFile(self.file)
    try await file.locked {
      let error = try await #require(throws: AuthError.self) {
        try await file.locked(attempts: 2, pause: .zero) {}
      }
      #expect(error.code == .unavailable)
      #expect(error.message.contains("\(self.file).lock"))
    }
    try await file.locked(attempts: 1) {}
  }

  @Test(
    "Without room for a new token no login is attempted, so that the stored one stays valid",
    arguments: ["open", "write", "fsync"], [ENOSPC, EDQUOT, EIO])
  func fullDisk(call: String, code: Int32) async throws {
    let peer = try PythonServer("refresh_peer.py", ["first", "rotate"])
    let disk = FaultyFileSystem()
    let flow = self.flow(peer, .file(RefreshTokenFile(self.file, on: disk)))
    let temporary = "\(self.file).new"
    disk.fault = { _, made in made.name == call && made.path == temporary ? code : nil }
    let error = try await self.error(flow)
    #expect(error.code == .unavailable)
    #expect(error.message.contains("no login was attempted"))
    #expect(try self.stored == "first\n")
    disk.fault = { _, _ in nil }
    // The first answer that the service has given.
    #expect(try await flow.obtain().token.value == "001Dp00000JJkkH!secret.1")
    #expect(try self.stored == "next-1\n")
    #expect(!FileManager.default.fileExists(atPath: temporary))
  }

  @Test("Where the token cannot be replaced at all, it is used", arguments: [EROFS, EACCES, EPERM])
  func readOnly(code: Int32) async throws {
    let peer = try PythonServer("refresh_peer.py", ["first", "keep"])
    let disk = FaultyFileSystem()
    disk.fault = { _, made in made.path.hasSuffix(".new") ? code : nil }
    let flow = self.flow(peer, .file(RefreshTokenFile(self.file, on: disk)))
    #expect(try await flow.obtain().token.value == "001Dp00000JJkkH!secret.1")
  }

  @Test(
    "A granted token is stored later and never lost, whichever call fails",
    arguments: ["open", "write", "fsync", "rename"])
  func failures(call: String) async throws {
    let peer = try PythonServer("refresh_peer.py", ["first", "rotate"])
    let disk = FaultyFileSystem()
    let flow = self.flow(peer, .file(RefreshTokenFile(self.file, on: disk)))
    let temporary = "\(self.file).new"
    // The first call of a kind reserves the room.
    let reserving = Lock(call == "rename" ? 0 : 1)
    disk.fault = { _, made in
      guard made.name == call, made.path == temporary || call == "rename" else { return nil }
      return reserving.withLock { count in
        defer { count -= 1 }
        return count > 0 ? nil : ENOSPC
      }
    }
    for _ in 0..<2 {
      let error = try await self.error(flow)
      #expect(error.code == .unavailable)
      #expect(error.message.contains("kept in memory"))
      // What is under the name is a whole token at any time.
      #expect(try self.stored == "first\n")
    }
    disk.fault = { _, _ in nil }
    #expect(try await flow.obtain().token.value == "001Dp00000JJkkH!secret.2")
    #expect(try self.stored == "next-2\n")
  }

  @Test("The new token is durable before the access token is used")
  func order() async throws {
    let peer = try PythonServer("refresh_peer.py", ["first", "rotate"])
    let disk = FaultyFileSystem()
    _ = try await self.flow(peer, .file(RefreshTokenFile(self.file, on: disk))).obtain()
    let calls = disk.calls.drop { !$0.path.hasSuffix(".new") }.map(\.name)
    #expect(
      calls == [
        "open", "write", "fsync", "fstat", "stat", "open", "fstat", "write", "ftruncate", "fsync",
        "rename", "open", "fsync", "unlink",
      ])
  }

  @Test("A replaced token that has no file is used, and the remedy is reported")
  func inline() async throws {
    let peer = try PythonServer("refresh_peer.py", ["first", "rotate"])
    let notices = NoticeLog()
    let flow = self.flow(peer, .value("first"), notices: notices)
    _ = try await flow.obtain()
    _ = try await flow.obtain()
    #expect(notices.all.count == 2)
    #expect(notices.all.first?.contains("refresh_token_file") == true)
  }

  @Test("An expired token is refused, and the error gives the remedy without the token")
  func expired() async throws {
    let peer = try PythonServer("refresh_peer.py", ["another", "keep"])
    try self.write("quietquiet")
    let error = try await self.error(self.flow(peer))
    #expect(error.code == .refused)
    #expect(error.message.contains("authorize the app again"))
    #expect(!error.message.contains("quiet"))
  }

  @Test(
    "A file without a token is a configuration error",
    arguments: [
      "", "\n", "two words", "{\n}", String(repeating: "x", count: 20_000),
    ])
  func unusable(text: String) async throws {
    let peer = try PythonServer("refresh_peer.py", ["first", "keep"])
    try self.write(text)
    #expect(try await self.error(self.flow(peer)).code == .configuration)
  }
}
