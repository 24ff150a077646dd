internal import Checkpoint
internal import DurableFiles
import JSON

/// The book of a pipeline's incidents, beside the checkpoint. It exists only while there are incidents.
///
/// Read and replaced under the lock of the pipeline; `status` reads it without.
struct IncidentFile {
  let paths: StatePaths
  let secrets: SecretMask

  /// - Returns: an empty book if there is no file; nil if the file is damaged.
  func load() -> IncidentBook? {
    guard FilePath.exists(self.paths.incidents) else { return IncidentBook() }
    guard let text = try? TextFile.read(self.paths.incidents, limit: 1 << 20),
      let json = try? JSONValue(parsing: text)
    else { return nil }
    return IncidentBook(json: json)
  }

  /// Replaces the file, durable on return; a reader sees the old one or the new one.
  ///
  /// - Throws: `FileSystemError`.
  func store(_ book: IncidentBook) throws {
    let fileSystem = SystemFileSystem()
    if book.incidents.isEmpty {
      guard FilePath.exists(self.paths.incidents) else { return }
      try fileSystem.remove(self.paths.incidents)
    } else {
      let temporary = "\(self.paths.directory)/.\(self.paths.pipeline).incidents.json.tmp"
      let file = try OpenFile(temporary: temporary, on: fileSystem)
      try file.write(Array(PrintableText(json: book.json, hiding: self.secrets).text.utf8))
      try file.synchronize()
      try fileSystem.rename(temporary, to: self.paths.incidents)
    }
    try fileSystem.synchronizeDirectory(self.paths.directory)
  }
}
