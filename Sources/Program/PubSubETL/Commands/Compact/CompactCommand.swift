import ArgumentParser
import Bytes
import Checkpoint
import Clocks
import FileSink
import Glibc
import JSON

/// `pubsub-etl compact FILE`: many small finished files become few large ones.
struct CompactCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compact",
    abstract: "Joins small finished files into larger ones.",
    discussion: """
      A run that ends finishes its files, so a pipeline that cron starts often makes many small \
      ones. This command joins those of one topic, object and date, as far as rotate.max_bytes and \
      rotate.max_events of the sink permit. Files of half that size or more stay as they are, and so \
      do snapshots, dead letters, and folders with a file in progress. The lines and their order stay \
      the same. A reader that lists a folder finds the old files or the new ones, never both. In \
      the manifest, the member replaces of a new file names the old ones. The old files are removed. \
      Needs no login. During a run it ends with 75, or waits if run.if_running is "wait". After a \
      crash, the next run or command completes what was begun.
      Exit codes: 0 done, also if there was nothing to join; 64 command line, or no files sink; 65 \
      a file or the manifest was changed: other folders are compacted; 74 a file cannot be written, \
      or the file system cannot exchange folders; 75 a run is in progress, others use the files, or \
      stopped by Ctrl-C; 78 mistakes in the pipeline file.

      EXAMPLES:
        pubsub-etl compact opps.json                        join small files
        pubsub-etl compact opps.json --dry-run              show what would be joined
        pubsub-etl compact opps.json --min-age 2d --quiet   for cron
      """)

  @OptionGroup var options: PipelineOptions

  @Option(
    help: ArgumentHelp(
      "Leave the files of dates that ended less than this time ago, for example 2d.",
      valueName: "time"),
    transform: {
      guard let duration = JSONReader.duration($0), duration > .zero else {
        throw ValidationError("expected a time such as 12h or 2d")
      }
      return duration
    })
  var minAge: Duration?

  @Flag(
    help:
      "Only show what would be joined, without reading the files. Takes no lock, writes nothing.")
  var dryRun = false

  @Flag(help: "Print nothing if all is well.")
  var quiet = false

  @Flag(help: "Print JSON.")
  var json = false

  func validate() throws {
    if self.quiet, self.dryRun || self.json {
      throw ValidationError(
        "--quiet and \(self.dryRun ? "--dry-run" : "--json") cannot be used together")
    }
  }

  func run() async throws {
    let configuration = try self.options.loadWithoutLoginOrExit()
    let hasFaults: Bool
    do {
      let report = try await self.compact(configuration)
      let text =
        self.json
        ? PrintableText(json: report.json, hiding: configuration.secrets)
        : PrintableText(lines: report.text, hiding: configuration.secrets)
      if !self.quiet { try StandardStream.print(text) }
      for fault in report.faults {
        StandardStream.tell(PrintableText(line: fault, hiding: configuration.secrets))
      }
      guard !report.isStopped else {
        throw RunFailure(
          .signal, code: .tryAgain,
          "stopped by a signal before all folders were compacted; run the same command to continue")
      }
      hasFaults = !report.faults.isEmpty
    } catch {
      throw RunFailure(error).reported(hiding: configuration.secrets)
    }
    if hasFaults { throw ExitCode.data.error }
  }

  private func compact(_ configuration: PipelineConfiguration) async throws -> CompactionReport {
    guard !configuration.fileSinks.isEmpty else {
      throw RunFailure(
        .noSink, "compact is for files, and pipeline '\(configuration.name)' has no files sink")
    }
    var report = CompactionReport(pipeline: configuration.name, isDryRun: self.dryRun)
    let clock = ProcessClock()
    // A date has ended by then if it is before that of this time.
    let before = self.minAge.map { age in
      let end = clock.wallTime - Int64(age / .milliseconds(1))
      return String(UTCTime.timestamp(milliseconds: end).prefix("2026-02-17".count))
    }
    if self.dryRun {
      let document = try FileCheckpointStore.peek(configuration.statePaths)
      for sink in configuration.fileSinks {
        let compaction = sink.compaction(configuration, document, before: before, pause: Self.pause)
        report.entries.append(.init(sink: sink, objects: try compaction.examine()))
      }
      return report
    }
    let interruption = Interruption(deadline: nil, clock: clock)
    let watcher = try await SignalWatcher(clock: clock) { interruption.ask() }
    let store = try await Self.store(configuration, clock, interruption)
    defer { withExtendedLifetime((watcher, store)) {} }
    let document = try store.load()
    for sink in configuration.fileSinks {
      let compaction = sink.compaction(configuration, document, before: before, pause: Self.pause)
      let objects = try compaction.run { interruption.isAsked }
      report.entries.append(.init(sink: sink, objects: objects))
    }
    report.isStopped = interruption.isAsked
    return report
  }

  /// The checkpoint with the pipeline's lock. Waits for a run if runs wait for each other.
  private static func store(
    _ configuration: PipelineConfiguration, _ clock: ProcessClock, _ interruption: Interruption
  ) async throws -> FileCheckpointStore {
    while true {
      do throws(CheckpointError) {
        return try FileCheckpointStore(
          directory: configuration.checkpoint.directory, pipeline: configuration.name,
          isRun: false)
      } catch {
        guard error.code == .alreadyRunning, configuration.run.ifRunning == .wait,
          !interruption.isAsked
        else { throw error }
      }
      try await clock.sleep(for: .milliseconds(500))
    }
  }

  private static func pause(_ duration: Duration) {
    usleep(UInt32(clamping: Int64(duration / .microseconds(1))))
  }
}
