import Checkpoint
import FileSink
import JSON

/// The findings of `verify --checksums` about a pipeline's files.
struct ChecksumReport {
  struct Entry {
    var sink: String
    /// Absolute.
    var directory: String
    var checksums: FileChecksums
    /// Files of the checkpoint that the directory lacks.
    var lost: [String]
    var remedy = ""

    var isEqual: Bool { self.checksums.faultCount == 0 && self.lost.isEmpty }
  }

  var pipeline: String
  var entries: [Entry] = []

  init(pipeline: String, entries: [Entry] = []) {
    self.pipeline = pipeline
    self.entries = entries
  }

  /// Reads all finished files; asks nobody else.
  ///
  /// - Throws: `RunFailure`: without a files sink (usage), and when there is nothing to compare yet;
  ///   `CheckpointError`, `FileSinkError`.
  static func read(_ configuration: PipelineConfiguration) throws -> ChecksumReport {
    let sinks = configuration.fileSinks
    guard !sinks.isEmpty else {
      throw RunFailure(
        .noSink,
        "--checksums is for files, and pipeline '\(configuration.name)' has no files sink")
    }
    let document = try FileCheckpointStore.peek(configuration.statePaths)
    var report = ChecksumReport(pipeline: configuration.name)
    for sink in sinks {
      let state = document?.sinks[sink.name]?.json
      let output = try OutputState.read(
        directory: sink.directory, pipeline: configuration.name, whenMissing: sink.whenMissing,
        state: state)
      let names = try FileChecksums.inProgress(in: state)
      report.entries.append(
        Entry(
          sink: sink.name, directory: sink.directory,
          checksums: try FileChecksums.read(
            in: sink.directory, pipeline: configuration.name, inProgress: names,
            ignoringMissing: sink.whenMissing == .ignore), lost: output.faults,
          remedy: output.remedy))
    }
    guard report.entries.contains(where: { $0.checksums.hasFiles || !$0.lost.isEmpty }) else {
      throw RunFailure(
        .nothingToCompare,
        "nothing was compared: pipeline '\(configuration.name)' has no finished files in "
          + sinks.map(\.directory).joined(separator: ", ")
          + "; check the directory, or run the pipeline first")
    }
    return report
  }

  var isEqual: Bool { self.entries.allSatisfy(\.isEqual) }

  var text: String {
    var lines: [(label: String, value: String)] = []
    for entry in self.entries {
      let found = entry.checksums
      let whole =
        "\(Phrase.count(found.fileCount, "file")), \(ProgressLine.size(found.byteCount)), "
        + "\(ProgressLine.grouped(found.lineCount)) lines, as they were written to "
        + entry.directory
      lines.append(("sink", entry.sink))
      let verdict =
        entry.isEqual
        ? "equal; " : "DAMAGED: \(ProgressLine.grouped(Int64(found.faultCount))); undamaged: "
      lines.append(("files", verdict + whole))
      lines += entry.lost.map { ("", "lost: \($0): \(entry.remedy)") }
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
            "lost": .array(entry.lost.map { .string($0) }),
            "faults": .array(
              entry.checksums.faults.map { fault -> JSONValue in
                ["file": .string(fault.file), "reason": .string(fault.reason)]
              }),
          ]
        }),
    ]
  }
}
