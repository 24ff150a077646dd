import Glibc
import TestSupport
import Testing

@testable import DurableFiles

@Suite("Folders that change places")
struct FolderCallsTests {
  private let directory: TemporaryDirectory
  private let fileSystem = SystemFileSystem()

  init() throws { self.directory = try TemporaryDirectory() }

  private func path(_ name: String) -> String { "\(self.directory.path)/\(name)" }

  @Test("Two folders change places with what is in them")
  func exchange() throws {
    for name in ["a", "b"] {
      #expect(try self.fileSystem.makeDirectory(self.path(name)))
      _ = try OpenFile(self.path("\(name)/\(name)"), [.write, .create], on: self.fileSystem)
    }
    try self.fileSystem.exchange(self.path("a"), with: self.path("b"))
    #expect(try self.fileSystem.list(self.path("a"))?.map(\.name) == ["b"])
    #expect(try self.fileSystem.list(self.path("b"))?.map(\.name) == ["a"])
    let error = #expect(throws: FileSystemError.self) {
      try self.fileSystem.exchange(self.path("a"), with: self.path("c"))
    }
    #expect(error?.code == ENOENT)
    #expect(try self.fileSystem.list(self.path("a"))?.map(\.name) == ["b"])
    let refusing = SystemFileSystem(refusing: ["renameat2": EINVAL])
    #expect(throws: FileSystemError.self) {
      try refusing.exchange(self.path("a"), with: self.path("b"))
    }
  }

  @Test("A folder like another has its mode, whatever the umask")
  func like() throws {
    _ = try self.fileSystem.makeDirectory(self.path("a"))
    #expect(chmod(self.path("a"), 0o2775) == 0)
    #expect(try self.fileSystem.makeDirectory(self.path("b"), like: self.path("a")))
    var status = stat()
    #expect(stat(self.path("b"), &status) == 0 && status.st_mode & 0o7777 == 0o2775)
    #expect(try !self.fileSystem.makeDirectory(self.path("b"), like: self.path("a")))
    #expect(throws: FileSystemError.self) {
      try self.fileSystem.makeDirectory(self.path("c"), like: self.path("d"))
    }
    #expect(try self.fileSystem.status(at: self.path("c")) == nil)
  }

  @Test("Only an empty folder is removed")
  func remove() throws {
    _ = try self.fileSystem.makeDirectory(self.path("a"))
    _ = try self.fileSystem.makeDirectory(self.path("a/b"))
    let error = #expect(throws: FileSystemError.self) {
      try self.fileSystem.removeDirectory(self.path("a"))
    }
    #expect(error?.code == ENOTEMPTY)
    try self.fileSystem.removeDirectory(self.path("a/b"))
    try self.fileSystem.removeDirectory(self.path("a"))
    #expect(try self.fileSystem.list(self.path("a")) == nil)
  }

  @Test(
    "A lock is shared by many or held by one",
    arguments: [[:], ["flock": ENOSYS]] as [[String: Int32]])
  func locks(refused: [String: Int32]) throws {
    let fileSystem = SystemFileSystem(refusing: refused)
    func open() throws -> OpenFile {
      try OpenFile(self.path("lock"), [.write, .create], on: fileSystem)
    }
    let first = try open()
    let second = try open()
    let third = try open()
    #expect(try first.lock(shared: true, wait: false))
    #expect(try second.lock(shared: true, wait: false))
    #expect(try !third.lock(wait: false))
    _ = consume first
    #expect(try !third.lock(wait: false))
    _ = consume second
    #expect(try third.lock(wait: false))
    let fourth = try open()
    #expect(try !fourth.lock(shared: true, wait: false))
    _ = consume third
    #expect(try fourth.lock(shared: true, wait: false))
  }
}
