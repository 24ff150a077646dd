import DurableFiles
import Glibc
import JSON

extension PipelineTestFile {
  /// Writes the file with another document, of which it has most already. Layout, mode and a symbolic link
  /// to the file stay; a reader sees the old text or the new one.
  ///
  /// - Returns: false when the file is not as it was read: somebody has edited it, and it is left alone.
  func replaceText(with document: JSONValue) throws(FileSystemError) -> Bool {
    guard (try? TextFile.read(self.path)) == self.text else { return false }
    let target = FilePath.real(self.path) ?? self.path
    var status = stat()
    guard stat(target, &status) == 0 else { throw FileSystemError("stat", target, code: errno) }
    let text = JSONText(self.text, parsedTo: self.document).replacing(self.document, with: document)
    let fileSystem = SystemFileSystem(
      permissions: FilePermissions(mode: UInt32(status.st_mode & 0o777), groupID: nil))
    let directory = FilePath.directory(of: target)
    let name = String(UInt64.random(in: .min ... .max), radix: 16)
    let temporary = "\(directory)/.pubsub-etl.\(name).tmp"
    do throws(FileSystemError) {
      let file = try OpenFile(temporary: temporary, on: fileSystem)
      try file.write(text)
      try file.synchronize()
      try fileSystem.rename(temporary, to: target)
    } catch {
      unlink(temporary)
      throw error
    }
    try fileSystem.synchronizeDirectory(directory)
    return true
  }
}
