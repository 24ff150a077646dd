internal import Cryptography
internal import DurableFiles
internal import JSON
internal import Pipeline

/// The state left by earlier runs, and the steps of recovery.
package struct FileSurvey {
  /// The exports of earlier runs of the pipeline, according to the manifest.
  package let history: ExportHistory
  /// Steps that finish the files of the checkpoint.
  var steps: [SegmentLedger.Step] = []
  /// Files of the checkpoint that stay open.
  var kept: [SegmentRecord] = []
  /// A run with a checkpoint left files open here.
  var showsKeptFiles = false
  /// Relative paths of files in progress that the checkpoint does not know, and of finished files that
  /// compaction has replaced and a copy has brought back.
  var strays: [String] = []
  /// Accepted losses of earlier output, as text.
  package internal(set) var acceptedFaults: [String] = []
  /// Accepted losses of dead letters.
  var lostLetters: [LostLetters] = []

  init(history: ExportHistory) { self.history = history }
}

extension SegmentStore {
  /// Determines the steps for files of earlier runs. Locks the directory but does not change the
  /// files, so that a newer checkpoint can still be restored if this one turns out to be old. Only
  /// completes a compaction, which no checkpoint knows.
  ///
  /// - Parameters:
  ///   - state: the sink's state in the last checkpoint.
  ///   - whenMissing: nil skips the check of finished files.
  ///   - acceptsMissing: losses are reported and accepted.
  /// - Throws: `.unknownFile` for finished files in neither the checkpoint nor the manifest;
  ///   `.lostOutput`.
  func survey(
    from state: JSONValue?, whenMissing: FileSinkConfiguration.MissingPolicy? = nil,
    acceptsMissing: Bool = false
  ) throws(FileSinkError) -> FileSurvey {
    if let failure { throw failure }
    let records = try SegmentRecord.records(in: state, directory: self.directory)
    self.places = try StreamPlaces(in: state)
    var check = state.map {
      OutputCheck(
        directory: self.directory, kind: self.kind, pipeline: self.identity.pipeline,
        policy: whenMissing, state: $0)
    }
    // Checked before anything is created, because a file system may not be mounted.
    if !acceptsMissing, let check,
      try self.attempt({ () throws(FileSystemError) in
        try check.isManifestGone(on: self.fileSystem)
      })
    {
      try self.finish(check, accepting: false)
    }
    try self.attempt { () throws(FileSystemError) in
      try self.fileSystem.makeDirectories(self.directory)
    }
    try self.takeLock()
    self.shortcomings = try self.attempt { () throws(FileSystemError) in
      try FileSystemProbe.shortcomings(
        of: self.directory, name: "\(self.lockName).probe", on: self.fileSystem)
    }
    var history = ExportHistoryReader(kind: self.kind, identity: self.identity)
    let wanted = Set(records.map { Array($0.name.utf8) })
    var found: Set<[UInt8]> = []
    var known = NameSet()
    var replaced = NameSet()
    try self.finished.readList { line, name in
      known.insert(name)
      for name in Manifest.replaced(by: line) {
        known.remove(name)
        replaced.insert(name)
      }
      if !wanted.isEmpty, wanted.contains(Array(name)) { found.insert(Array(name)) }
      history.visit(line, name: name)
      check?.visit(line, name: name)
    }
    var survey = FileSurvey(history: history.history)
    survey.showsKeptFiles = try self.attempt { () throws(FileSystemError) in
      try self.fileSystem.size(of: self.keptMark) != nil
    }
    if let check {
      (survey.acceptedFaults, survey.lostLetters) = try self.finish(
        check, accepting: acceptsMissing)
    }
    for record in records {
      let name = Array(record.name.utf8)
      do throws(FileSinkError) {
        let observed = try self.observe(record, isInManifest: found.contains(name))
        let steps = try self.steps(for: record, observed, from: state)
        if self.keeps(record, observed) {
          survey.kept.append(record)
        } else {
          survey.steps += steps
        }
      } catch {
        guard acceptsMissing, error.code == .lostOutput else { throw self.fail(error) }
        survey.acceptedFaults.append(
          "\(record.name) is missing, both as a finished file and in progress")
      }
      name.withUnsafeBufferPointer { known.insert($0) }
    }
    let strays = try self.strays(
      known: known, replaced: replaced, parts: Set(records.map(\.part)))
    if !strays.replaced.isEmpty { try self.checkReplacements(of: strays.replaced) }
    survey.strays = strays.inProgress + strays.replaced
    return survey
  }

  /// Checks the newest files and derives their entry in the next checkpoint.
  ///
  /// - Returns: what was lost.
  /// - Throws: `.lostOutput` if the loss is not accepted.
  @discardableResult
  private func finish(
    _ check: consuming OutputCheck, accepting: Bool
  ) throws(FileSinkError) -> (faults: [String], letters: [LostLetters]) {
    var check = check
    try self.attempt { () throws(FileSystemError) in try check.finish(on: self.fileSystem) }
    guard check.faults.isEmpty || accepting else {
      throw self.fail(
        FileSinkError(
          check.isElsewhere ? .otherDirectory : .lostOutput,
          "\(check.faults.joined(separator: "; ")): \(check.remedy)"))
    }
    self.lastFinished = check.lastFinished
    self.acceptedThrough = check.faults.isEmpty ? check.stillAccepted : check.lastFinished
    return (check.faults, check.lostLetters)
  }

  /// Finishes the files of the last checkpoint and removes those in progress that it does not know.
  func recover(_ survey: FileSurvey) throws(FileSinkError) {
    try self.perform(survey.steps)
    try self.keep(survey.kept)
    for stray in survey.strays {
      try self.attempt { () throws(FileSystemError) in
        try self.fileSystem.remove(self.absolute(stray))
      }
    }
  }

  private func observe(
    _ record: SegmentRecord, isInManifest: Bool
  ) throws(FileSinkError) -> SegmentLedger.Observation {
    try self.attempt { () throws(FileSystemError) in
      SegmentLedger.Observation(
        partByteCount: try self.fileSystem.size(of: self.absolute(record.part)),
        finishedByteCount: try self.finished.byteCount(of: record.name),
        isOneFile: try self.finished.isPlaced(self.absolute(record.part), as: record.name),
        isInManifest: isInManifest)
    }
  }

  private func steps(
    for record: SegmentRecord, _ observed: SegmentLedger.Observation, from state: JSONValue?
  ) throws(FileSinkError) -> [SegmentLedger.Step] {
    do throws(FileSinkError) {
      return try SegmentLedger.recovery(of: record, observed: observed)
    } catch {
      var error = error
      if let old = state?["directory"]?.string, old != self.directory {
        error.message += ". The last run wrote to \(old), this one to \(self.directory)"
      } else {
        error.message += ". The directory is \(self.directory)"
      }
      throw error
    }
  }

  var lockName: String { Self.lockName(self.kind, pipeline: self.identity.pipeline) }

  static func lockName(_ kind: SegmentKind, pipeline: String) -> String {
    ".\(SegmentName.pipelinePart(pipeline))\(kind.suffix).lock"
  }

  private func takeLock() throws(FileSinkError) {
    do throws(FileSinkError) {
      let pipeline = self.identity.pipeline
      self.lock = .some(
        try Self.lock(self.directory, self.kind, pipeline: pipeline, on: self.fileSystem))
      if self.kind == .records {
        self.filesInUse = try FilesInUse(writingTo: self.directory, on: self.fileSystem)
      }
      try CompactionRecovery(
        self.directory, pipeline: pipeline, self.kind, on: self.fileSystem
      ).complete()
    } catch {
      throw self.fail(error)
    }
  }

  /// Two sinks of one pipeline, or two runs of it with different state directories, would remove
  /// each other's files in progress.
  static func lock(
    _ directory: String, _ kind: SegmentKind, pipeline: String, on fileSystem: any FileSystem
  ) throws(FileSinkError) -> OpenFile {
    let path = "\(directory)/\(Self.lockName(kind, pipeline: pipeline))"
    let file: OpenFile
    do throws(FileSystemError) {
      file = try OpenFile(path, [.write, .create], on: fileSystem)
    } catch {
      throw FileSinkError(error)
    }
    let isFree: Bool
    do throws(FileSystemError) { isFree = try file.lock(wait: false) } catch {
      throw FileSinkError(error)
    }
    guard isFree else {
      throw FileSinkError(
        .locked,
        "another sink or run of pipeline '\(pipeline)' writes to \(directory): "
          + "give each sink its own directory, and run a pipeline from one state directory")
    }
    return file
  }

  /// Files in progress that the checkpoint does not know, and finished files that were replaced; throws
  /// for finished files in neither the checkpoint nor the manifest.
  private func strays(
    known: NameSet, replaced: NameSet, parts: Set<String>
  ) throws(FileSinkError) -> (inProgress: [String], replaced: [String]) {
    let matcher = SegmentName.Matcher(kind: self.kind, pipeline: self.identity.pipeline)
    var strays: (inProgress: [String], replaced: [String]) = ([], [])
    for directory in try self.attempt({ () throws(FileSystemError) in try self.directories() }) {
      let entries = try self.attempt { () throws(FileSystemError) in
        try self.fileSystem.list(self.absolute(directory)) ?? []
      }
      for entry in entries where !entry.isDirectory {
        let name = "\(directory)/\(entry.name)"
        switch matcher.ownership(of: entry.name) {
        case .foreign: break
        case .inProgress:
          if !parts.contains(name) { strays.inProgress.append(name) }
        case .finished where known.contains(name): break
        case .finished where replaced.contains(name): strays.replaced.append(name)
        case .finished: throw self.fail(self.unknown(name))
        }
      }
    }
    return strays
  }

  /// A file that was replaced has no event that the new one lacks, so it can be removed if that is
  /// there.
  ///
  /// - Parameter names: relative paths of the old files.
  private func checkReplacements(of names: [String]) throws(FileSinkError) {
    // By the name of the newest file: it may have replaced one that had replaced another.
    var old = Dictionary(uniqueKeysWithValues: names.map { ($0, [$0]) })
    var sizes: [String: Int64] = [:]
    let wanted = Set(names.map { Array($0.utf8) })
    try self.finished.readList { line, name in
      let found = Manifest.replaced(by: line).compactMap { old.removeValue(forKey: $0) }
      guard !found.isEmpty || wanted.contains(Array(name)) else { return }
      let name = String(decoding: name, as: UTF8.self)
      if !found.isEmpty { old[name, default: []] += found.joined() }
      sizes[name] = (try? JSONValue(parsing: Array(line)))?["bytes"]?.integer
    }
    for (new, old) in old {
      guard try self.isAsWritten(new, sizes) else {
        throw self.fail(
          FileSinkError(
            .lostOutput,
            "\(self.absolute(new)) is missing or was changed, and \(old[0]), which it replaced, is "
              + "there again: put back a copy of the new file"))
      }
      for name in old where try !self.isAsWritten(name, sizes) {
        throw self.fail(self.unknown(name))
      }
    }
  }

  private func isAsWritten(
    _ name: String, _ sizes: [String: Int64]
  ) throws(FileSinkError) -> Bool {
    let size = try self.attempt { () throws(FileSystemError) in
      try self.finished.byteCount(of: name)
    }
    return size != nil && size.map(Int64.init) == sizes[name]
  }

  private func unknown(_ name: String) -> FileSinkError {
    FileSinkError(
      .unknownFile,
      "\(self.absolute(name)) is listed neither in \(self.finished.listPath) nor in the "
        + "checkpoint: the checkpoint is older than the files, or the manifest was "
        + "changed. Put the newer one back, or move the file away if its events may be "
        + "exported again")
  }

  /// Relative paths of the directories that have files of this family.
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
