import Checkpoint
import FileSink
import Logging
import Pipeline

/// A files sink during a run.
extension FileSink: SurveyedSink {
  func survey(from state: SinkState?, _ context: SinkContext) throws -> [String] {
    let survey = try self.survey(from: state?.json)
    if let lacking = self.fileSystemShortcomings {
      context.log.info(
        "\(lacking)",
        metadata: ["sink": "\(self.name)", "directory": "\(self.configuration.directory)"])
    }
    return survey.acceptedFaults
  }

  /// A pipeline that has been given another name has lost its position: it would export everything
  /// again, or with `"start": "latest"` leave events out.
  func checkIsNew(_ context: SinkContext) throws {
    let (name, directory) = (context.configuration.name, self.configuration.directory)
    if let other = self.history.otherOrg {
      throw RunFailure(
        .otherOrg,
        "\(directory) holds files of pipeline '\(name)' with "
          + "events of org \(other), but the login is for org \(context.org). \(OrgChange.remedy)"
      )
    }
    guard !context.options.recovery.acceptReset, self.history.isEmpty else { return }
    let topics = context.configuration.source.topics.map(\.name)
    guard let other = self.history.others.first(where: { topics.contains($0.topic) }) else {
      return
    }
    throw RunFailure(
      .otherPipeline,
      "\(directory) holds files of pipeline '\(other.pipeline)' with events of "
        + "\(other.topic), and pipeline '\(name)' has never run. If you renamed "
        + "'\(other.pipeline)', change the name back: its position is stored under it. If "
        + "'\(name)' is a different pipeline, give it another directory, or start here with "
        + "'run --accept-reset'")
  }

  func lastExported(ofTopic topic: String) -> ExportedEvent? {
    self.history.topics[topic].map {
      ExportedEvent(epoch: $0.epoch, ordinal: $0.lastOrdinal, replayID: $0.lastReplayID)
    }
  }

  /// What recovery finishes was the earlier run's to report.
  func recovered(_ context: SinkContext) {
    self.onOutdatedFreshness = { [logger = context.logger, name = self.name] reason in
      logger.warning("\(reason)", metadata: ["sink": "\(name)"])
    }
    self.onFinished = { [log = context.log, name = self.name] file in
      log.info(
        "file finished",
        metadata: [
          "sink": "\(name)", "file": "\(file.name)", "events": "\(file.events)",
          "lines": "\(file.lines)",
          "bytes": "\(file.byteCount)",
        ])
    }
  }
}

extension FileSink: MeasuredSink {
  func count(in entry: inout RunReport.Sink) {
    entry.rows = self.committedRowCount
    entry.rowsRead = self.readRowCount
    entry.bytes = Int64(self.finishedByteCount)
    entry.files = self.finishedFileCount
    entry.unfinished = RunReport.Sink.Unfinished(
      files: self.openFileCount, bytes: Int64(self.writtenByteCount - self.finishedByteCount))
  }
}
