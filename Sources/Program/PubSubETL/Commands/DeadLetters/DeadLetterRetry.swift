internal import Checkpoint
internal import Clocks
internal import EventLoop
import FileSink
import HTTPClient
import JSON
import Logging
import Pipeline
import PostgresSink

/// Sends dead letters through the pipeline again, with the current pipeline file.
///
/// Works in commits of some letters: the databases first, which take nothing that they hold already,
/// then the checkpoint, in one step with the files and with the note that the letters were retried.
/// After a kill between the two, the next retry finds the letters still waiting, and only the files
/// without them.
/// Positions stay where they are.
final class DeadLetterRetry {
  struct Result {
    var retried: [StoredDeadLetter.ID] = []
    /// Letters that stay, and why.
    var failed: [(id: StoredDeadLetter.ID, reason: String)] = []
    /// The number of those that cannot be decoded.
    var undecodableCount = 0
    /// Sinks that have marked the letters' records instead of taking their events.
    var repairingSinks: [String] = []
    /// Letters that cannot be read; only of `examine`.
    var loss: RunFailure?
  }

  private let configuration: PipelineConfiguration
  private let options: RunOptions
  private let logger: Logger
  private let clock = ProcessClock()
  /// Letters in the clear are taken: always, unless the pipeline seals them.
  private let takesUnsealed: Bool
  private var result = Result()
  /// Letters of this command so far: a file that was edited may have one twice.
  private var seen: Set<StoredDeadLetter.ID> = []

  /// A commit is made when it has so many letters, or bytes of payloads, or a little more.
  private static let maxLetters = 500
  private static let maxByteCount = 16 << 20

  /// - Parameter acceptsUnsealed: the user vouches for letters in the clear.
  init(
    _ configuration: PipelineConfiguration, options: RunOptions, acceptsUnsealed: Bool,
    logger: Logger
  ) {
    self.takesUnsealed = acceptsUnsealed || !configuration.deadLetter.isSealed
    self.configuration = configuration
    self.options = options
    self.logger = logger
  }

  /// Finds out which letters can be decoded; stores nothing and takes no lock.
  func examine(_ ids: [String], all: Bool) async throws -> Result {
    let book = try DeadLetterBook(self.configuration)
    self.result.loss = try DeadLetterChoice.visit(ids, all: all, in: book) { _ in }
    let selection = DeadLetterChoice.selection(ids, all: all)
    try await Session.open(self.configuration, clock: self.clock) { session in
      let decoders = LetterDecoders(session, takesUnsealed: self.takesUnsealed)
      try await self.visitCommits(book, selection) { letters in
        for letter in letters
        where try await self.decoded(letter, decoders, passing: session.stages) != nil {
          self.result.retried.append(letter.id)
        }
      }
    }
    return self.result
  }

  func execute(_ ids: [String], all: Bool) async throws -> Result {
    let store = try CheckpointChange.open(self.configuration)
    defer { withExtendedLifetime(store) {} }
    guard let document = try store.load() else {
      throw FileCheckpointStore.missing(self.configuration)
    }
    try self.checkSinks(document)
    // Before the login: a mistaken ID is reported at once.
    let earlier = try DeadLetterBook(self.configuration)
    var isWaiting = false
    if var loss = try DeadLetterChoice.visit(ids, all: all, in: earlier, { _ in isWaiting = true })
    {
      loss.message = "no letter was retried: \(loss.message)"
      throw loss
    }
    try self.check(earlier.ledger)
    // What a retry that was killed has left is finished, even if it had come to the last letter.
    let states = document.sinks.values + [document.deadLetters].compactMap { $0 }
    guard isWaiting || states.contains(where: { $0.openFileCount > 0 }) else {
      return self.result
    }
    try CheckpointJournal.append(
      self.configuration.statePaths, command: "dead-letters retry", topic: nil,
      old: all ? "all" : .array(ids.map { .string($0) }), new: nil)
    try await Session.open(
      self.configuration, clock: self.clock, logger: self.logger
    ) { session in
      guard document.org == session.org else {
        throw RunFailure(
          .otherOrg,
          "the dead letters of pipeline '\(self.configuration.name)' belong to org "
            + "\(document.org), but the login is for org \(session.org)")
      }
      let context = SinkContext(
        configuration: self.configuration, org: session.org, options: self.options,
        owner: try session.assembly.owner(store),
        retry: self.configuration.retry.schedule(follows: false), logger: self.logger,
        log: RunLog(
          logger: self.logger, progress: nil, follows: false,
          endpoint: self.configuration.source.org.endpoint.url, clock: self.clock),
        interruption: Interruption(deadline: nil, clock: self.clock), clock: self.clock)
      let sinks = try OpenSinks(context, states: document.sinks)
      defer { sinks.close() }
      let decoders = LetterDecoders(session, takesUnsealed: self.takesUnsealed)
      let stores = try self.open(sinks, session, context, document, store)
      // Only now: files that a killed run has left in progress are finished, and letters whose rows
      // it had committed are in the ledger.
      let book = try DeadLetterBook(self.configuration)
      let selection = DeadLetterChoice.selection(ids, all: all)
      try await self.visitCommits(book, selection) { letters in
        try await self.commit(letters, decoders, stores)
      }
    }
    return self.result
  }

  /// Without its ledger, a letter that was retried waits again, and would be exported twice.
  private func check(_ ledger: DeadLetterLedger) throws {
    for files in self.configuration.fileSinks {
      var count: Int64 = 0
      try ExportedFile.visit(
        .redriven, in: files.directory, pipeline: self.configuration.name
      ) { count += $0.events }
      guard count > ledger.outcomes.count else { continue }
      throw RunFailure(
        .lostState,
        "\(ledger.path) is missing or incomplete: it has "
          + "\(Phrase.count(ledger.outcomes.count, "letter")), and "
          + "\(count) were exported again to \(files.directory). Put it back from a backup. Without "
          + "one, drop the letters that were retried: the files with \"redriven\" in "
          + "_manifest.ndjson have their events")
    }
  }

  // MARK: Stores

  private struct Stores {
    var stages: RunStages
    /// Those whose state the checkpoint holds.
    var files: [StagedSink]
    var databases: [(store: StagedStore, positions: [String: TopicPosition])]
    var checkpointed: CheckpointedStore
    var deadLetters: DeadLetterFile
    var topics: [String: TopicPosition]
  }

  private func checkSinks(_ document: CheckpointDocument) throws {
    let names = Set(self.configuration.sinks.map(\.name))
    guard names == Set(document.sinks.keys) else {
      throw RunFailure(
        .otherSinks,
        "the last run of pipeline '\(self.configuration.name)' had other sinks; run it once, and "
          + "then retry")
    }
  }

  private func open(
    _ sinks: OpenSinks, _ session: Session, _ context: SinkContext,
    _ document: CheckpointDocument, _ store: FileCheckpointStore
  ) throws -> Stores {
    for fault in try sinks.survey() { self.logger.warning("\(fault)") }
    try self.checkFiles(sinks, document)
    try sinks.connect()
    var positions: [[String: TopicPosition]] = []
    for (settings, keeper) in sinks.keepers {
      guard let stored = try keeper.storedPositions(isKnown: true, context) else {
        throw RunFailure(
          .lostState,
          "the database of sink '\(settings.name)' has no position; run the pipeline, and then retry"
        )
      }
      positions.append(stored)
    }
    try sinks.recover()
    let deadLetters = try context.deadLetters(recoveredFrom: document.deadLetters)
    session.stages.pipeline.erased = try sinks.erasedRecords()
    let staged = sinks.staged(session.stages)
    var next = document
    let checkpointed = CheckpointedStore(
      sinks: staged.checkpointed, deadLetters: deadLetters
    ) { _, states, letters in
      for (name, state) in states { next.sinks[name] = SinkState(state) }
      next.deadLetters = SinkState(letters)
      try store.save(next)
    }
    return Stores(
      stages: session.stages, files: staged.checkpointed,
      databases: Array(zip(staged.stores, positions)), checkpointed: checkpointed,
      deadLetters: deadLetters, topics: document.topics)
  }

  /// Checks what the start of a run checks: with an old checkpoint, files would be written over newer ones.
  private func checkFiles(_ sinks: OpenSinks, _ document: CheckpointDocument) throws {
    for (topic, position) in document.topics {
      guard let newest = sinks.lastExported(ofTopic: topic),
        (position.epoch, position.nextOrdinal) <= (newest.epoch, newest.ordinal)
      else { continue }
      throw RunFailure(
        .lostState,
        "\(topic): the files contain events that the checkpoint does not know, so it is not the "
          + "last one; put back the newest checkpoint, and then retry")
    }
  }

  // MARK: Commits

  /// Lends the letters of one commit after the other.
  private func visitCommits(
    _ book: DeadLetterBook, _ selection: DeadLetterSelection,
    _ body: ([StoredDeadLetter]) async throws -> Void
  ) async throws {
    let cursor = try book.cursor()
    var letters: [StoredDeadLetter] = []
    var byteCount = 0
    func collect(_ letter: StoredDeadLetter) {
      guard selection.includes(letter, book.ledger[letter]) else { return }
      letters.append(letter)
      byteCount += letter.payloadByteCount ?? 0
    }
    while try cursor.next(collect) {
      guard letters.count >= Self.maxLetters || byteCount >= Self.maxByteCount else { continue }
      try await body(letters)
      (letters, byteCount) = ([], 0)
    }
    if !letters.isEmpty { try await body(letters) }
  }

  /// - Returns: nil for a letter that stays.
  private func decoded(
    _ letter: StoredDeadLetter, _ decoders: LetterDecoders, passing stages: RunStages
  ) async throws -> RecordBatch? {
    guard self.configuration.source.topics.contains(where: { $0.name == letter.letter.topic })
    else {
      self.fail(letter, "the pipeline file does not have its topic, \(letter.letter.topic)")
      return nil
    }
    try await decoders.prepare(for: letter)
    do {
      let batch = try decoders.decode(letter)
      let refusal = try stages.refusal(sinks: letter.letter.refusal?.sinks) {
        try decoders.decode(letter)
      }
      guard let refusal else { return batch }
      self.fail(letter, refusal)
    } catch let error as UndecodableEvent {
      self.fail(letter, "could not be decoded: \(error.reason)")
      self.result.undecodableCount += 1
    }
    return nil
  }

  /// Whether a run of this pipeline has written the letter, as far as the letter shows.
  private func isPlausible(
    _ letter: StoredDeadLetter, _ positions: [String: TopicPosition]
  ) -> Bool {
    let place = (letter.letter.epoch, letter.letter.ordinal)
    guard self.seen.insert(letter.id).inserted else {
      self.fail(letter, "another letter has the same place; the file was changed")
      return false
    }
    if let position = positions[letter.letter.topic],
      place >= (position.epoch, position.nextOrdinal)
    {
      self.fail(
        letter,
        "the checkpoint does not know its place; the file was changed, or the checkpoint is older")
      return false
    }
    let known = self.configuration.sinks.map(\.name)
    if let sink = letter.letter.refusal?.sinks.first(where: { !known.contains($0) }) {
      self.fail(
        letter,
        "sink '\(sink)', which refused it, is not in the pipeline file; put it back and retry, or "
          + "use 'dead-letters export'")
      return false
    }
    return true
  }

  private func fail(_ letter: StoredDeadLetter, _ reason: String) {
    self.result.failed.append((letter.id, reason))
  }

  private func commit(
    _ letters: [StoredDeadLetter], _ decoders: LetterDecoders, _ stores: Stores
  ) async throws {
    var accepted: [StoredDeadLetter] = []
    for letter in letters where self.isPlausible(letter, stores.topics) {
      guard let batch = try await self.decoded(letter, decoders, passing: stores.stages) else {
        continue
      }
      try stores.stages.pipeline.apply(to: batch)
      for (store, positions) in stores.databases {
        try Self.check(letter, isBehind: positions, of: store)
        try await self.waiting { try store.makeReady(for: batch.layout) }
        try store.write(batch)
      }
      accepted.append(letter)
    }
    guard !accepted.isEmpty else { return }
    var refusals: [StoredDeadLetter.ID: String] = [:]
    for (store, positions) in stores.databases {
      for event in try await self.make(store, durable: Commit(positions: positions)) {
        let id = StoredDeadLetter.ID(
          topic: event.topic, epoch: event.epoch, ordinal: event.ordinal)
        refusals[id] = event.reason
      }
    }
    for letter in accepted {
      if let reason = refusals[letter.id] { self.fail(letter, reason) }
    }
    accepted.removeAll { refusals[$0.id] != nil }
    // Files have had an event from the start that another sink refused.
    for letter in accepted {
      let refused = letter.letter.refusal?.sinks
      for sink in stores.files where refused?.contains(sink.name) ?? true {
        let batch = try decoders.decode(letter)
        try stores.stages.pipeline.apply(to: batch)
        try sink.write(batch)
      }
    }
    guard !accepted.isEmpty else { return }
    stores.deadLetters.noteRetried(accepted)
    let commit = Commit(positions: stores.topics, isLast: true)
    try stores.checkpointed.seal(isLast: true)
    _ = try stores.checkpointed.prepare(commit)
    _ = try stores.checkpointed.commit()
    try stores.checkpointed.complete()
    self.result.retried += accepted.map(\.id)
    self.result.repairingSinks = self.configuration.sinks.compactMap { sink in
      (sink as? PostgresSettings)?.sink.mode == .current ? sink.name : nil
    }
  }

  /// A database that has not come so far is going to take the event when it does, and could not tell
  /// it from another.
  private static func check(
    _ letter: StoredDeadLetter, isBehind positions: [String: TopicPosition], of store: StagedStore
  ) throws {
    let place = (letter.letter.epoch, letter.letter.ordinal)
    guard let position = positions[letter.letter.topic],
      place < (position.epoch, position.nextOrdinal)
    else {
      throw RunFailure(
        .storesApart, code: .tryAgain,
        "sink '\(store.name)' has not taken the events before letter \(letter.id) yet; run the "
          + "pipeline, and then retry")
    }
  }

  /// - Returns: events that the store has refused.
  private func make(
    _ store: StagedStore, durable commit: Commit
  ) async throws -> [RefusedEvent] {
    try store.base.seal(isLast: false)
    let answer = try await self.waiting { try store.base.prepare(commit) }
    try await self.waiting { try store.base.commit() }
    try store.base.complete()
    if case .refused(let events) = answer { return events }
    return []
  }

  /// Asks again for what a store could not do for a moment; the store gives up by throwing.
  @discardableResult
  private func waiting(_ body: () throws -> StoreAnswer) async throws -> StoreAnswer {
    while true {
      let answer = try body()
      guard case .unavailable(let outage) = answer else { return answer }
      try await self.clock.sleep(until: outage.retryAt)
    }
  }
}
