/// A Bulk API 2.0 query job (RESTAndBulk.md#bulk-queries).
package struct QueryJob {
  package enum State: String, Sendable {
    case uploadComplete = "UploadComplete"
    case inProgress = "InProgress"
    case jobComplete = "JobComplete"
    case failed = "Failed"
    case aborted = "Aborted"

    var isFinal: Bool { self != .uploadComplete && self != .inProgress }
  }

  package struct Request: Sendable {
    package var statement: String
    package var withDeleted: Bool
    package var delimiter: UInt8
    package var isWindows: Bool
    package var version: String

    package init(
      statement: String, withDeleted: Bool, delimiter: UInt8, isWindows: Bool, version: String
    ) {
      self.statement = statement
      self.withDeleted = withDeleted
      self.delimiter = delimiter
      self.isWindows = isWindows
      self.version = version
    }

    var lineEnd: [UInt8] { self.isWindows ? [13, 10] : [10] }
  }

  /// A row in the result file.
  struct Row {
    var offset: UInt64
    var count: Int
  }

  package let id: String
  package let request: Request
  let query: SOQLQuery
  let createdAt: Int64
  package var state = State.uploadComplete
  package var errorMessage: String?
  /// Records that are still to be written, last first.
  var remaining: [Int] = []
  var rows: [Row] = []
  var finishedAt: Int64?
  /// What goes wrong with it.
  var fault: RESTFault.JobFault?
  var pagesGiven = 0

  package var rowCount: Int { self.rows.count }
  /// `2018-12-10T17:50:19.000+0000`
  package var createdDate: String {
    "\(CivilDate.text(self.createdAt))T\(CivilDate.clock(self.createdAt))+0000"
  }
}

/// The jobs of the org. They write their rows while the org keeps changing: each row is as its record
/// was at that moment.
package final class QueryJobs {
  private let store: RecordStore
  private let results: EventStore
  private var jobs: [String: QueryJob] = [:]
  private var created: UInt64 = 0
  private var random: RandomStream
  private let queueTime: Int64
  private let rowsPerSecond: Double
  private var line: [UInt8] = []
  private var lastAdvance: Int64 = 0
  package private(set) var createdCount = 0

  /// The length of the runs in which records are read, in any order.
  private static let chunk = 2500
  private static let retention: Int64 = 7 * 86_400_000

  /// - Parameter queueTime: milliseconds for which a job waits.
  init(
    store: RecordStore, directory: String, seed: UInt64, queueTime: Int64, rowsPerSecond: Double
  ) throws {
    self.store = store
    self.results = try EventStore(directory: directory)
    self.random = RandomStream(seed: RandomStream.mix(seed &+ 5))
    self.queueTime = queueTime
    self.rowsPerSecond = rowsPerSecond
  }

  package var all: [QueryJob] { self.jobs.values.sorted { $0.id < $1.id } }

  package func objectName(_ job: QueryJob) -> String { self.store.objects[job.query.object].name }

  package func create(
    _ request: QueryJob.Request, fault: RESTFault.JobFault?, at now: Int64
  ) throws(APIRefusal) -> QueryJob {
    let query = try self.store.query(request.statement)
    guard !query.countsOnly, !query.isAggregate else {
      throw APIRefusal("API_ERROR", "Aggregate queries are not supported by Bulk API 2.0")
    }
    guard query.offset == 0 else { throw APIRefusal("API_ERROR", "OFFSET is not supported") }
    if let field = query.fields.first(where: \.type.isCompound) {
      throw APIRefusal(
        "FUNCTIONALITY_NOT_ENABLED",
        "Selecting compound data not supported in Bulk Query: \(field.name)")
    }
    self.created += 1
    self.createdCount += 1
    let id = String(
      decoding: RecordID.bytes(prefix: "750", number: 500_000 + self.created), as: UTF8.self)
    var job = QueryJob(id: id, request: request, query: query, createdAt: now)
    job.fault = fault
    self.jobs[id] = job
    return job
  }

  package func job(_ id: String, at now: Int64) throws(APIRefusal) -> QueryJob {
    if let finishedAt = self.jobs[id]?.finishedAt, now - finishedAt > Self.retention {
      self.jobs[id] = nil
    }
    guard let job = self.jobs[id] else {
      throw APIRefusal("NOT_FOUND", "The requested resource does not exist", status: 404)
    }
    return job
  }

  package func abort(_ id: String, at now: Int64) throws(APIRefusal) -> QueryJob {
    let job = try self.job(id, at: now)
    guard !job.state.isFinal else {
      throw APIRefusal("INVALIDJOBSTATE", "Aborting already Completed Job not allowed")
    }
    self.finish(id, as: .aborted, at: now)
    return try self.job(id, at: now)
  }

  package func delete(_ id: String, at now: Int64) throws(APIRefusal) {
    guard try self.job(id, at: now).state.isFinal else {
      throw APIRefusal(
        "API_ERROR", "Error encountered when deleting the job because the job is not terminated")
    }
    self.jobs[id] = nil
  }

  private func finish(_ id: String, as state: QueryJob.State, at now: Int64) {
    self.jobs[id]?.state = state
    self.jobs[id]?.finishedAt = now
    self.jobs[id]?.remaining = []
  }

  // MARK: Work

  /// Takes the jobs as far as they have come by now.
  package func advance(to now: Int64) throws {
    let passed = self.lastAdvance == 0 ? 0 : max(0, now - self.lastAdvance)
    self.lastAdvance = now
    for id in self.jobs.keys.sorted() {
      guard let job = self.jobs[id], !job.state.isFinal else { continue }
      if job.state == .uploadComplete {
        guard now - job.createdAt >= self.queueTime else { continue }
        self.begin(id)
      }
      try self.work(id, rows: Int(Double(passed) / 1000 * self.rowsPerSecond) + 1, at: now)
    }
  }

  private func begin(_ id: String) {
    guard let job = self.jobs[id] else { return }
    let matches = self.store.matches(job.query, withDeleted: job.request.withDeleted)
    var remaining = matches
    if job.query.order == nil, job.query.limit == nil {
      var chunks = stride(from: 0, to: matches.count, by: Self.chunk).map {
        matches[$0..<min($0 + Self.chunk, matches.count)]
      }
      for place in chunks.indices.reversed() {
        chunks.swapAt(place, self.random.below(place + 1))
      }
      remaining = chunks.flatMap { $0 }
    }
    self.jobs[id]?.state = .inProgress
    self.jobs[id]?.remaining = remaining.reversed()
  }

  private func work(_ id: String, rows: Int, at now: Int64) throws {
    switch self.jobs[id]?.fault {
    case .stuck: return
    case .failed(let message):
      self.jobs[id]?.errorMessage = message
      return self.finish(id, as: .failed, at: now)
    case .aborted: return self.finish(id, as: .aborted, at: now)
    default: break
    }
    // Taken out, or each row would copy the arrays.
    guard var job = self.jobs.removeValue(forKey: id) else { return }
    defer { self.jobs[id] = job }
    let fields = job.query.fields
    for _ in 0..<rows {
      guard let index = job.remaining.popLast() else { break }
      guard
        self.store.isVisible(job.query.object, index, withDeleted: job.request.withDeleted)
      else { continue }
      self.line.removeAll(keepingCapacity: true)
      self.store.appendCSV(
        job.query.object, index, fields: fields, delimiter: job.request.delimiter,
        lineEnd: job.request.lineEnd, to: &self.line)
      job.rows.append(
        QueryJob.Row(offset: try self.results.append(self.line), count: self.line.count))
    }
    if job.remaining.isEmpty {
      job.state = .jobComplete
      job.finishedAt = now
    }
  }

  // MARK: Results

  package struct Page {
    package var body: [UInt8]
    package var rowCount: Int
    /// Nil after the last page.
    package var locator: String?
  }

  /// One page of a complete job, from the row that the locator names.
  package func page(
    _ id: String, locator: String?, maxRecords: Int?, at now: Int64
  ) throws(APIRefusal) -> Page {
    let job = try self.job(id, at: now)
    guard job.state == .jobComplete else {
      throw APIRefusal("INVALIDJOBSTATE", "The job is not complete: \(job.state.rawValue)")
    }
    if case .vanished(let pages) = job.fault, job.pagesGiven >= pages {
      self.jobs[id] = nil
      throw APIRefusal("NOT_FOUND", "The requested resource does not exist", status: 404)
    }
    var start = 0
    if let locator {
      guard let place = Self.place(locator), place > 0, place < job.rows.count else {
        throw APIRefusal("INVALID_LOCATOR", "Invalid locator '\(locator.prefix(40))'")
      }
      start = place
    }
    let end = min(job.rows.count, start + (maxRecords ?? 100_000))
    var body = RecordStore.csvHeader(
      job.query.fields, delimiter: job.request.delimiter, lineEnd: job.request.lineEnd)
    for row in job.rows[start..<end] {
      body += self.results.bytes(at: row.offset, count: row.count)
    }
    self.jobs[id]?.pagesGiven += 1
    return Page(
      body: body, rowCount: end - start,
      locator: end == job.rows.count ? nil : Self.locator(end))
  }

  /// Opaque to clients; not to be computed by them.
  private static func locator(_ place: Int) -> String {
    String(UInt64(place) ^ 0x5a5a_0000_1234, radix: 36, uppercase: true)
  }

  private static func place(_ locator: String) -> Int? {
    UInt64(locator, radix: 36).flatMap { Int(exactly: $0 ^ 0x5a5a_0000_1234) }
  }
}
