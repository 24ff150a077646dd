internal import Cryptography
internal import DurableFiles
internal import Pipeline

/// Every finished file of a pipeline in a directory, compared with its size and hash in the manifest.
package struct OutputVerification: Sendable, Equatable {
  /// Files that match the manifest, and their bytes.
  package var fileCount: Int64 = 0
  package var byteCount: Int64 = 0
  /// Missing files.
  package var missingCount: Int64 = 0
  /// Files with a different size or content.
  package var changedCount: Int64 = 0
  /// The first missing and changed files, as text.
  package var faults: [String] = []

  private static let maxFaultCount = 20

  /// Reads all files; takes no lock and writes nothing, so it can be used during a run.
  ///
  /// - Parameter ignoringMissing: missing files are accepted, because readers remove files.
  /// - Throws: `FileSinkError.inconsistent` for a manifest that was edited, `.io`.
  package static func read(
    _ kinds: [ExportedFile.Kind], in directory: String, pipeline: String, ignoringMissing: Bool
  ) throws(FileSinkError) -> OutputVerification {
    let inUse = FilesInUse(readingFrom: directory)
    defer { withExtendedLifetime(inUse) {} }
    var result = OutputVerification()
    var failure: FileSinkError?
    for kind in kinds {
      try ExportedFile.visit(kind, in: directory, pipeline: pipeline) { file in
        guard failure == nil else { return }
        do throws(FileSystemError) {
          result.note(
            file, try Self.compare(file, in: directory), ignoringMissing: ignoringMissing)
        } catch {
          failure = FileSinkError(error)
        }
      }
    }
    if let failure { throw failure }
    return result
  }

  /// A file compared with its line in the manifest; differences as text.
  enum Comparison {
    case equal
    case missing(String)
    case changed(String)
  }

  static func compare(
    _ file: ExportedFile, in directory: String
  ) throws(FileSystemError) -> Comparison {
    let fileSystem = SystemFileSystem()
    let path = "\(directory)/\(file.name)"
    guard let size = try fileSystem.size(of: path) else { return .missing("\(path) is missing") }
    guard size == file.bytes else {
      return .changed("\(path) has \(size) bytes, the manifest says \(file.bytes)")
    }
    let opened = try OpenFile(path, [], on: fileSystem)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)
    defer { buffer.deallocate() }
    var hash = SHA256()
    var offset = 0
    while case let count = try opened.read(into: buffer, at: offset), count > 0 {
      hash.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      offset += count
    }
    let sha256 = hash.snapshot().hex
    if let expected = file.sha256, sha256 != expected {
      return .changed("\(path) has the SHA-256 \(sha256), the manifest says \(expected)")
    }
    return .equal
  }

  private mutating func note(
    _ file: ExportedFile, _ comparison: Comparison, ignoringMissing: Bool
  ) {
    switch comparison {
    case .equal:
      self.fileCount += 1
      self.byteCount += file.bytes
    case .missing(let fault):
      self.missingCount += 1
      if !ignoringMissing { self.add(fault) }
    case .changed(let fault):
      self.changedCount += 1
      self.add(fault)
    }
  }

  private mutating func add(_ fault: String) {
    if self.faults.count < Self.maxFaultCount { self.faults.append(fault) }
  }
}
