internal import DurableFiles
package import JSON

/// Reads the newest changes in the files, to show them. Takes no lock and writes
/// nothing, so it can be used during a run.
package enum RecentLines {
  /// The newest files with this many bytes are read, compressed, and the newest of each topic.
  private static let maxByteCount: Int64 = 16 << 20

  private struct File {
    /// Absolute; another one than `finalPath` for a file in progress.
    var path: String
    var finalPath: String
    var topic: String
    var extent: SegmentLines.Extent
    /// The newest commit time, `2026-02-17T04:03:15.000Z`; files without one come first.
    var time: String
    var epoch: Int
    var firstOrdinal: Int64
    var byteCount: Int64
  }

  /// Visits lines of the newest files of changes: those of each topic oldest first.
  ///
  /// - Parameters:
  ///   - directory: the directory of the sink, absolute.
  ///   - state: the sink's state in the checkpoint, read before the call; nil before the first run.
  /// - Throws: `FileSinkError` for files that cannot be read, and what `body` throws.
  package static func visit(
    in directory: String, pipeline: String, state: JSONValue?, _ body: (JSONValue) throws -> Void
  ) throws {
    let fileSystem = SystemFileSystem()
    let inUse = FilesInUse(readingFrom: directory)
    defer { withExtendedLifetime(inUse) {} }
    for file in try Self.files(in: directory, pipeline: pipeline, state: state) {
      do {
        // A run may have finished the file in the meantime, and readers may have removed it.
        guard
          let path = try [file.path, file.finalPath].first(where: {
            try fileSystem.size(of: $0) != nil
          })
        else { continue }
        let lines = SegmentLines(path: path, extent: file.extent, fileSystem: fileSystem)
        try lines.read { line, number in
          guard let json = try? JSONValue(parsing: Array(line)) else {
            throw SegmentLines.Fault(line: number, reason: "the line is not JSON")
          }
          try body(json)
        }
      } catch let fault as SegmentLines.Fault {
        throw FileSinkError(
          .inconsistent,
          "\(file.finalPath) is damaged\(fault.line > 0 ? " at line \(fault.line)" : ""): "
            + fault.reason)
      } catch let error as FileSystemError {
        throw FileSinkError(error)
      }
    }
  }

  private static func files(
    in directory: String, pipeline: String, state: JSONValue?
  ) throws -> [File] {
    var files: [File] = []
    try ExportedFile.visit(.records, in: directory, pipeline: pipeline) { file in
      let path = "\(directory)/\(file.name)"
      files.append(
        File(
          path: path, finalPath: path, topic: file.topic, extent: .whole,
          time: file.lastCommitTimestamp ?? "", epoch: file.epoch, firstOrdinal: file.firstOrdinal,
          byteCount: file.bytes))
    }
    let finished = Set(files.map(\.path))
    for json in state?["files"]?.array ?? [] {
      let record = try SegmentRecord(json: json)
      guard !finished.contains("\(directory)/\(record.name)"),
        let file = ExportedFile(json: record.manifest), file.lastReplayID != ""
      else { continue }
      files.append(
        File(
          path: "\(directory)/\(record.part)", finalPath: "\(directory)/\(record.name)",
          topic: file.topic, extent: .first(record.committedByteCount),
          time: file.lastCommitTimestamp ?? "", epoch: file.epoch, firstOrdinal: file.firstOrdinal,
          byteCount: Int64(record.committedByteCount)))
    }
    files.sort { ($0.time, $0.epoch, $0.firstOrdinal) < ($1.time, $1.epoch, $1.firstOrdinal) }
    var left = Self.maxByteCount
    var topics: Set<String> = []
    let newest = files.reversed().filter { file in
      defer { left -= file.byteCount }
      return topics.insert(file.topic).inserted || left > 0
    }
    return newest.reversed()
  }
}
