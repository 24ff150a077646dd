internal import Checkpoint
internal import DurableFiles
import JSON

extension StatePaths {
  /// Replaces a JSON file of the pipeline. A reader sees the old content or the new one.
  ///
  /// - Parameters:
  ///   - path: one of these paths, directly in the state directory.
  ///   - isDurable: whether it is on the disk on return.
  /// - Throws: `FileSystemError`.
  func replace(
    _ path: String, with json: JSONValue, hiding secrets: SecretMask, isDurable: Bool = true
  ) throws {
    let name = Substring(path.utf8.dropFirst(self.directory.utf8.count + 1))
    let temporary = "\(self.directory)/.\(name).tmp"
    let fileSystem = SystemFileSystem()
    let file = try OpenFile(temporary: temporary, on: fileSystem)
    try file.write(Array(PrintableText(json: json, hiding: secrets).text.utf8))
    if isDurable { try file.synchronize() }
    try fileSystem.rename(temporary, to: path)
    if isDurable { try fileSystem.synchronizeDirectory(self.directory) }
  }
}
