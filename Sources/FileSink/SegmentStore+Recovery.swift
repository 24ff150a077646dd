internal import Digest
internal import JSON
internal import Pipeline

extension SegmentStore {
  /// Finishes the files of the last checkpoint and removes what it does not know.
  ///
  /// - Returns: what earlier runs of this pipeline exported, by the manifest; only with `state` nil.
  func recover(from state: JSONValue?) throws(FileSinkError) -> ExportHistory {
    if let failure { throw failure }
    let records = try self.records(in: state)
    try self.attempt { () throws(FileSystemError) in
      try self.fileSystem.makeDirectories(self.directory)
    }
    try self.takeLock()
    var history = ExportHistory()
    let wanted = Set(records.map(\.name))
    var found: Set<String> = []
    var known: Set<Int> = []
    try self.manifest.read { line, name in
      known.insert(name.hashValue)
      if wanted.contains(name) { found.insert(name) }
      if state == nil { history.add(line, identity: self.identity) }
    }
    for record in records {
      try self.finish(record, isInManifest: found.contains(record.name), from: state)
      known.insert(record.name.hashValue)
    }
    try self.removeStrays(known: known)
    return history
  }

  private func finish(
    _ record: SegmentRecord, isInManifest: Bool, from state: JSONValue?
  ) throws(FileSinkError) {
    let observed = try self.attempt { () throws(FileSystemError) in
      SegmentLedger.Observation(
        partByteCount: try self.fileSystem.size(of: self.absolute(record.part)),
        finishedByteCount: try self.fileSystem.size(of: self.absolute(record.name)),
        isInManifest: isInManifest)
    }
    let steps: [SegmentLedger.Step]
    do throws(FileSinkError) {
      steps = try SegmentLedger.recovery(of: record, observed: observed)
    } catch {
      var error = error
      if let old = state?["directory"]?.string, old != self.directory {
        error.message += ". The last run wrote to \(old), this one to \(self.directory)"
      } else {
        error.message += ". The directory is \(self.directory)"
      }
      throw self.fail(error)
    }
    try self.perform(steps)
  }

  private func records(in state: JSONValue?) throws(FileSinkError) -> [SegmentRecord] {
    guard let state else { return [] }
    guard let files = state["files"]?.array else {
      throw FileSinkError(
        .inconsistent,
        "the checkpoint's state of the files in \(self.directory) is damaged: put back a copy")
    }
    var records: [SegmentRecord] = []
    for file in files { records.append(try SegmentRecord(json: file)) }
    return records
  }

  /// Two sinks of one pipeline, or two runs of it with different state directories, would remove
  /// each other's files in progress.
  private func takeLock() throws(FileSinkError) {
    let part = SegmentName.pipelinePart(self.identity.pipeline)
    let path = self.absolute(".\(part)\(self.kind.suffix).lock")
    let isFree = try self.attempt { () throws(FileSystemError) in
      let file = try OpenFile(path, [.write, .create], on: self.fileSystem)
      let isFree = try file.lock(wait: false)
      self.lock = .some(file)
      return isFree
    }
    guard isFree else {
      throw self.fail(
        FileSinkError(
          .locked,
          "another sink or run of pipeline '\(self.identity.pipeline)' writes to \(self.directory): "
            + "give each sink its own directory, and run a pipeline from one state directory"))
    }
  }

  /// Removes files in progress that the checkpoint does not know; stops at finished files that
  /// neither it nor the manifest knows.
  private func removeStrays(known: Set<Int>) throws(FileSinkError) {
    for directory in try self.attempt({ () throws(FileSystemError) in try self.directories() }) {
      let entries = try self.attempt { () throws(FileSystemError) in
        try self.fileSystem.list(self.absolute(directory)) ?? []
      }
      for entry in entries where !entry.isDirectory {
        let name = "\(directory)/\(entry.name)"
        switch SegmentName.ownership(
          of: entry.name, kind: self.kind, pipeline: self.identity.pipeline)
        {
        case .foreign: break
        case .inProgress:
          try self.attempt { () throws(FileSystemError) in
            try self.fileSystem.remove(self.absolute(name))
          }
        case .finished where known.contains(name.hashValue): break
        case .finished:
          throw self.fail(
            FileSinkError(
              .unknownFile,
              "\(self.absolute(name)) is known neither to \(self.manifest.path) nor to the "
                + "checkpoint: the checkpoint is older than the files, or the manifest was changed; "
                + "put the newer one back, or move the file away if its events may be exported again"
            ))
        }
      }
    }
  }

  /// Relative paths of the directories in which files of this family lie.
  private func directories() throws(FileSystemError) -> [String] {
    var parents = [""]
    if self.kind == .records {
      parents = try self.subdirectories(of: "").filter { !$0.hasPrefix("_") && !$0.hasPrefix(".") }
    }
    var directories: [String] = []
    for parent in parents {
      for date in try self.subdirectories(of: parent)
      where date.hasPrefix("commit_date=") || date.hasPrefix("export_date=") {
        directories.append(parent.isEmpty ? date : "\(parent)/\(date)")
      }
    }
    return directories
  }

  private func subdirectories(of directory: String) throws(FileSystemError) -> [String] {
    try (self.fileSystem.list(self.absolute(directory)) ?? []).filter(\.isDirectory).map(\.name)
  }
}
