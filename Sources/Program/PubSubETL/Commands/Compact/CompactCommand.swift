import ArgumentParser
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
      rotate.max_events of the sink permit. Files of half that size stay as they are, and so do \
      snapshots, dead letters, and folders with a file in progress. The lines and their order stay \
      the same. A reader that lists a folder finds the old files or the new ones, never both. In \
      the manifest, the member replaces of a new file names the old ones. The old files are removed. \
      Needs no login. After a crash, the next run or command completes what was begun.
      Exit codes: 0 done, also if there was nothing to join; 64 command line, or no files sink; 65 \
      a file or the manifest was changed; 74 a file cannot be written, or the file system cannot \
      exchange folders; 75 a run is in progress, others use the files, or stopped by Ctrl-C; 78 \
      mistakes in the pipeline file.

      EXAMPLES:
        pubsub-etl compact opps.json             join small files
        pubsub-etl compact opps.json --dry-run   show what would be joined
      """)

  @OptionGroup var options: PipelineOptions

  @Flag(help: "Only show what would be joined. Takes no lock and writes nothing.")
  var dryRun = false

  @Flag(help: "Print JSON.")
  var json = false

  func run() async throws {
    let configuration = try self.options.loadOrExit()
    do {
      let report = try await self.compact(configuration)
      let text =
        self.json
        ? PrintableText(json: report.json, hiding: configuration.secrets)
        : PrintableText(lines: report.text, hiding: configuration.secrets)
      try StandardStream.print(text)
      guard !report.isStopped else {
        throw RunFailure(
          .signal, code: .tryAgain,
          "stopped by a signal before all folders were compacted; run the same command to continue")
      }
    } catch {
      throw RunFailure(error).reported(hiding: configuration.secrets)
    }
  }

  private func compact(_ configuration: PipelineConfiguration) async throws -> CompactionReport {
    guard !configuration.fileSinks.isEmpty else {
      throw RunFailure(
        .noSink, "compact is for files, and pipeline '\(configuration.name)' has no files sink")
    }
    var report = CompactionReport(pipeline: configuration.name, isDryRun: self.dryRun)
    if self.dryRun {
      let document = try FileCheckpointStore.peek(configuration.statePaths)
      for sink in configuration.fileSinks {
        let compaction = sink.compaction(configuration, document, pause: Self.pause)
        report.entries.append(.init(sink: sink, objects: try compaction.examine()))
      }
      return report
    }
    let clock = ProcessClock()
    let interruption = Interruption(deadline: nil, clock: clock)
    let watcher = try await SignalWatcher(clock: clock) { interruption.ask() }
    let store = try CheckpointChange.open(configuration)
    defer { withExtendedLifetime((watcher, store)) {} }
    let document = try store.load()
    for sink in configuration.fileSinks {
      let compaction = sink.compaction(configuration, document, pause: Self.pause)
      let objects = try compaction.run { interruption.isAsked }
      report.entries.append(.init(sink: sink, objects: objects))
    }
    report.isStopped = interruption.isAsked
    return report
  }

  private static func pause(_ duration: Duration) {
    usleep(UInt32(clamping: Int64(duration / .microseconds(1))))
  }
}
