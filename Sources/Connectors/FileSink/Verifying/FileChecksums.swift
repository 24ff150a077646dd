internal import Cryptography
internal import DurableFiles
package import JSON
internal import Pipeline

/// Every finished file of a pipeline in a directory, compared with its line in the manifest: size,
/// SHA-256, one complete zstd frame, and the number of lines. Also finds files that no line names.
/// Takes no lock and writes nothing, so it can be used during a run.
package struct FileChecksums: Sendable, Equatable {
  package struct Fault: Sendable, Equatable {
    /// Relative to the directory.
    package var file: String
    /// The fault, as text to append to the name.
    package var reason: String

    package init(file: String, reason: String) {
      self.file = file
      self.reason = reason
    }
  }

  /// Unchanged files.
  package var fileCount = 0
  /// Compressed bytes of these files.
  package var byteCount: Int64 = 0
  package var lineCount: Int64 = 0
  /// Missing files, if readers remove them.
  package var takenCount = 0
  /// Faults of other files, in the order of the manifest, at most `maxFaultCount`.
  package var faults: [Fault] = []
  /// The number of all faults.
  package var faultCount = 0

  package static let maxFaultCount = 10_000

  package init() {}

  /// - Parameters:
  ///   - inProgress: names of the checkpoint's files in progress, read before the call. The run may
  ///     finish them in the meantime.
  ///   - ignoringMissing: missing files are accepted, because readers remove files.
  /// - Throws: `FileSinkError.inconsistent` for a manifest that was edited, `.io`.
  package static func read(
    in directory: String, pipeline: String, inProgress: Set<String>, ignoringMissing: Bool
  ) throws(FileSinkError) -> FileChecksums {
    let fileSystem = SystemFileSystem()
    let inUse = FilesInUse(readingFrom: directory)
    defer { withExtendedLifetime(inUse) {} }
    // Listed before the manifest is read, so that a file finished in between is in both.
    let found: [String]
    do throws(FileSystemError) {
      found = try Self.finishedFiles(in: directory, pipeline: pipeline, fileSystem)
    } catch {
      throw FileSinkError(error)
    }
    var result = FileChecksums()
    var known = inProgress
    var failure: (any Error)?
    for kind in [ExportedFile.Kind.records, .redriven, .snapshots] {
      try ExportedFile.visit(kind, in: directory, pipeline: pipeline) { file in
        known.insert(file.name)
        guard failure == nil else { return }
        do {
          try result.compare(file, in: directory, ignoringMissing, fileSystem)
        } catch {
          failure = error
        }
      }
    }
    if let failure = failure as? FileSystemError { throw FileSinkError(failure) }
    if let failure { preconditionFailure("not the file system's: \(failure)") }
    let unknown = found.filter { !known.contains($0) }
    guard !unknown.isEmpty else { return result }
    var replaced = NameSet()
    _ = try Manifest(directory: directory, fileSystem: fileSystem).peek { line, _ in
      for name in Manifest.replaced(by: line) { replaced.insert(name) }
    }
    for name in unknown {
      result.add(
        name,
        replaced.contains(name)
          ? "was replaced by compact and is there again, so readers find its changes twice: the next "
            + "run removes it"
          : "is not listed in the manifest: it was put there, or the manifest was changed")
    }
    return result
  }

  private mutating func compare(
    _ file: ExportedFile, in directory: String, _ ignoringMissing: Bool,
    _ fileSystem: any FileSystem
  ) throws {
    let path = "\(directory)/\(file.name)"
    guard let size = try fileSystem.size(of: path) else {
      if ignoringMissing {
        self.takenCount += 1
      } else {
        self.add(file.name, "is missing")
      }
      return
    }
    guard size == file.bytes else {
      return self.add(file.name, "has \(size) bytes, the manifest says \(file.bytes)")
    }
    var hash = SHA256()
    var lines: Int64 = 0
    do {
      let hashing: (UnsafeRawBufferPointer) -> Void = { hash.update($0) }
      try SegmentLines(path: path, extent: .whole, fileSystem: fileSystem).read(hashing: hashing) {
        _, _ in lines += 1
      }
    } catch let fault as SegmentLines.Fault {
      return self.add(
        file.name,
        "is damaged\(fault.line > 0 ? " after line \(fault.line)" : ""): \(fault.reason)")
    }
    let sha256 = hash.snapshot().hex
    if let expected = file.sha256, sha256 != expected {
      return self.add(file.name, "has the SHA-256 \(sha256), the manifest says \(expected)")
    }
    guard lines == file.lines else {
      return self.add(file.name, "has \(lines) lines, the manifest says \(file.lines)")
    }
    self.fileCount += 1
    self.byteCount += file.bytes
    self.lineCount += lines
  }

  private mutating func add(_ file: String, _ reason: String) {
    self.faultCount += 1
    if self.faults.count < Self.maxFaultCount {
      self.faults.append(Fault(file: file, reason: reason))
    }
  }

  /// Relative paths, only of the pipeline's files.
  private static func finishedFiles(
    in directory: String, pipeline: String, _ fileSystem: any FileSystem
  ) throws(FileSystemError) -> [String] {
    let matcher = SegmentName.Matcher(kind: .records, pipeline: pipeline)
    var names: [String] = []
    func folders(_ path: String) throws(FileSystemError) -> [String] {
      try (fileSystem.list(path) ?? []).filter(\.isDirectory).map(\.name).sorted()
    }
    for entity in try folders(directory) where !entity.hasPrefix(".") && !entity.hasPrefix("_") {
      for date in try folders("\(directory)/\(entity)") {
        for entry in try fileSystem.list("\(directory)/\(entity)/\(date)") ?? []
        where !entry.isDirectory && matcher.ownership(of: entry.name) == .finished {
          names.append("\(entity)/\(date)/\(entry.name)")
        }
      }
    }
    return names.sorted()
  }
}

extension FileChecksums {
  /// Whether there are any files, unchanged or not.
  package var hasFiles: Bool { self.fileCount > 0 || self.takenCount > 0 || self.faultCount > 0 }

  /// Names of the files in a sink's state that are in progress or being finished.
  ///
  /// - Throws: `FileSinkError.inconsistent` for a damaged state.
  package static func inProgress(in state: JSONValue?) throws(FileSinkError) -> Set<String> {
    var names: Set<String> = []
    for json in state?["files"]?.array ?? [] { names.insert(try SegmentRecord(json: json).name) }
    return names
  }
}
