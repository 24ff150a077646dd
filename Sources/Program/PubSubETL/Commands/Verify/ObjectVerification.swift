internal import Clocks
internal import EventLoop
import Pipeline
import RESTSource
import SalesforceREST

/// Reads an object's records from the org and has a sink's copy compared with them.
///
/// First all records, with their values or with the time of their last change alone; then, if asked
/// for, the values of a sample; then what differed, at once, by ID and with all values. What still
/// differs is read again after every reader sees what was committed before. Only a difference in all
/// readings is drift, so a change in transit does not count.
final class ObjectVerification: @unchecked Sendable {
  // Used by one task at a time: a step ends before the next one begins.

  enum Depth: Equatable {
    /// Which records there are, and when they were last changed.
    case records
    /// Also the values of this many records.
    case sample(Int)
    /// All values of all records.
    case full
  }

  let entity: String
  let depth: Depth
  /// The pipeline's stages.
  let stages: StageChain
  /// The sink's stages, which records pass as events do.
  let own: StageChain
  let verification: any CopyVerification
  /// The records that the org returned.
  private(set) var recordCount = 0
  /// When the records were read that are compared first; nil before that.
  private(set) var firstReadAt: ContinuousClock.Instant?
  /// A reader ends with the step that it was made for.
  private let makeReader: () -> SnapshotReader
  private var reader: SnapshotReader
  private let clock: ProcessClock
  private let wakes: AsyncStream<Void>
  private let wake: AsyncStream<Void>.Continuation
  private let layout: RecordLayout
  private var patience: OrgPatience
  private let progress: VerifyProgress

  /// Readings of what differs.
  private enum Round: Int {
    case atOnce = 1
    case afterWait
  }

  /// Indexes in `reader.objects`.
  private static let (values, listing) = (0, 1)

  /// How often to look how long the org has not answered.
  private static let tick = Duration.seconds(1)
  /// A tick that took this long was kept from running.
  private static let lateTick = Duration.seconds(5)

  /// - Parameters:
  ///   - listed: whether to read a column when values are not compared.
  ///   - patience: for how long to wait for records.
  init(
    _ object: ReadObject, _ depth: Depth, listed: @escaping @Sendable (Column) -> Bool,
    stages: StageChain, _ own: StageChain, _ verification: any CopyVerification, client: RESTClient,
    reserve: Int, retry: RetrySchedule, patience: OrgPatience,
    progress: VerifyProgress
  ) {
    self.layout = object.layout
    self.entity = object.entity
    self.depth = depth
    self.stages = stages
    self.own = own
    self.verification = verification
    self.patience = patience
    self.progress = progress
    var listing = object
    listing.reads = listed
    var options = SnapshotReader.Options()
    options.reserve = Double(reserve) / 100
    options.retry = retry
    // Somebody has asked for it: only what must remain for others is a limit.
    options.maxRepairCalls = .max
    let (wakes, continuation) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    self.wakes = wakes
    self.wake = continuation
    self.clock = client.clock
    self.makeReader = { [listing, options] in
      SnapshotReader([object, listing], client: client, options: options) { continuation.yield() }
    }
    self.reader = self.makeReader()
  }

  /// Reads all records and the sample, and what differs once more.
  ///
  /// - Throws: what the org or the sink refuses.
  func readFirst() async throws {
    try await self.reading {
      self.recordCount = try await self.readAll()
      if case .sample(let count) = self.depth { try await self.readSample(count) }
      self.firstReadAt = self.clock.now
      try await self.readCandidates(.atOnce)
    }
  }

  /// Reads again what still differs; later than `firstReadAt` by the visibility wait.
  ///
  /// - Throws: what the org or the sink refuses.
  func readAgain() async throws {
    try await self.reading { try await self.readCandidates(.afterWait) }
  }

  /// Runs a step with a reader.
  private func reading(_ body: () async throws -> Void) async throws {
    self.reader = self.makeReader()
    let reads = Task(operation: self.reader.background)
    let ticks = Task { [wake, clock] in
      while !Task.isCancelled {
        try await clock.sleep(for: Self.tick)
        wake.yield()
      }
    }
    defer { ticks.cancel() }
    do {
      try await body()
      reads.cancel()
      await reads.value
    } catch {
      reads.cancel()
      await reads.value
      throw error
    }
  }

  // MARK: Readings

  private func readAll() async throws -> Int {
    let index = self.depth == .full ? Self.values : Self.listing
    self.patience.begin("the records of \(self.entity)")
    self.reader.begin(object: index, ReadPass(entity: self.entity, number: 1))
    var requestedAt: ContinuousClock.Instant?
    var count = 0
    /// A new request returns all records again.
    func note(_ pass: ReadPass) throws {
      if let former = requestedAt, let current = pass.requestedAt, former != current {
        try self.verification.startOver()
        self.progress.read(-count)
        count = 0
      }
      requestedAt = pass.requestedAt ?? requestedAt
    }
    while true {
      switch try await self.next() {
      case .records(_, let batch, let pass):
        try note(pass)
        count += batch.events.count
        self.progress.read(batch.events.count)
        let omitted = try self.apply(batch)
        try self.verification.take(batch, omitted: omitted, of: .all)
        self.reader.recycle(batch)
      case .progress(_, let pass):
        try note(pass)
        guard pass.state == .complete else { continue }
        try self.verification.finishPass()
        return count
      case .unreadable(_, _, let record):
        count += 1
        let empty = RecordBatch(layout: self.layout)
        _ = try self.apply(empty)
        try self.verification.take(
          empty, omitted: [OmittedRecord(.unreadable, record)], of: .all)
      case .found, .notAsked, .retrying, .waiting, .underWay, .failed: continue
      }
    }
  }

  private func readSample(_ count: Int) async throws {
    var rest = try self.verification.sample(count)[...]
    while !rest.isEmpty {
      let ids = Array(rest.prefix(RESTClient.maxRetrievedRecords))
      rest = rest.dropFirst(ids.count)
      let read = try await self.read(ids)
      try self.verification.take(read.batch, omitted: read.omitted, of: .sample)
    }
  }

  private func readCandidates(_ round: Round) async throws {
    var last = ""
    while true {
      let ids = try self.verification.candidates(
        inRound: round.rawValue, after: last, limit: RESTClient.maxRetrievedRecords)
      guard let end = ids.last else { return }
      if last.isEmpty, round == .afterWait {
        try (self.verification as? any StaleVerification)?.lookAgain()
      }
      last = end
      let read = try await self.read(ids)
      try self.verification.take(
        read.batch, omitted: read.omitted,
        of: .again(asked: ids, missing: read.missing, round: round.rawValue))
    }
  }

  private struct Answer {
    /// After all stages.
    var batch: RecordBatch
    var missing: [String]
    var omitted: [OmittedRecord]
  }

  private func read(_ ids: [String]) async throws -> Answer {
    self.patience.begin("\(Phrase.count(ids.count, "record")) of \(self.entity)")
    self.reader.read(object: Self.values, ids: ids, store: 0)
    var omitted: [OmittedRecord] = []
    while true {
      switch try await self.next() {
      case .found(_, _, let batch, let missing, _):
        omitted += try self.apply(batch)
        return Answer(batch: batch, missing: missing, omitted: omitted)
      case .unreadable(_, _, let record): omitted.append(OmittedRecord(.unreadable, record))
      case .records, .progress, .notAsked, .retrying, .waiting, .underWay, .failed: continue
      }
    }
  }

  /// Passes a batch through all stages.
  ///
  /// - Returns: the records without a row: those that stages refuse, and those that they have left
  ///   out.
  private func apply(_ batch: RecordBatch) throws -> [OmittedRecord] {
    try self.stages.apply(to: batch)
    try self.own.apply(to: batch)
    let refused = self.stages.takeUnreadable() + self.own.takeUnreadable()
    return refused.map { OmittedRecord(.refused, $0) } + batch.leftOutRecords
  }

  /// The reader's next signal; throws what ends a reading.
  private func next() async throws -> ReadSignal {
    var wakes = self.wakes.makeAsyncIterator()
    while true {
      guard let signal = self.reader.next() else {
        if let words = try self.patience.look(at: self.clock.now) { self.progress.leave(words) }
        let begunAt = self.clock.now
        _ = await wakes.next()
        try Task.checkCancellation()
        // Comparisons of other parts can keep this process from reading answers.
        if self.clock.now - begunAt > Self.lateTick { self.patience.progressed() }
        continue
      }
      switch signal {
      case .failed(_, let failure), .notAsked(_, _, let failure, _): throw failure
      case .retrying(_, let failure, let delay):
        self.patience.excuse(delay)
        self.progress.leave("\(failure.description); retrying in \(Phrase.duration(delay))")
      case .waiting: break
      case .underWay(_, let job, let count): self.patience.note(job: job, count)
      default:
        self.patience.progressed()
        return signal
      }
    }
  }
}
