import ArgumentParser
import Clocks
import EventLoop
import FileSink
import JSON
import Logging

/// `pubsub-etl dead-letters retry FILE`.
struct DeadLettersRetryCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "retry",
    abstract: "Sends dead letters through the pipeline again, with the current pipeline file.",
    discussion: """
      An event that can be decoded and stored now takes its own place in the stream. A history gets \
      it with its epoch and ordinal, and the current rows of its records are rebuilt. Without a \
      history, its records are marked, and the next run reads them again (repair). Files sinks get \
      it in a file of its own, whose lines have _epoch and _ordinal; events that only a database \
      refused are in the files already. A letter that fails again stays. If the command is killed, \
      run it again: no event is stored twice. Only a stdout sink may then get lines again.
      Exit codes: 0 all were retried; 64 command line, or no such letter; 65 some failed again, \
      letters are lost (nothing is retried then), or the checkpoint is lost; 69 service or database unavailable; 74 files cannot be written; 75 a \
      run is in progress, or a database is behind the files; 77 login or database refused; 78 \
      mistakes in the pipeline file.

      EXAMPLES:
        pubsub-etl dead-letters retry opps.json --all --dry-run    what would happen
        pubsub-etl dead-letters retry opps.json --all              send them again
      """)

  @OptionGroup var options: PipelineOptions
  @OptionGroup var log: LogOptions

  @Argument(help: "IDs of letters, as 'list' shows them.")
  var ids: [String] = []

  @Flag(help: "Retry every letter that is waiting.")
  var all = false

  @Flag(help: "Only find out which letters can be exported now. Stores nothing.")
  var dryRun = false

  @Flag(
    help: "Also retry letters whose payload is not sealed, though dead_letter.payload is sealed.")
  var acceptUnsealed = false

  @Flag(help: "Print the result as JSON.")
  var json = false

  func validate() throws { try DeadLetterChoice.validate(self.ids, all: self.all) }

  func run() async throws {
    let configuration = try self.options.loadOrExit()
    let secrets = configuration.secrets
    var logger = Logger.console(
      ErrorConsole(), level: self.log.logLevel ?? .warning, format: self.log.effectiveFormat,
      hiding: secrets, clock: ProcessClock())
    logger[metadataKey: "pipeline"] = "\(configuration.name)"
    let retry = DeadLetterRetry(
      configuration, options: try RunOptions.parse([]),
      acceptsUnsealed: self.acceptUnsealed, logger: logger)
    let result: DeadLetterRetry.Result
    do {
      // As during a run: sinks block, on a thread that nobody else waits for.
      let worker = try EventLoop(name: "retry")
      let (ids, all, dryRun) = (self.ids, self.all, self.dryRun)
      result = try await withTaskExecutorPreference(worker) {
        try await dryRun ? retry.examine(ids, all: all) : retry.execute(ids, all: all)
      }
      if self.json {
        try StandardStream.print(PrintableText(json: result.json, hiding: secrets))
      } else {
        for (id, reason) in result.failed {
          StandardStream.tell(PrintableText(line: "\(id): \(reason)", hiding: secrets))
        }
        if let remark = result.remark {
          StandardStream.tell(PrintableText(line: remark, hiding: secrets))
        }
        for line in result.text(isDryRun: self.dryRun) {
          try StandardStream.print(PrintableText(line: line, hiding: secrets))
        }
      }
    } catch {
      throw RunFailure(error).reported(hiding: secrets)
    }
    if let loss = result.loss { throw loss.reported(hiding: secrets) }
    if !result.failed.isEmpty { throw ExitCode.data.error }
  }
}

extension DeadLetterRetry.Result {
  /// What to do about letters that no change of the pipeline file makes decodable.
  var remark: String? {
    guard self.undecodableCount > 0 else { return nil }
    return "\(Phrase.count(self.undecodableCount, "letter")) cannot be decoded. If this stays so, "
      + "drop each with 'dead-letters drop FILE ID', then run 'pubsub-etl snapshot' to read the "
      + "records of the objects again"
  }

  func text(isDryRun: Bool) -> [String] {
    let done = Phrase.count(self.retried.count, "letter")
    var lines = [isDryRun ? "\(done) can be exported now" : "\(done) retried"]
    if !self.failed.isEmpty { lines[0] += ", \(self.failed.count) failed again and stay" }
    if !self.retried.isEmpty, !isDryRun {
      for sink in self.repairingSinks {
        lines.append(
          "sink '\(sink)' has no history: the records are marked, and the next run with repair "
            + "reads them again")
      }
    }
    return lines
  }

  var json: JSONValue {
    [
      "retried": .array(self.retried.map { .string($0.description) }),
      "failed": .array(
        self.failed.map { ["id": .string($0.id.description), "reason": .string($0.reason)] }),
      "marked_for_repair_in": .array(self.repairingSinks.map { .string($0) }),
    ]
  }
}
