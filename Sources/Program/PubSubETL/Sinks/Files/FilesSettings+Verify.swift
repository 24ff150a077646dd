import Checkpoint
import FileSink
import Pipeline

extension FilesSettings: VerifyingSink {
  /// Files have copies only if records are read into them, which is not the default.
  func verifyObstacle(_ configuration: PipelineConfiguration) -> String? {
    guard configuration.source.snapshot.mode != .initial else { return nil }
    let state = try? FileCheckpointStore.peek(configuration.statePaths)?.sinks[self.name]
    let passes = try? FilePass.passes(in: state?.json, directory: self.directory)
    guard passes?.isEmpty ?? true else { return nil }
    return
      "sink '\(self.name)' has changes only, so there is no copy to compare; records are read into "
      + "files with \"snapshot\": {\"mode\": \"initial\"} in the source, or by "
      + "'\(configuration.command("snapshot"))'"
  }

  /// Nothing is repaired in files: only a pass over all records corrects them.
  var repairObstacle: String? {
    "'pubsub-etl snapshot' reads all records again and so corrects the files of sink '\(self.name)'"
  }

  func copyStates(_ configuration: PipelineConfiguration) throws -> CopyStates {
    guard let document = try FileCheckpointStore.peek(configuration.statePaths) else {
      return CopyStates()
    }
    var states = CopyStates(org: document.org)
    let passes = try FilePass.passes(
      in: document.sinks[self.name]?.json, directory: self.directory)
    for (entity, topic) in configuration.source.snapshotObjects {
      guard let pass = passes[entity] else {
        states.objects[entity] = .unread
        continue
      }
      if pass.finishedAt == nil {
        states.objects[entity] = .incomplete("its records are being read")
      } else if var through = document.topics[topic]?.completeThrough {
        if configuration.source.subset[entity] != nil {
          let waiting = try FileSink.oldestChangedRecord(
            of: entity, in: document.sinks[self.name]?.json, directory: self.directory,
            pipeline: configuration.name)
          guard waiting != Int64.min else {
            states.objects[entity] = .incomplete(
              "it is not known which of its records no longer meet source.subset")
            continue
          }
          through = min(through, waiting ?? through)
        }
        states.objects[entity] = .complete(through: through)
      } else {
        states.objects[entity] = .incomplete("how far it is complete is not yet known")
      }
    }
    return states
  }

  func verification(
    of layout: RecordLayout, _ scope: CopyScope, _ configuration: PipelineConfiguration
  ) throws -> any CopyVerification {
    let (paths, name) = (configuration.statePaths, self.name)
    // The checkpoint is read before the manifest: a file that is finished in between is then in
    // both.
    let subject = FilesVerification.Subject(
      directory: self.directory, pipeline: configuration.name, topic: layout.topic,
      org: try FileCheckpointStore.peek(paths)?.org ?? "", int64AsStrings: self.int64 == .string,
      erased: try self.erasedRecords(configuration),
      state: { try FileCheckpointStore.peek(paths)?.sinks[name]?.json })
    return try FilesVerification(
      of: subject, layout: layout, horizon: scope.horizon, excluding: scope.excluded,
      unread: scope.unread, comparesStamps: scope.comparesStamps,
      scratch: ScratchFiles(directory: paths.directory))
  }
}

extension FilesVerification: StaleVerification {
  func take(_ batch: RecordBatch, omitted: [OmittedRecord], of reading: CopyReading) throws {
    switch reading {
    case .all: try self.take(batch, omitted: omitted)
    case .sample: try self.takeSample(batch, omitted: omitted)
    case .again(_, let missing, _):
      try self.takeAgain(batch, missing: missing, omitted: omitted)
    }
  }

  func candidates(inRound round: Int, after id: String, limit: Int) throws -> [String] {
    try self.candidates(beginsRound: id.isEmpty, limit: limit)
  }
}
