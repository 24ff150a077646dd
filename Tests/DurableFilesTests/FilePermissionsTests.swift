import DurableFiles
import Glibc
import TestSupport
import Testing

@Suite("Permissions of files", .serialized)
struct FilePermissionsTests {
  private func mode(_ path: String) throws -> UInt32 {
    var status = stat()
    try #require(stat(path, &status) == 0)
    return status.st_mode & 0o7777
  }

  /// The umask is the process's, so this takes part in nothing that makes files beside it.
  private func makeAll(
    _ permissions: FilePermissions?, umask mask: mode_t
  ) throws -> (file: UInt32, directory: UInt32) {
    let directory = try TemporaryDirectory()
    let fileSystem = SystemFileSystem(permissions: permissions)
    let old = umask(mask)
    defer { _ = umask(old) }
    let path = "\(directory.path)/a/b"
    try fileSystem.makeDirectories(path)
    _ = try OpenFile("\(path)/file", [.write, .create], on: fileSystem)
    return (try self.mode("\(path)/file"), try self.mode(path))
  }

  @Test("Without configured permissions, the umask applies, and others cannot read the file")
  func standard() throws {
    #expect(try self.makeAll(nil, umask: 0o022) == (0o640, 0o750))
    #expect(try self.makeAll(nil, umask: 0o077) == (0o600, 0o700))
  }

  @Test(
    "Configured permissions are exact, whatever the umask",
    arguments: [
      (0o644, 0o755), (0o664, 0o775), (0o600, 0o700), (0o660, 0o770), (0o640, 0o750),
    ] as [(UInt32, UInt32)], [0o022, 0o077, 0] as [mode_t])
  func exact(modes: (UInt32, UInt32), mask: mode_t) throws {
    #expect(
      try self.makeAll(FilePermissions(mode: modes.0, groupID: nil), umask: mask) == modes)
  }

  @Test("An existing file gets the permissions when it is opened for writing")
  func existing() throws {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/file"
    _ = try OpenFile(path, [.write, .create], on: SystemFileSystem())
    let permissions = FilePermissions(mode: 0o664, groupID: getegid())
    _ = try OpenFile(path, [.write, .create], on: SystemFileSystem(permissions: permissions))
    #expect(try self.mode(path) == 0o664)
  }
}
