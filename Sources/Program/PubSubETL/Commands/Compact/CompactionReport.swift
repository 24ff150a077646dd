import FileSink
import JSON

/// What `compact` did with the files of a pipeline.
struct CompactionReport {
  struct Entry {
    var sink: FilesSettings
    var objects: [CompactedObject]
  }

  var pipeline: String
  var isDryRun: Bool
  var entries: [Entry] = []
  /// The user stopped it before all folders were compacted.
  var isStopped = false

  /// What is wrong with files, whose folders stay as they are.
  var faults: [String] { self.entries.flatMap { $0.objects.flatMap(\.faults) } }

  var text: String {
    var lines: [(label: String, value: String)] = []
    for entry in self.entries {
      lines.append(("sink", "\(entry.sink.name), files in \(entry.sink.directory)"))
      if entry.objects.isEmpty { lines.append(("", "no finished files")) }
      for object in entry.objects { lines.append((object.folder, self.text(object))) }
    }
    return PipelineStatus.text(lines)
  }

  private func text(_ object: CompactedObject) -> String {
    var text =
      "\(Phrase.count(object.fileCount, "file")), \(ProgressLine.size(object.byteCount)): "
    if object.replacedFileCount == 0 {
      text += "nothing to join"
    } else if self.isDryRun {
      text += "would become \(Phrase.count(object.fileCountAfter, "file"))"
    } else {
      text +=
        "now \(Phrase.count(object.fileCountAfter, "file")), "
        + ProgressLine.size(object.byteCountAfter)
    }
    if object.snapshotFileCount > 0 {
      text +=
        "; \(Phrase.count(object.snapshotFileCount, "file")) of snapshots "
        + (object.snapshotFileCount == 1 ? "stays as it is" : "stay as they are")
    }
    if object.busyFolderCount > 0 {
      text +=
        "; \(Phrase.count(object.busyFolderCount, "folder")) with files in progress, folders or links "
        + (object.busyFolderCount == 1 ? "stays as it is" : "stay as they are")
    }
    return text
  }

  /// All members are always present.
  var json: JSONValue {
    [
      "pipeline": .string(self.pipeline), "dry_run": .boolean(self.isDryRun),
      "stopped": .boolean(self.isStopped),
      "sinks": .array(
        self.entries.map { entry -> JSONValue in
          [
            "sink": .string(entry.sink.name), "directory": .string(entry.sink.directory),
            "objects": .array(
              entry.objects.map { object -> JSONValue in
                [
                  "object": .string(object.folder),
                  "files_before": .integer(object.fileCount),
                  "files_after": .integer(object.fileCountAfter),
                  "bytes_before": .integer(object.byteCount),
                  "bytes_after": self.isDryRun ? nil : .integer(object.byteCountAfter),
                  "snapshot_files": .integer(object.snapshotFileCount),
                  "busy_folders": .integer(object.busyFolderCount),
                  "faults": .array(object.faults.map { .string($0) }),
                ]
              }),
          ]
        }),
    ]
  }
}
