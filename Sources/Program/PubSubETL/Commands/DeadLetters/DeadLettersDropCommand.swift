import ArgumentParser
internal import Checkpoint
import FileSink
import Glibc
import JSON
import Pipeline
import PostgresSink

/// `pubsub-etl dead-letters drop FILE ID…`.
struct DeadLettersDropCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "drop", abstract: "Discards dead letters; they will not be exported.",
    discussion: """
      The letters stay in their files and no longer count as waiting. The ledger next to the files \
      and the journal in the state directory record who dropped them, and when. In a database, \
      their records stay marked until they are read again.

      """ + DeadLettersCommand.exitCodes + """
         69 or 77: a database cannot be used.

        EXAMPLES:
          pubsub-etl dead-letters drop opps.json ID      one letter, after a question
          pubsub-etl dead-letters drop opps.json --all   all that are waiting
        """)

  @OptionGroup var options: PipelineOptions

  @Argument(help: "IDs of letters, as 'list' shows them.")
  var ids: [String] = []

  @Flag(help: "Drop every letter that is waiting.")
  var all = false

  @Flag(help: "Drop them without asking for confirmation.")
  var yes = false

  func validate() throws { try DeadLetterChoice.validate(self.ids, all: self.all) }

  func run() async throws {
    let configuration = try self.options.loadOrExit()
    let secrets = configuration.secrets
    try CheckpointCommand.reporting(hiding: secrets) {
      let store = try CheckpointChange.open(configuration)
      defer { withExtendedLifetime(store) {} }
      let book = try DeadLetterBook(configuration)
      var letters: [DeadLetterLedger.Key] = []
      var places: [CheckpointTable.LetterPlace] = []
      let loss = try DeadLetterChoice.visit(self.ids, all: self.all, in: book) { letter in
        letters.append(DeadLetterLedger.Key(letter))
        places.append(CheckpointTable.LetterPlace(letter))
      }
      let what = Phrase.count(letters.count, "dead letter")
      guard !letters.isEmpty else {
        try StandardStream.print(PrintableText(line: "no letter is waiting", hiding: secrets))
        if let loss { throw loss }
        return
      }
      let databases = try SinkDatabases(configuration)
      try Self.confirm(self.yes, "Drop \(what)? [y/N] ", hiding: secrets)
      try CheckpointJournal.append(
        configuration.statePaths, command: "dead-letters drop", topic: nil,
        old: .array(letters.map { .string($0.id.description) }), new: nil)
      try databases.drop(places)
      var ledger = book.ledger
      try ledger.note(.dropped, letters)
      try StandardStream.print(PrintableText(line: "\(what) dropped", hiding: secrets))
      if let loss { throw loss }
    }
  }

  private static func confirm(
    _ isConfirmed: Bool, _ question: String, hiding secrets: SecretMask
  ) throws {
    guard !isConfirmed else { return }
    if StandardStream.confirm(.unended(question, hiding: secrets)) { return }
    throw RunFailure(
      .notConfirmed, "nothing was dropped; add --yes to drop without being asked")
  }
}

/// Letters that a command names one by one, or all.
enum DeadLetterChoice {
  static func validate(_ ids: [String], all: Bool) throws {
    guard ids.isEmpty == all else {
      throw ValidationError("give IDs of letters, as 'list' shows them, or --all")
    }
  }

  static func selection(_ ids: [String], all: Bool) -> DeadLetterSelection {
    DeadLetterSelection(ids: all ? nil : Set(ids.map { StoredDeadLetter.ID($0) }))
  }

  /// Lends each letter that is waiting.
  ///
  /// - Returns: what is lost, if anything.
  /// - Throws: `RunFailure` for an ID that no waiting letter has: 64, or 65 if letters are lost.
  static func visit(
    _ ids: [String], all: Bool, in book: DeadLetterBook, _ body: (StoredDeadLetter) -> Void
  ) throws -> RunFailure? {
    var found: Set<String> = []
    let damaged = try book.visit(self.selection(ids, all: all)) { letter, _ in
      found.insert(letter.id.description)
      body(letter)
    }
    let loss = try book.loss(damaged)
    if let missing = ids.first(where: { !found.contains($0) }) {
      throw loss
        ?? RunFailure(
          .unknownLetter,
          "no dead letter '\(missing)' is waiting; 'dead-letters list' shows those that are")
    }
    return loss
  }
}

extension CheckpointTable.LetterPlace {
  init(_ stored: StoredDeadLetter) {
    let letter = stored.letter
    self.init(
      entity: TopicName.entity(letter.topic), replayID: letter.replayID.hex, epoch: letter.epoch,
      ordinal: letter.ordinal)
  }
}
