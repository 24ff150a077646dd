import ArgumentParser
import Clocks
import JSON
import Logging
import Pipeline

/// `pubsub-etl tail`: changes as they come, or the newest ones of the copy.
struct TailCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "tail",
    abstract: "Shows changes as they arrive, or the newest changes of the copy, newest last.",
    discussion: """
      On a terminal, each change is a block: time, object, record, user, and each field with its old \
      value if the copy knows it. Otherwise, and with --json, each change is a line of JSON, as files \
      have it. NO_COLOR turns colors off.
      With a pipeline file, the stages of the pipeline and of one sink apply: what they mask or remove \
      is not shown. Stores no position, takes no lock, and is safe while a run is in progress.
      Each change that arrives counts against the org's daily allowance of delivered events, in \
      addition to those of runs. --last reads the files or the history tables instead: it does not log \
      in and costs nothing.
      Exit codes: 0 stopped by a signal, or the number of changes was shown; 64 command line, or a sink \
      that keeps no changes; 65 data; 69 service or database unavailable; 74 standard output or files; \
      75 an allowance is used up; 77 login or topic refused; 78 mistakes in the file.

      EXAMPLES:
        pubsub-etl tail /data/OpportunityChangeEvent
        pubsub-etl tail opps.json --last 20          from the copy
        pubsub-etl tail opps.json | jq ._record_id   live, as JSON
      """)

  @Argument(
    help: "A topic, as 'pubsub-etl topics' lists them, or a pipeline file.", completion: .file())
  var place: String

  @OptionGroup var changes: PipelineChanges

  @Option(
    help: ArgumentHelp(
      "With a topic: org file; default: the environment variables SF_LOGIN_URL, SF_CLIENT_ID and "
        + "SF_CLIENT_SECRET.", valueName: "file"), completion: .file())
  var org: String?

  @Option(
    help: ArgumentHelp(
      "With a pipeline file: show this many of the newest changes of the copy, and end.",
      valueName: "count"))
  var last: Int?

  @Option(
    help: ArgumentHelp(
      "With a pipeline file: the sink whose stages and copy count; default: the first one that has "
        + "a copy.", valueName: "name"))
  var sink: String?

  @Option(help: ArgumentHelp("End after this many events.", valueName: "count"))
  var maxEvents: Int?

  @Flag(help: "Print JSON on a terminal also.")
  var json = false

  private static let maxLast = 10_000

  /// A file cannot have the name of a topic.
  private var topic: String? { TopicName.isValid(self.place) ? self.place : nil }

  func validate() throws {
    try FilePath.validate(self.org, of: "--org")
    if let topic, let mistake = PipelineDraft.mistake(inTopic: topic) {
      throw ValidationError(mistake)
    }
    if let last {
      guard (1...Self.maxLast).contains(last) else {
        throw ValidationError("--last takes a number from 1 to \(Self.maxLast)")
      }
      if self.topic != nil {
        throw ValidationError("--last reads the copy of a pipeline: give its file, not a topic")
      }
      if self.maxEvents != nil {
        throw ValidationError("--max-events limits changes that arrive, and --last shows none")
      }
    }
    if let maxEvents, maxEvents < 1 {
      throw ValidationError("--max-events must be at least 1")
    }
    if self.org != nil, self.topic == nil {
      throw ValidationError("--org belongs to a topic; a pipeline file has its own org")
    }
    if self.topic != nil, self.sink != nil || self.changes.root != nil {
      throw ValidationError("--sink and --root belong to a pipeline file")
    }
  }

  func run() async throws {
    let configuration = try self.loadOrExit()
    let secrets = configuration.secrets
    let clock = ProcessClock()
    let output = TailOutput(
      TailOutput.Form(json: self.json), hiding: secrets, now: { clock.wallTime })
    do {
      let sink = try self.sink(of: configuration)
      if let last {
        SignalWatcher.endAtOnce()
        return try Self.recall(last, sink, configuration, output)
      }
      var options = try RunOptions.parse([])
      options.limits.follow = true
      options.limits.maxEvents = self.maxEvents
      let logger = Logger.console(
        ErrorConsole(), level: .warning, format: .standard(), hiding: secrets, clock: clock)
      try await TailRun(
        configuration, sink: sink, options: options, clock: clock, logger: logger, output: output
      ).run()
    } catch {
      throw RunFailure(error).reported(hiding: secrets)
    }
  }

  private func loadOrExit(environment: Environment = .process) throws -> PipelineConfiguration {
    try PipelineOptions.orExit {
      guard let topic = self.topic else {
        return try PipelineConfiguration.load(
          file: self.place, root: self.changes.root, overrides: self.changes.overrides(),
          environment: environment)
      }
      return try PipelineConfiguration.load(
        PipelineDraft(
          watching: topic, org: try PipelineDraft.org(self.org, environment: environment)),
        overrides: self.changes.overrides(), environment: environment)
    }
  }

  private func sink(of configuration: PipelineConfiguration) throws -> any ConfiguredSink {
    let sinks = configuration.sinks
    guard let name = self.sink else {
      // A pipeline without a sink is refused when its file is read.
      guard let sink = sinks.first(where: { $0 is any RecallingSink }) ?? sinks.first else {
        throw RunFailure(.noSink, "the pipeline has no sink")
      }
      return sink
    }
    guard let sink = sinks.first(where: { $0.name == name }) else {
      throw RunFailure(
        .unknownSink,
        "the pipeline has no sink '\(name)'; it has: \(sinks.map(\.name).joined(separator: ", "))")
    }
    return sink
  }

  /// Shows the newest changes of the copy.
  static func recall(
    _ count: Int, _ sink: any ConfiguredSink, _ configuration: PipelineConfiguration,
    _ output: TailOutput
  ) throws {
    guard let sink = sink as? any RecallingSink else {
      throw RunFailure(
        .noSink,
        "sink '\(sink.name)' keeps no changes; --last needs a files sink, or a postgres sink with "
          + "history tables")
    }
    var newest: [(line: JSONValue, change: TailChange)] = []
    func keepNewest() {
      // The sort is stable: changes of the same time keep their order.
      newest.sort { ($0.change.time ?? .min) < ($1.change.time ?? .min) }
      newest.removeFirst(max(0, newest.count - count))
    }
    try sink.recall(count, configuration) { line in
      let change = output.learn(line)
      // A record from a snapshot is not a change.
      guard line["_kind"]?.string != "snapshot" else { return }
      newest.append((line, change))
      if newest.count >= 2 * count { keepNewest() }
    }
    keepNewest()
    for (line, change) in newest { try output.show(line, change) }
  }
}
