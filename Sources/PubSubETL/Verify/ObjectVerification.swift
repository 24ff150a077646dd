internal import Clocks
internal import EventLoop
import Pipeline
import RESTSource
import SalesforceREST

/// Reads an object's records from the org and has a sink's copy compared with them.
///
/// First all records, with their values or with the time of their last change alone; then, if asked
/// for, the values of a sample; then what differed, twice: before each reading it waits until every
/// reader sees what was committed before. Only a difference in all readings is drift, so a change
/// in transit does not count.
struct ObjectVerification {
  enum Depth: Equatable {
    /// Which records there are, and when they were changed last.
    case records
    /// Besides, the values of this many records.
    case sample(Int)
    /// All values of all records.
    case full
  }

  let entity: String
  let depth: Depth
  /// The pipeline's stages.
  let stages: StageChain
  let verification: any CopyVerification
  let visibilityWait: Duration
  private let reader: SnapshotReader
  private let wakes: AsyncStream<Void>
  /// Takes a line for standard error.
  private let remark: (String) -> Void

  /// Readings of what differs.
  private static let rounds = 2
  /// The one field by which changes are found without reading values.
  private static let changeField = "LastModifiedDate"
  /// Indexes in `reader.objects`.
  private static let (values, listing) = (0, 1)

  init(
    _ object: ReadObject, _ depth: Depth, stages: StageChain, _ verification: any CopyVerification,
    client: RESTClient, reserve: Int, visibilityWait: Duration, remark: @escaping (String) -> Void
  ) {
    self.entity = object.entity
    self.depth = depth
    self.stages = stages
    self.verification = verification
    self.visibilityWait = visibilityWait
    self.remark = remark
    var listing = object
    listing.reads = { $0.name == Self.changeField }
    var options = SnapshotReader.Options()
    options.reserve = Double(reserve) / 100
    // Somebody has asked for it: only what must remain for others is a limit.
    options.maxRepairCalls = .max
    let (wakes, continuation) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    self.wakes = wakes
    self.reader = SnapshotReader([object, listing], client: client, options: options) {
      continuation.yield()
    }
  }

  /// - Throws: what the org or the sink refuses.
  func run() async throws {
    let reads = Task(operation: self.reader.background)
    do {
      try await self.readAll()
      if case .sample(let count) = self.depth { try await self.readSample(count) }
      for round in 1...Self.rounds { try await self.readCandidates(round) }
    } catch {
      reads.cancel()
      await reads.value
      throw error
    }
    reads.cancel()
    await reads.value
  }

  // MARK: Readings

  private func readAll() async throws {
    let index = self.depth == .full ? Self.values : Self.listing
    self.reader.begin(object: index, ReadPass(entity: self.entity, number: 1))
    var requestedAt: ContinuousClock.Instant?
    while true {
      switch try await self.next() {
      case .records(_, let batch, let pass):
        try self.note(pass, &requestedAt)
        try self.stages.apply(to: batch)
        try self.verification.take(batch)
        self.reader.recycle(batch)
      case .progress(_, let pass):
        try self.note(pass, &requestedAt)
        guard pass.state == .complete else { continue }
        return try self.verification.finishPass()
      case .unreadable(_, _, let record):
        try self.verification.noteUnreadable(record.recordID)
      case .found, .notAsked, .retrying, .waiting, .failed: continue
      }
    }
  }

  /// A new request returns all records again.
  private func note(_ pass: ReadPass, _ requestedAt: inout ContinuousClock.Instant?) throws {
    if let former = requestedAt, let current = pass.requestedAt, former != current {
      try self.verification.startOver()
    }
    requestedAt = pass.requestedAt ?? requestedAt
  }

  private func readSample(_ count: Int) async throws {
    var rest = try self.verification.sample(count)[...]
    while !rest.isEmpty {
      let ids = Array(rest.prefix(RESTClient.maxRetrievedRecords))
      rest = rest.dropFirst(ids.count)
      let (batch, _) = try await self.read(ids) {
        try self.verification.noteUnreadable($0.recordID)
      }
      try self.verification.takeSample(batch)
    }
  }

  private func readCandidates(_ round: Int) async throws {
    var last = ""
    while true {
      let ids = try self.verification.candidates(
        inRound: round, after: last, limit: RESTClient.maxRetrievedRecords)
      guard let end = ids.last else { return }
      if last.isEmpty { try await ProcessClock.sleep(for: self.visibilityWait) }
      last = end
      // Unreadable records are neither in the batch nor missing.
      let (batch, missing) = try await self.read(ids) { _ in }
      try self.verification.takeAgain(batch, asked: ids, missing: missing, round: round)
    }
  }

  /// Records by ID, behind the stages of the pipeline.
  private func read(
    _ ids: [String], onUnreadable: (UnreadableRecord) throws -> Void
  ) async throws -> (batch: RecordBatch, missing: [String]) {
    self.reader.read(object: Self.values, ids: ids, store: 0)
    while true {
      switch try await self.next() {
      case .found(_, _, let batch, let missing, _):
        try self.stages.apply(to: batch)
        return (batch, missing)
      case .unreadable(_, _, let record): try onUnreadable(record)
      case .records, .progress, .notAsked, .retrying, .waiting, .failed: continue
      }
    }
  }

  /// What the reader tells next; throws what ends a reading.
  private func next() async throws -> ReadSignal {
    var wakes = self.wakes.makeAsyncIterator()
    while true {
      guard let signal = self.reader.next() else {
        _ = await wakes.next()
        try Task.checkCancellation()
        continue
      }
      switch signal {
      case .failed(_, let failure), .notAsked(_, _, let failure, _): throw failure
      case .retrying(_, let failure, let delay):
        self.remark("\(failure.description); retrying in \(Phrase.duration(delay))")
      case .waiting(_, let what): self.remark(what)
      default: return signal
      }
    }
  }
}
