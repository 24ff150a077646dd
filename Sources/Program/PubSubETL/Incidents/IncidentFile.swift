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
    guard book.incidents.isEmpty else {
      return try self.paths.replace(self.paths.incidents, with: book.json, hiding: self.secrets)
    }
    guard FilePath.exists(self.paths.incidents) else { return }
    let fileSystem = SystemFileSystem()
    try fileSystem.remove(self.paths.incidents)
    try fileSystem.synchronizeDirectory(self.paths.directory)
  }
}
