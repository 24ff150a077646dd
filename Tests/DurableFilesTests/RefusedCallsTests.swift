import Glibc
import TestSupport
import Testing

@testable import DurableFiles

/// Calls that NFS, CIFS, 9p, FUSE and others refuse, and what is done instead.
@Suite("Calls that file systems refuse")
struct RefusedCallsTests {
  private let directory: TemporaryDirectory

  init() throws { self.directory = try TemporaryDirectory() }

  private func path(_ name: String) -> String { "\(self.directory.path)/\(name)" }

  private func make(_ name: String, _ content: String) throws {
    let file = try OpenFile(self.path(name), [.write, .create], on: SystemFileSystem())
    try file.write(Array(content.utf8))
  }

  private func content(_ name: String) throws -> String? {
    guard let size = try SystemFileSystem().size(of: self.path(name)) else { return nil }
    let file = try OpenFile(self.path(name), [], on: SystemFileSystem())
    return String(decoding: try file.content(byteCount: size), as: UTF8.self)
  }

  private static let refusals: [[String: Int32]] = [
    [:], ["renameat2": EINVAL], ["renameat2": ENOSYS], ["renameat2": EOPNOTSUPP],
    ["renameat2": EPERM], ["renameat2": EINVAL, "link": EPERM],
    ["renameat2": EINVAL, "link": EOPNOTSUPP], ["renameat2": ENOSYS, "link": ENOSYS],
  ]

  @Test("A file is renamed, and never over another one", arguments: Self.refusals)
  func move(refused: [String: Int32]) throws {
    let fileSystem = SystemFileSystem(refusing: refused)
    try self.make("a", "one")
    try fileSystem.move(self.path("a"), to: self.path("b"))
    #expect(try self.content("a") == nil)
    #expect(try self.content("b") == "one")

    try self.make("a", "two")
    let error = #expect(throws: FileSystemError.self) {
      try fileSystem.move(self.path("a"), to: self.path("b"))
    }
    #expect(error?.code == EEXIST)
    #expect(try self.content("a") == "two")
    #expect(try self.content("b") == "one")
  }

  @Test("A link that NFS made before it reported that the name exists is a success")
  func repeatedLink() throws {
    try self.make("a", "one")
    try SystemFileSystem().link(self.path("a"), to: self.path("b"))
    try SystemFileSystem(refusing: ["renameat2": EINVAL]).move(self.path("a"), to: self.path("b"))
    #expect(try self.content("a") == nil)
    #expect(try self.content("b") == "one")
  }

  @Test("An error that says something about the file is not treated as a missing feature")
  func realErrors() throws {
    try self.make("a", "one")
    let fileSystem = SystemFileSystem(refusing: ["renameat2": EROFS])
    let error = #expect(throws: FileSystemError.self) {
      try fileSystem.move(self.path("a"), to: self.path("b"))
    }
    #expect(error?.code == EROFS)
    #expect(try self.content("b") == nil)
  }

  @Test(
    "Without flock, a lock of the open file keeps others away",
    arguments: [EINVAL, ENOSYS, EOPNOTSUPP, ENOLCK])
  func lock(code: Int32) throws {
    let fileSystem = SystemFileSystem(refusing: ["flock": code])
    let first = try OpenFile(self.path("lock"), [.write, .create], on: fileSystem)
    #expect(try first.lock(wait: false))
    do {
      let second = try OpenFile(self.path("lock"), [.write, .create], on: fileSystem)
      #expect(try second.lock(wait: false) == false)
    }
    // Unlike other locks of ranges, this one survives that the process closes the file elsewhere.
    let third = try OpenFile(self.path("lock"), [.write, .create], on: fileSystem)
    #expect(try third.lock(wait: false) == false)
    _ = consume first
    #expect(try third.lock(wait: false))
  }

  @Test("A file system without any lock is refused, and named")
  func noLocks() throws {
    let fileSystem = SystemFileSystem(refusing: ["flock": ENOLCK, "fcntl": ENOLCK])
    let file = try OpenFile(self.path("lock"), [.write, .create], on: fileSystem)
    let error = #expect(throws: FileSystemError.self) { _ = try file.lock(wait: false) }
    let message = try #require(error?.description)
    #expect(message.contains(MountedFileSystem.name(of: self.directory.path)), "\(message)")
  }

  @Test(
    "Directories and files that cannot be synchronized alone are synchronized with all others",
    arguments: [EINVAL, ENOSYS, EOPNOTSUPP])
  func synchronize(code: Int32) throws {
    let fileSystem = SystemFileSystem(refusing: ["fsync": code, "fdatasync": code])
    try fileSystem.makeDirectories(self.path("x/y"))
    try fileSystem.synchronizeDirectory(self.directory.path)
    let file = try OpenFile(self.path("x/y/file"), [.write, .create], on: fileSystem)
    try file.synchronize(dataOnly: true)
    try file.synchronize()
    for (call, code) in [("fsync", EIO), ("syncfs", EIO)] {
      let failing = SystemFileSystem(refusing: ["fsync": EINVAL].merging([call: code]) { $1 })
      #expect(throws: FileSystemError.self) {
        try failing.synchronizeDirectory(self.directory.path)
      }
    }
  }

  @Test("A mode that cannot be set names the settings to remove", arguments: [EPERM, EOPNOTSUPP])
  func mode(code: Int32) throws {
    let fileSystem = SystemFileSystem(
      permissions: FilePermissions(mode: 0o604, groupID: nil), refusing: ["fchmod": code])
    let error = #expect(throws: FileSystemError.self) {
      _ = try fileSystem.open(self.path("file"), [.write, .create])
    }
    #expect(error?.description.contains("\"mode\"") == true)
  }

  @Test("A probe names what the file system lacks, and leaves nothing", arguments: Self.refusals)
  func probe(refused: [String: Int32]) throws {
    let fileSystem = SystemFileSystem(refusing: refused)
    try self.make("probe.renamed", "left by a crash")
    let note = try FileSystemProbe.shortcomings(
      of: self.directory.path, name: "probe", on: fileSystem)
    #expect((note == nil) == refused.isEmpty)
    if let note {
      #expect(note.contains(MountedFileSystem.name(of: self.directory.path)))
      #expect(note.contains("neither") == (refused["link"] != nil))
    }
    #expect(try SystemFileSystem().list(self.directory.path) == [])
  }

  @Test(
    "A probe fails with the call that nothing replaces, and the next one leaves nothing",
    arguments: [
      ["write": EIO], ["ftruncate": EOPNOTSUPP], ["flock": ENOLCK, "fcntl": ENOLCK],
      ["fsync": EINVAL, "syncfs": ENOSYS],
      ["renameat2": EINVAL, "link": EPERM, "rename": EPERM],
    ])
  func failingProbe(refused: [String: Int32]) throws {
    let error = #expect(throws: FileSystemError.self) {
      _ = try FileSystemProbe.shortcomings(
        of: self.directory.path, name: "probe", on: SystemFileSystem(refusing: refused))
    }
    #expect(refused[error?.call ?? ""] == error?.code)
    let next = try FileSystemProbe.shortcomings(
      of: self.directory.path, name: "probe", on: SystemFileSystem())
    #expect(next == nil)
    #expect(try SystemFileSystem().list(self.directory.path) == [])
  }

  @Test(
    "The type of a file system is that of the longest mount point above a path",
    arguments: [
      ("/mnt/out/a", "nfs4 at /mnt/out"), ("/mnt/out", "nfs4 at /mnt/out"),
      ("/mnt/outside", "ext4 at /"), ("/mnt/my disk/x", "fuse.sshfs at /mnt/my disk"),
      ("/mnt/over/x", "cifs at /mnt/over"), ("/", "ext4 at /"),
    ])
  func mounts(path: String, name: String) {
    let mounts = """
      22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
      40 22 0:50 / /mnt/out rw,relatime shared:9 master:3 - nfs4 server:/export rw,vers=4.2
      41 22 0:51 / /mnt/my\\040disk rw - fuse.sshfs host:/x rw
      42 22 0:52 / /mnt/over rw - 9p tag rw
      43 22 0:53 / /mnt/over rw - cifs //server/share rw
      broken
      """
    #expect(MountedFileSystem.name(of: path, in: mounts) == name)
  }
}
