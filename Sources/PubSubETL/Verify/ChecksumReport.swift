import Checkpoint
import FileSink
import JSON

/// What `verify --checksums` has found of the files of a pipeline.
struct ChecksumReport {
  struct Entry {
    var sink: String
    /// Absolute.
    var directory: String
    var checksums: FileChecksums
  }

  var pipeline: String
  var entries: [Entry] = []

  init(pipeline: String, entries: [Entry] = []) {
    self.pipeline = pipeline
    self.entries = entries
  }

  /// Reads all finished files; asks nobody else.
  ///
  /// - Throws: `RunFailure` (usage) without a files sink; `CheckpointError`, `FileSinkError`.
  static func read(_ configuration: PipelineConfiguration) throws -> ChecksumReport {
    let sinks = configuration.fileSinks
    guard !sinks.isEmpty else {
      throw RunFailure(
        .usage, reason: "no_sink",
        "--checksums is for files, and pipeline '\(configuration.name)' has no files sink")
    }
    let document = try FileCheckpointStore.peek(configuration.statePaths)
    var report = ChecksumReport(pipeline: configuration.name)
    for sink in sinks {
      let names = try FileChecksums.inProgress(in: document?.sinks[sink.name]?.json)
      report.entries.append(
        Entry(
          sink: sink.name, directory: sink.directory,
          checksums: try FileChecksums.read(
            in: sink.directory, pipeline: configuration.name, inProgress: names,
            ignoringMissing: sink.whenMissing == .ignore)))
    }
    return report
  }

  var isEqual: Bool { self.entries.allSatisfy { $0.checksums.faultCount == 0 } }

  var text: String {
    var lines: [(label: String, value: String)] = []
    for entry in self.entries {
      let found = entry.checksums
      let verdict = found.faultCount == 0 ? "equal" : "DAMAGED"
      lines.append(("sink", entry.sink))
      lines.append(
        (
          "files",
          "\(verdict); \(Phrase.count(found.fileCount, "file")), "
            + "\(ProgressLine.size(found.byteCount)), \(ProgressLine.grouped(found.lineCount)) "
            + "lines, as they were written to \(entry.directory)"
        ))
      if found.takenCount > 0 {
        lines.append(("", "\(Phrase.count(found.takenCount, "file")) taken away by readers"))
      }
      lines += found.faults.map { ("", "\($0.file) \($0.reason)") }
      let rest = found.faultCount - found.faults.count
      if rest > 0 { lines.append(("", "and \(ProgressLine.grouped(Int64(rest))) more")) }
    }
    return PipelineStatus.text(lines)
  }

  /// All members are always present.
  var json: JSONValue {
    [
      "pipeline": .string(self.pipeline), "equal": .boolean(self.isEqual),
      "sinks": .array(
        self.entries.map { entry -> JSONValue in
          [
            "sink": .string(entry.sink), "directory": .string(entry.directory),
            "files": .integer(entry.checksums.fileCount),
            "bytes": .integer(entry.checksums.byteCount),
            "lines": .integer(entry.checksums.lineCount),
            "taken_away": .integer(entry.checksums.takenCount),
            "damaged": .integer(entry.checksums.faultCount),
            "faults": .array(
              entry.checksums.faults.map { fault -> JSONValue in
                ["file": .string(fault.file), "reason": .string(fault.reason)]
              }),
          ]
        }),
    ]
  }
}
