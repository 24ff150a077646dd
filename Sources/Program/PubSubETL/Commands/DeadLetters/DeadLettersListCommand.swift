import ArgumentParser
import FileSink
import JSON
import Pipeline

/// `pubsub-etl dead-letters list FILE`.
struct DeadLettersListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "Lists dead letters. Safe while a run is in progress.",
    discussion: """
      Prints a line for each letter that is waiting: ID, time, kind, sink, and reason. Three kinds \
      exist. undecodable: the event could not be decoded. unprocessable: a stage of the pipeline \
      could not process it. refused: a sink, or a stage of that sink, did not accept it.

      """ + DeadLettersCommand.exitCodes + """


        EXAMPLES:
          pubsub-etl dead-letters list opps.json                    all waiting ones
          pubsub-etl dead-letters list opps.json --reason refused   what a sink refused
          pubsub-etl dead-letters list opps.json --since 24h        the newest
        """)

  @OptionGroup var options: PipelineOptions
  @OptionGroup var filter: DeadLetterFilterOptions

  @Flag(help: "Also list letters that were retried or dropped.")
  var all = false

  @Flag(help: "Print JSON: the letters without their payloads, and their number.")
  var json = false

  func run() async throws {
    let configuration = try self.options.loadOrExit()
    let secrets = configuration.secrets
    try CheckpointCommand.reporting(hiding: secrets) {
      let book = try DeadLetterBook(configuration)
      var selection = self.filter.selection
      selection.includesHandled = true
      var counts: [DeadLetterLedger.Outcome?: Int] = [:]
      // Printed one by one, since there may be any number of them.
      if self.json {
        try StandardStream.print(PrintableText(line: "{\"letters\": [", hiding: secrets))
      }
      var isFirst = true
      let damaged = try book.visit(selection) { letter, outcome in
        counts[outcome, default: 0] += 1
        guard outcome == nil || self.all else { return }
        if self.json {
          try StandardStream.print(
            .unended(isFirst ? " " : ",", hiding: secrets)
              + PrintableText(json: letter.head(outcome), .compact, hiding: secrets))
          isFirst = false
        } else {
          try StandardStream.print(
            PrintableText(line: Self.line(letter, outcome), hiding: secrets))
        }
      }
      if counts.isEmpty, let remark = try book.remark(onEmpty: selection) {
        StandardStream.tell(PrintableText(line: remark, hiding: secrets))
      }
      let lost = try book.lostAndDroppedCount(selection)
      if lost > 0 { counts[.dropped, default: 0] += lost }
      func count(_ outcome: DeadLetterLedger.Outcome?) -> Int { counts[outcome] ?? 0 }
      try StandardStream.print(
        PrintableText(
          line: self.json
            ? "], \"waiting\": \(count(nil)), \"retried\": \(count(.retried)), "
              + "\"dropped\": \(count(.dropped))}"
            : "\(Phrase.count(count(nil), "letter")) waiting, "
              + "\(count(.retried)) retried, \(count(.dropped)) dropped", hiding: secrets))
      if let loss = try book.loss(damaged) { throw loss }
    }
  }

  private static func line(
    _ letter: StoredDeadLetter, _ outcome: DeadLetterLedger.Outcome?
  ) -> String {
    let state = outcome.map { "\($0.rawValue)  " } ?? ""
    let sink = letter.letter.refusal.map { " by \($0.sink)" } ?? ""
    return "\(letter.id)  \(letter.time)  \(state)\(letter.kind)\(sink)  \(letter.letter.reason)"
  }
}

/// `pubsub-etl dead-letters export FILE`.
struct DeadLettersExportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Writes dead letters with their payloads as NDJSON. Safe while a run is in progress.",
    discussion: """
      Opens sealed payloads with dead_letter.key and dead_letter.old_keys. Names each letter that \
      it cannot open on standard error, and leaves it out; the exit code is then 65.

      """ + DeadLettersCommand.exitCodes + """


        EXAMPLES:
          pubsub-etl dead-letters export opps.json > letters.ndjson
        """)

  @OptionGroup var options: PipelineOptions
  @OptionGroup var filter: DeadLetterFilterOptions

  @Flag(help: "Also export letters that were retried or dropped.")
  var all = false

  func run() async throws {
    let configuration = try self.options.loadOrExit()
    let secrets = configuration.secrets
    var hasFailed = false
    try CheckpointCommand.reporting(hiding: secrets) {
      var selection = self.filter.selection
      selection.includesHandled = self.all
      let book = try DeadLetterBook(configuration)
      var isEmpty = true
      let damaged = try book.visit(selection) { letter, _ in
        isEmpty = false
        do {
          let opened = try letter.opened(with: configuration.deadLetter.keys)
          try StandardStream.print(
            PrintableText(json: opened.json, .compact, hiding: secrets))
        } catch let error as SealedPayloadError {
          hasFailed = true
          StandardStream.tell(PrintableText(line: "\(letter.id): \(error)", hiding: secrets))
        }
      }
      if isEmpty, let remark = try book.remark(onEmpty: selection) {
        StandardStream.tell(PrintableText(line: remark, hiding: secrets))
      }
      if let loss = try book.loss(damaged) { throw loss }
    }
    if hasFailed { throw ExitCode.data.error }
  }
}
