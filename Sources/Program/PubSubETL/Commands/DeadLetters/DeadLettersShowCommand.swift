import ArgumentParser
import Bytes
import Clocks
import FileSink
import JSON
import Pipeline
import SalesforceAuth

/// `pubsub-etl dead-letters show FILE ID`.
struct DeadLettersShowCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Shows a dead letter as JSON. Safe while a run is in progress.",
    discussion: """
      With --payload, logs in, requests the event's schema, and runs the stages of the pipeline. \
      Then it prints the event's lines as a files sink would write them. If the event cannot be decoded, it \
      prints the reason.

      """ + DeadLettersCommand.exitCodes + """


        EXAMPLES:
          pubsub-etl dead-letters show opps.json ID             why it is a dead letter
          pubsub-etl dead-letters show opps.json ID --payload   also the event's lines
        """)

  @OptionGroup var options: PipelineOptions

  @Argument(help: "ID of a letter, as 'list' shows it.")
  var id: String

  @Flag(help: "Also print the event's lines. They hold the values of its fields.")
  var payload = false

  func run() async throws {
    let configuration = try self.options.loadOrExit()
    let secrets = configuration.secrets
    do {
      var found: (letter: StoredDeadLetter, outcome: DeadLetterLedger.Outcome?)?
      let selection = DeadLetterSelection(ids: [.init(self.id)], includesHandled: true)
      let book = try DeadLetterBook(configuration)
      let damaged = try book.visit(selection) { found = ($0, $1) }
      guard let found else {
        throw try book.loss(damaged)
          ?? RunFailure(
            .unknownLetter,
            "there is no dead letter '\(self.id)'; 'dead-letters list --all' lists all of them")
      }
      try StandardStream.print(
        PrintableText(json: found.letter.head(found.outcome), hiding: secrets))
      guard self.payload else { return }
      guard found.letter.hasPayload else {
        throw RunFailure(
          .undecodable,
          "\(found.letter.id) has no payload to show, because dead_letter.payload was \"none\" when "
            + "it was written; 'pubsub-etl snapshot' reads its records again")
      }
      try await self.printLines(of: found.letter, configuration)
    } catch {
      throw RunFailure(error).reported(hiding: secrets)
    }
  }

  private func printLines(
    of letter: StoredDeadLetter, _ configuration: PipelineConfiguration
  ) async throws {
    try await Session.open(configuration, clock: ProcessClock()) { session in
      let decoders = LetterDecoders(session, takesUnsealed: true)
      try await decoders.prepare(for: letter)
      let batch: RecordBatch
      do throws(UndecodableEvent) {
        batch = try decoders.decode(letter)
      } catch {
        throw RunFailure(
          .undecodable, "\(letter.id) cannot be decoded: \(error.reason)")
      }
      let stages = session.stages.pipeline
      try stages.apply(to: batch)
      if let refused = stages.takeRefusedEvents().first {
        throw RunFailure(
          .unprocessable,
          "\(letter.id) cannot be processed: \(refused.reason)")
      }
      let encoder = NDJSONFormat().encoder(for: batch.layout, of: .placedEvents)
      var lines = ByteBuffer()
      for row in 0..<batch.rowCount {
        lines.removeAll()
        _ = encoder.append(
          row..<row + 1, of: batch,
          from: .event(epoch: letter.letter.epoch, ordinal: letter.letter.ordinal), to: &lines,
          limit: .max)
        try StandardStream.print(
          PrintableText(
            json: JSONValue(parsing: Array(lines.bytes)), .compact,
            hiding: configuration.secrets))
      }
    }
  }
}
