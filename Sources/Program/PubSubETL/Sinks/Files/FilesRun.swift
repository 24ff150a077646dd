import Checkpoint
import FileSink
import Logging
import Pipeline

/// A files sink during a run.
final class FilesRun: RunSink {
  private let settings: FilesSettings
  private let context: SinkContext
  private let sink: FileSink
  private var survey: FileSurvey?

  init(_ settings: FilesSettings, _ context: SinkContext) {
    self.settings = settings
    self.context = context
    var configuration = FileSinkConfiguration(
      name: settings.name, directory: settings.directory,
      compressionLevel: settings.compressionLevel,
      rotation: FileSinkConfiguration.Rotation(
        maxByteCount: settings.rotateBytes, maxEventCount: settings.rotateEvents,
        maxAge: settings.rotateAge, maxIdle: settings.rotateIdle),
      pipeline: context.configuration.name, org: context.org,
      int64AsStrings: settings.int64 == .string,
      acceptsReset: context.options.recovery.acceptReset, whenMissing: settings.whenMissing,
      acceptsMissing: context.options.recovery.acceptMissing, permissions: settings.permissions)
    configuration.clock = context.clock
    self.sink = FileSink(configuration)
  }

  var name: String { self.settings.name }

  func survey(from state: SinkState?) throws -> [String] {
    let survey = try self.sink.survey(from: state?.json)
    self.survey = survey
    if let lacking = self.sink.fileSystemShortcomings {
      self.context.log.info(
        "\(lacking)", metadata: ["sink": "\(self.name)", "directory": "\(self.settings.directory)"])
    }
    return survey.acceptedFaults
  }

  /// A pipeline that has been given another name has lost its position: it would export everything
  /// again, or with `"start": "latest"` leave events out.
  func checkIsNew() throws {
    if let other = self.sink.history.otherOrg {
      throw RunFailure(
        .otherOrg,
        "\(self.settings.directory) holds files of pipeline '\(self.context.configuration.name)' with "
          + "events of org \(other), but the login is for org \(self.context.org). \(OrgChange.remedy)"
      )
    }
    guard !self.context.options.recovery.acceptReset, self.sink.history.isEmpty else { return }
    let topics = self.context.configuration.source.topics.map(\.name)
    guard let other = self.sink.history.others.first(where: { topics.contains($0.topic) }) else {
      return
    }
    let name = self.context.configuration.name
    throw RunFailure(
      .otherPipeline,
      "\(self.settings.directory) holds files of pipeline '\(other.pipeline)' with events of "
        + "\(other.topic), and pipeline '\(name)' has never run. If you renamed "
        + "'\(other.pipeline)', change the name back: its position is stored under it. If "
        + "'\(name)' is a different pipeline, give it another directory, or start here with "
        + "'run --accept-reset'")
  }

  func lastExported(ofTopic topic: String) -> ExportedEvent? {
    self.sink.history.topics[topic].map {
      ExportedEvent(epoch: $0.epoch, ordinal: $0.lastOrdinal, replayID: $0.lastReplayID)
    }
  }

  func recover() throws {
    guard let survey = self.survey else { preconditionFailure("recovery before the survey") }
    try self.sink.recover(survey)
    // What recovery finishes was the earlier run's to report.
    self.sink.onFinished = { [log = self.context.log, name = self.name] file in
      log.info(
        "file finished",
        metadata: [
          "sink": "\(name)", "file": "\(file.name)", "events": "\(file.events)",
          "lines": "\(file.lines)",
          "bytes": "\(file.byteCount)",
        ])
    }
  }

  var store: SinkStore { .checkpointed(self.sink) }

  var output: SinkOutput {
    SinkOutput(byteCount: self.sink.writtenByteCount, fileCount: self.sink.finishedFileCount)
  }

  func reportEntry(_ statistics: RunStatistics) -> RunReport.Sink {
    var entry = RunReport.Sink(
      name: self.name, type: FilesSettings.type, target: self.settings.directory)
    entry.rows = self.sink.committedRowCount
    entry.rowsRead = self.sink.readRowCount
    entry.bytes = Int64(self.sink.finishedByteCount)
    entry.files = self.sink.finishedFileCount
    return entry
  }
}
