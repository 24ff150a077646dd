import ArgumentParser
import Clocks
import SalesforceREST

/// `pubsub-etl snapshot FILE`: every record read again.
struct SnapshotCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "snapshot",
    abstract: "Reads every record of the pipeline's objects again, and exports events meanwhile.",
    discussion: """
      For tables and files that have changes only, after a restore of the database, or to find \
      deletions without an event (in tables). Runs the complete pipeline until every record has been \
      read and the stream is caught up. Needs a postgres or a files sink. If it is stopped, the next \
      run resumes it. With --max-duration, 'status' shows what is missing.
      Exit codes: those of run; 64 also for an object that the pipeline does not have, and for a \
      condition that the org refuses; 75 also while another run is in progress.

      EXAMPLES:
        pubsub-etl snapshot sales.json                     read all records again
        pubsub-etl snapshot sales.json --entity Account    those of one object
      """)

  @OptionGroup(title: "Pipeline file") var pipeline: PipelineOptions
  @OptionGroup var options: RunOptions

  @Option(
    help: ArgumentHelp(
      "API name of an object, for example Opportunity; default: all. May be given several times.",
      valueName: "object"))
  var entity: [String] = []

  @Option(
    name: .customLong("where"),
    help: ArgumentHelp(
      "SOQL condition, for example \"IsClosed = false\": reads only these records of one object. "
        + "Deletions are not detected, and a stopped command starts again. Postgres sinks only.",
      valueName: "condition"))
  var condition: String?

  func validate() throws {
    if let mistake = self.condition.flatMap({ SOQL.mistake(inCondition: $0) }) {
      throw ValidationError("--where: \(mistake)")
    }
    if self.options.limits.follow {
      throw ValidationError("snapshot ends when it is done: leave out --follow")
    }
    if self.options.limits.maxEvents != nil {
      throw ValidationError("--max-events ends a run before all records are read")
    }
  }

  func run() async throws {
    var configuration = try self.pipeline.loadOrExit()
    let known = configuration.source.snapshotObjects.map(\.entity)
    let failure: RunFailure? =
      if let unknown = self.entity.first(where: { !known.contains($0) }) {
        RunFailure(
          .unknownEntity,
          "the pipeline has no object '\(unknown)'; it has: \(known.joined(separator: ", "))"
            + "; for objects on channels, list them in source.snapshot.objects")
      } else if known.isEmpty {
        RunFailure(
          .unknownEntity,
          "the pipeline has no objects whose records can be read; for objects on channels, list "
            + "them in source.snapshot.objects")
      } else if !configuration.sinks.contains(where: \.takesReads) {
        RunFailure(
          .noSink, "only files and postgres sinks take records that were read")
      } else if self.condition != nil, !configuration.sinks.contains(where: \.keepsPosition) {
        RunFailure(
          .noSink,
          "--where reads records into postgres sinks only; without it, all records are read")
      } else if self.condition != nil, (self.entity.isEmpty ? known : self.entity).count > 1 {
        RunFailure(
          .ambiguousCondition,
          "--where is a condition on one object; name it with --entity: \(known.joined(separator: ", "))"
        )
      } else {
        nil
      }
    if let failure { throw failure.reported(hiding: configuration.secrets) }
    configuration.source.snapshot.mode = .initial
    configuration.source.snapshot.objects = self.entity.isEmpty ? known : self.entity
    configuration.run.until = .caughtUp
    configuration.run.mustNotSkip()
    let code = await RunCommand.execute(
      configuration, self.options, purpose: .snapshot(where: self.condition), clock: ProcessClock())
    if code != .success { throw code.error }
  }
}

/// `pubsub-etl repair FILE`: records that events have left incomplete or wrong, read again now.
struct RepairCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "repair",
    abstract: "Reads records again that events have left incomplete or wrong.",
    discussion: """
      Does what a run does with "repair": {"mode": "auto"}, even if the pipeline turns it off. It \
      ends when nothing more can be repaired. Records whose last event came less than a minute ago \
      wait for the next run.
      Exit codes: those of run; 64 also without a postgres sink.

      EXAMPLES:
        pubsub-etl repair sales.json
      """)

  @OptionGroup(title: "Pipeline file") var pipeline: PipelineOptions
  @OptionGroup var options: RunOptions

  func validate() throws {
    if self.options.limits.follow {
      throw ValidationError("repair ends when it is done: leave out --follow")
    }
  }

  func run() async throws {
    var configuration = try self.pipeline.loadOrExit()
    if !configuration.sinks.contains(where: \.repairsRecords) {
      throw RunFailure(.noSink, "only postgres sinks have records to repair")
        .reported(hiding: configuration.secrets)
    }
    configuration.repair.mode = .auto
    configuration.run.until = .caughtUp
    configuration.run.mustNotSkip()
    let code = await RunCommand.execute(
      configuration, self.options, purpose: .export, clock: ProcessClock())
    if code != .success { throw code.error }
  }
}

/// What a run is for.
enum RunPurpose {
  case export
  /// Every record is read, whatever was read before; or those of one object that meet a condition, SOQL.
  case snapshot(where: String?)

  var isSnapshot: Bool {
    if case .snapshot = self { return true }
    return false
  }

  var condition: String? {
    if case .snapshot(let condition) = self { return condition }
    return nil
  }
}
