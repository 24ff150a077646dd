internal import Bytes
internal import Clocks
internal import EventLoop
internal import Pipeline
internal import SalesforceREST

/// Reads the records of one object, from the current place of a pass to its end.
struct ObjectRead: Sendable {
  let object: Int
  let entity: String
  let layout: RecordLayout
  private let condition: String?
  /// Limits passes over all fields.
  let scope: String?
  let isSubset: Bool
  /// The records are read again and again, mostly by a page or two.
  private let isRepeated: Bool
  /// Set if only fields that change without events are read.
  let refresh: Refresh?
  /// Known from before; nil to ask.
  private let described: ObjectDescription?
  let reads: (@Sendable (Column) -> Bool)?
  /// Rows have only the fields of columns that stored rows lack.
  let isFilling: Bool
  let client: RESTClient
  let options: SnapshotReader.Options
  let allowance: RepairAllowance
  private let batches: BatchPool
  private let signals: SignalQueue<SnapshotDelivery>
  private let wake: @Sendable () -> Void

  /// The number of rows requested at a time, which is the most that a run has to fetch again after
  /// being killed.
  private static let pageRows = 50_000
  private static let batchRows = 1000
  /// The memory of a batch's rows; several batches are in flight.
  private static let batchBytes = 1 << 20
  /// The number of rows from which a job takes fewer calls than pages of 2000 rows.
  private static let minJobRows = 50_000
  /// The number of jobs that a run may lose, whose records have to be read again.
  private static let maxLostJobs = 5
  /// The pause after too many failures, in a run that follows.
  private static let longDelay = Duration.seconds(3600)

  init(
    object: Int, _ read: ReadObject, client: RESTClient, options: SnapshotReader.Options,
    described: ObjectDescription?, allowance: RepairAllowance, batches: BatchPool,
    signals: SignalQueue<SnapshotDelivery>,
    wake: @escaping @Sendable () -> Void
  ) {
    self.object = object
    self.entity = read.entity
    self.layout = read.layout
    self.condition = read.condition
    // Rows of records outside the scope also need the values of new and refreshed columns.
    let readsSomeFields = read.filling != nil || read.refresh.map { !$0.readsRecords } ?? false
    self.scope = readsSomeFields ? nil : read.scope
    self.isSubset = read.isSubset
    self.isRepeated = read.poll != nil || read.refresh != nil
    self.refresh = read.refresh
    self.described = described
    self.isFilling = readsSomeFields
    if let fields = read.filling ?? read.refresh?.fields, self.isFilling {
      self.reads = { Self.fills($0, fields) }
    } else {
      self.reads = read.reads
    }
    self.client = client
    self.options = options
    self.allowance = allowance
    self.batches = batches
    self.signals = signals
    self.wake = wake
  }

  /// Whether a column, or a part of it, is among the fields.
  private static func fills(_ column: Column, _ fields: Set<String>) -> Bool {
    let name = column.path.joined(separator: ".")
    return fields.contains(name) || fields.contains { $0.hasPrefix("\(name).") }
  }

  /// The state between attempts.
  private struct Progress {
    var pass: ReadPass
    var retries: Retries
    var lostJobs = 0
    var usesPages = false
    var refusesBulk = false
    /// Set once the description that was known has proved wrong.
    var asksAgain = false
    /// The number of requests for the fields of a record, which is then read by its ID; 0 if
    /// records come with all their fields.
    var pieces = 0
    /// The locators of the current job; none may come twice.
    var locators: Set<String> = []
    /// The number of rows at the time of the last failure.
    var rowCount = 0
  }

  /// - Parameter onOutdated: receives the object if its known description proves wrong.
  func run(_ pass: ReadPass, onOutdated: (String) -> Void = { _ in }) async {
    var progress = Progress(pass: pass, retries: Retries(self.options.retry))
    progress.usesPages = Self.isPages(pass.job) || self.isRepeated && pass.job == nil
    progress.pieces = Self.isByID(pass.job) ? 1 : 0
    progress.rowCount = pass.rowCount
    while !Task.isCancelled {
      do {
        try await self.read(&progress)
        progress.pass.state = .complete
        return await self.send(.progress(object: self.object, progress.pass), weight: 0)
      } catch is CancellationError {
        return
      } catch {
        let failure = error as? RESTError ?? RESTError(.stop, "\(error)")
        let now = self.client.clock.now
        if failure.disposition == .describe, self.described != nil { onOutdated(self.entity) }
        guard let delay = Self.answer(to: failure, &progress, at: now) else {
          var reason = SourceFailure(failure, entity: self.entity)
          if failure.disposition == .retry {
            reason.description += progress.retries.verdict(at: now)
          }
          return await self.send(.failed(object: self.object, reason), weight: 0)
        }
        if delay > .zero {
          let reason = SourceFailure(failure, entity: self.entity)
          await self.send(.retrying(object: self.object, reason, delay: delay), weight: 0)
          try? await self.client.clock.sleep(for: delay)
        }
      }
    }
  }

  /// - Returns: the delay after which the pass continues; nil if it cannot.
  private static func answer(
    to failure: RESTError, _ progress: inout Progress, at now: ContinuousClock.Instant
  ) -> Duration? {
    if progress.pass.rowCount > progress.rowCount {
      progress.retries.succeeded()
      progress.rowCount = progress.pass.rowCount
    }
    switch failure.disposition {
    case .retry: break
    case .gone, .split, .describe:
      if failure.disposition == .describe { progress.asksAgain = true }
      progress.pass.forgetJob()
      progress.lostJobs += 1
      if progress.lostJobs >= Self.maxLostJobs {
        return progress.retries.schedule.giveUpAfter == nil ? Self.longDelay : nil
      }
    case .unsupportedByBulk:
      guard !progress.usesPages else { return nil }
      progress.usesPages = true
      progress.refusesBulk = true
      progress.pass.forgetJob()
      return .zero
    case .tooWide:
      guard progress.pieces < Self.maxPieces else { return nil }
      if progress.pieces == 0 { progress.pass.forgetJob() }
      progress.usesPages = true
      progress.pieces = max(1, progress.pieces * 2)
      return .zero
    case .quota, .login, .stop, .configuration, .bug: return nil
    }
    // Repeatedly lost jobs, even with records in between, are not retried quickly.
    let minimum = progress.lostJobs > 1 ? Duration.seconds(1 << (progress.lostJobs - 1)) : .zero
    return progress.retries.failed(at: now, minimum: minimum, random: .random(in: 0..<1))
  }

  func send(_ signal: ReadSignal, weight: Int) async {
    let delivery = SnapshotDelivery(signal: signal)
    self.signals.post(delivery, weight: weight)
    self.wake()
    await self.signals.waitForRoom()
  }

  func send(_ unreadable: [UnreadableRecord], store: Int?) async {
    for record in unreadable {
      await self.send(.unreadable(object: self.object, store: store, record), weight: 0)
    }
  }

  // MARK: A pass

  private func read(_ progress: inout Progress) async throws {
    let known = progress.asksAgain ? nil : self.described
    let object =
      if let known { known } else { try await self.client.describe(self.entity) }
    let plan = SnapshotPlan(
      self.layout, object, isRead: self.columns(of: object),
      findsDeleted: progress.pass.isOfChanges)
    if let refresh {
      progress.pass.fields = plan.readFields(of: self.layout, refresh, object)
      if progress.pass.fields?.isEmpty == true { return progress.pass.forgetJob() }
    }
    let condition = try await self.condition(of: progress.pass, stamp: plan.stampName)
    let marks = plan.deletedField == nil ? [] : ["IsDeleted"]
    let statement = SOQL.select(
      progress.pieces == 0 ? plan.fields : Array(plan.fields.prefix(2)) + marks,
      from: self.entity, where: condition)
    if progress.usesPages {
      let mostRows =
        self.isRepeated && progress.pieces == 0 && !progress.refusesBulk ? Self.minJobRows : nil
      let isRead = try await self.readPages(
        plan, statement, &progress.pass, &progress.locators, pieces: progress.pieces,
        mostRows: mostRows)
      if isRead { return }
      progress.usesPages = false
    }
    try await self.readJob(plan, statement, condition, &progress.pass, &progress.locators)
  }

  /// Whether a column is read; nil for all.
  private func columns(of object: ObjectDescription) -> (@Sendable (Column) -> Bool)? {
    guard self.isFilling, self.reads == nil else { return self.reads }
    let calculated = object.calculatedFields
    return { calculated.contains($0.name) }
  }

  /// The condition of a pass, in parentheses; nil for all records.
  ///
  /// - Parameter stamp: the field that says when a record was last changed.
  private func condition(of pass: ReadPass, stamp: String) async throws -> String? {
    if let condition, let scope, self.isSubset { return "((\(condition)) AND (\(scope)))" }
    if let condition = self.condition ?? self.scope { return "(\(condition))" }
    guard pass.isOfChanges else { return nil }
    guard let since = pass.since else {
      preconditionFailure("\(self.entity): a pass over changes without their start")
    }
    // Stamps are those of the org's clock.
    if self.client.serviceTime() == nil, self.options.serviceClock == nil {
      _ = try? await self.client.limits()
    }
    let now = self.client.clock.now
    let time =
      self.client.serviceTime(at: now) ?? self.options.serviceClock?.time(at: now)
      ?? self.client.clock.wallTime
    let start = time - Int64((now - since + PollSchedule.overlap) / .milliseconds(1))
    return "(\(stamp) >= \(UTCTime.timestamp(milliseconds: start)))"
  }

  private func readJob(
    _ plan: SnapshotPlan, _ statement: String, _ condition: String?, _ pass: inout ReadPass,
    _ locators: inout Set<String>
  ) async throws {
    if pass.job == nil {
      locators.removeAll()
      let now = self.client.clock.now
      let job = try await self.client.createJob(statement, withDeleted: plan.deletedField != nil)
      pass.job = job.id
      pass.state = .reading
      pass.requestedAt = now
      await self.send(.progress(object: self.object, pass), weight: 0)
    }
    guard let id = pass.job, SOQL.isRecordID(id) else {
      throw RESTError(.gone, "\(self.entity): the stored Bulk job is not valid")
    }
    let job = try await self.ended(id)
    if pass.total == nil { pass.total = pass.rowCount + job.recordCount }
    // A job without rows may have no page at all.
    guard pass.rowCount < pass.total ?? 0 || pass.locator != nil else {
      try self.check(pass, isAtEnd: true)
      return try await self.checkEmpty(job, condition)
    }
    repeat {
      try Task.checkCancellation()
      try await self.readPage(plan, id, &pass, &locators)
    } while pass.locator != nil
    try self.check(pass, isAtEnd: true)
  }

  /// The pages are complete when they add up to the number of rows that the job has
  /// (RESTAndBulk.md#bulk-queries).
  private func check(_ pass: ReadPass, isAtEnd: Bool) throws(RESTError) {
    guard let total = pass.total, pass.rowCount > total || isAtEnd && pass.rowCount < total else {
      return
    }
    throw RESTError(
      .gone,
      "\(self.entity): \(pass.rowCount) records arrived, but the total is \(total); "
        + "all records are requested again")
  }

  /// An empty job is accepted if counting finds no records or fails.
  private func checkEmpty(_ job: BulkJob, _ condition: String?) async throws {
    guard job.recordCount == 0,
      let count = try? await self.client.count(self.entity, where: condition), count > 0
    else { return }
    throw RESTError(
      .gone,
      "\(self.entity): job \(job.id) has no records, but the org counts \(count); all records are "
        + "requested again")
  }

  /// - Parameters:
  ///   - next: the locator of the page after the page of `count` rows at `current`.
  ///   - locators: those of earlier pages.
  private func checkNext(
    _ next: String?, after current: String?, count: Int, _ locators: inout Set<String>
  ) throws(RESTError) {
    if let current { locators.insert(current) }
    guard let next, locators.contains(next) || count == 0 else { return }
    throw RESTError(
      .gone,
      "\(self.entity): a page \(count == 0 ? "without records" : "that leads back to an earlier one") "
        + "has a page after it; all records are requested again")
  }

  /// Waits until the job is complete.
  private func ended(_ id: String) async throws -> BulkJob {
    var delay = Duration.milliseconds(500)
    var wait = JobWait(self.options, at: self.client.clock.now)
    while true {
      let job = try await self.client.job(id)
      switch job.state {
      case .complete: return job
      case .failed(let message):
        throw RESTError(
          message?.contains("QUERY_TOO_COMPLICATED") == true ? .tooWide : .gone,
          "\(self.entity): job \(id) has failed: \(message ?? "no reason given")")
      case .aborted: throw RESTError(.gone, "\(self.entity): job \(id) was aborted")
      case .underWay:
        await self.send(
          .underWay(object: self.object, job: id, recordCount: job.recordCount), weight: 0)
      }
      switch wait.saw(job, at: self.client.clock.now) {
      case .wait: break
      case .report(let time):
        await self.send(
          .waiting(
            object: self.object,
            "snapshot of \(self.entity): waiting for Bulk job \(id), which is "
              + "\(job.isQueued ? "queued" : "in progress") and has \(job.recordCount) records, "
              + "for \(time.components.seconds / 60) min"), weight: 0)
      case .giveUp(let time):
        // Best effort: the org ends its jobs after seven days anyway.
        _ = try? await self.client.abortJob(id)
        throw RESTError(
          .gone,
          "\(self.entity): job \(id) is \(job.isQueued ? "queued" : "in progress") and has made no "
            + "progress for \(time.components.seconds / 60) min; look at it under Bulk Data Load Jobs "
            + "in Setup")
      }
      try await self.client.clock.sleep(for: delay)
      delay = min(delay * 2, .seconds(30))
    }
  }

  /// Reads the page at the pass's locator, from the pass's row on, and moves the pass to the next.
  private func readPage(
    _ plan: SnapshotPlan, _ job: String, _ pass: inout ReadPass, _ locators: inout Set<String>
  ) async throws {
    let page = try await self.client.results(
      ofJob: job, locator: pass.locator, maxRecords: Self.pageRows)
    let rows = BulkRows(page, fields: plan.fields)
    var batch = ReadBatch(self, plan, pass)
    var place = 0
    while try await rows.next({ row in
      place += 1
      if place > pass.row { batch.add(row) }
    }) {
      guard batch.rowCount >= Self.batchRows || batch.byteCount >= Self.batchBytes else { continue }
      await self.send(&batch, place, &pass)
      try self.check(pass, isAtEnd: false)
    }
    if batch.rowCount > 0 { await self.send(&batch, place, &pass) }
    try self.check(pass, isAtEnd: false)
    try self.checkNext(page.nextLocator, after: pass.locator, count: place, &locators)
    pass.row = 0
    pass.locator = page.nextLocator
    if pass.locator != nil { await self.send(.progress(object: self.object, pass), weight: 0) }
  }

  func send(_ batch: inout ReadBatch, _ place: Int, _ pass: inout ReadPass) async {
    pass.rowCount += place - pass.row
    pass.row = place
    await self.send(batch.unreadable, store: nil)
    await self.send(.records(object: self.object, batch.take(), pass), weight: 1)
  }

  // MARK: By pages

  /// A substitute for a job ID, new for each request, so that stores can identify the rows of a
  /// request.
  private static func makePagesJob(isByID: Bool) -> String {
    (isByID ? "ids:" : "pages:") + String(UInt64.random(in: .min ... .max), radix: 16)
  }

  /// Earlier versions wrote only `pages`.
  private static func isPages(_ job: String?) -> Bool {
    job?.hasPrefix("pages") == true || Self.isByID(job)
  }

  private static func isByID(_ job: String?) -> Bool { job?.hasPrefix("ids:") == true }

  /// - Parameter mostRows: the number of rows above which nothing is read; nil for any number.
  /// - Returns: false if nothing was read.
  private func readPages(
    _ plan: SnapshotPlan, _ statement: String, _ pass: inout ReadPass,
    _ locators: inout Set<String>, pieces: Int, mostRows: Int?
  ) async throws -> Bool {
    var page: QueryPage
    if Self.isPages(pass.job), let locator = pass.locator {
      page = try await self.client.nextPage(locator)
    } else {
      pass.forgetJob()
      locators.removeAll()
      let now = self.client.clock.now
      page = try await self.client.query(statement, withDeleted: plan.deletedField != nil)
      if let mostRows, page.totalSize > mostRows { return false }
      pass.job = Self.makePagesJob(isByID: pieces > 0)
      pass.state = .reading
      pass.requestedAt = now
      pass.total = pass.rowCount + page.totalSize
      await self.send(.progress(object: self.object, pass), weight: 0)
    }
    while true {
      try Task.checkCancellation()
      var batch = ReadBatch(self, plan, pass)
      if pieces > 0 {
        try await self.read(page, plan, &batch, &pass, pieces: pieces)
      } else if !page.records.isEmpty {
        for record in page.records.dropFirst(pass.row) { batch.add(record) }
        await self.send(&batch, page.records.count, &pass)
      }
      try self.check(pass, isAtEnd: false)
      try self.checkNext(
        page.next, after: pass.locator, count: page.records.count, &locators)
      pass.row = 0
      pass.locator = page.next
      guard let next = page.next else { return true }
      page = try await self.client.nextPage(next)
    }
  }

  func makeBatch() -> RecordBatch { self.batches.take(self.layout) }
}

extension SourceFailure {
  init(_ error: RESTError, entity: String) {
    let disposition: Disposition =
      switch error.disposition {
      case .retry, .split, .gone: .unavailable
      case .quota: .quota
      case .login, .stop, .describe, .unsupportedByBulk, .tooWide: .refused
      case .configuration: .configuration
      case .bug: .bug
      }
    self.init(
      disposition, reason: "snapshot_\(error.disposition.rawValue)",
      "snapshot of \(entity): \(error.message)")
  }
}
