/// What the REST API of the org answers: describe, SOQL, composite retrieve, limits, Bulk jobs
/// (RESTAndBulk.md).
///
/// Confined to one thread at a time by its owner.
package final class DataAPI {
  package static let version = "66.0"

  package let store: RecordStore
  package let jobs: QueryJobs
  package private(set) var callCount = 0
  private let callLimit: Int
  private var faults: [(fault: RESTFault, trigger: FaultTrigger)] = []
  private var cursors: [String: Cursor] = [:]
  private var createdCursors: UInt64 = 0
  /// The outcome of the next job.
  package var nextJobFault: RESTFault.JobFault?
  /// User permissions that the user has.
  package var userPermissions: Set<String> = ["ApiEnabled"]

  /// The rest of a query's result.
  private struct Cursor {
    var query: SOQLQuery
    var matches: [Int]
    var pageSize: Int
    var expiresAt: Int64
  }

  private static let cursorLifetime: Int64 = 2 * 86_400_000

  /// - Parameter callLimit: in 24 hours.
  init(store: RecordStore, jobs: QueryJobs, callLimit: Int) {
    self.store = store
    self.jobs = jobs
    self.callLimit = callLimit
  }

  // MARK: Calls

  /// Counts a call against the allowance.
  package func begin(at now: Int64) throws {
    self.store.advance(to: now)
    try self.jobs.advance(to: now)
    self.callCount += 1
    guard self.callCount <= self.callLimit else {
      throw APIRefusal("REQUEST_LIMIT_EXCEEDED", "TotalRequests Limit exceeded.", status: 403)
    }
  }

  /// `Sforce-Limit-Info`
  package var usage: String { "api-usage=\(min(self.callCount, self.callLimit))/\(self.callLimit)" }

  package func add(_ fault: RESTFault) {
    if fault.times > 0 { self.faults.append((fault, FaultTrigger(fault.moment))) }
  }

  package func removeFaults() { self.faults.removeAll() }

  /// Returns the first fault for such a call and counts one use.
  package func takeFault(_ call: RESTFault.Call, at now: Int64) -> RESTFault.Action? {
    var hit: Int?
    // Every fault is checked, because each counts the calls that it could hit.
    for index in self.faults.indices where self.faults[index].fault.call == call {
      if self.faults[index].trigger.fires(at: now), hit == nil { hit = index }
    }
    guard let index = hit else { return nil }
    let action = self.faults[index].fault.action
    self.faults[index].fault.times -= 1
    if self.faults[index].fault.times == 0 { self.faults.remove(at: index) }
    return action
  }

  package func createJob(_ request: QueryJob.Request, at now: Int64) throws(APIRefusal) -> QueryJob
  {
    defer { self.nextJobFault = nil }
    return try self.jobs.create(request, fault: self.nextJobFault, at: now)
  }

  // MARK: Queries

  /// - Parameter batchSize: rows per page, as the client wishes.
  package func query(
    _ text: String, withDeleted: Bool, batchSize: Int?, at now: Int64
  ) throws(APIRefusal) -> [UInt8] {
    if let answer = try Self.permissionAccess(text, permissions: self.userPermissions) {
      return answer
    }
    let query = try self.store.query(text)
    let matches = self.store.matches(query, withDeleted: withDeleted)
    if query.countsOnly {
      return Array("{\"totalSize\":\(matches.count),\"done\":true,\"records\":[]}".utf8)
    }
    if query.isAggregate {
      return Array(
        ("{\"totalSize\":1,\"done\":true,\"records\":["
          + self.store.aggregateJSON(query, matches) + "]}").utf8)
    }
    // Wide rows come in small pages.
    let most = query.fields.count { $0.isLong } >= 2 ? 200 : 2000
    let cursor = Cursor(
      query: query, matches: matches, pageSize: min(most, max(200, batchSize ?? 2000)),
      expiresAt: now + Self.cursorLifetime)
    self.createdCursors += 1
    let id = String(
      decoding: RecordID.bytes(prefix: "01g", number: self.createdCursors), as: UTF8.self)
    return self.page(of: cursor, id: id, from: 0)
  }

  package func queryMore(_ locator: String, at now: Int64) throws(APIRefusal) -> [UInt8] {
    let parts = locator.split(separator: "-", maxSplits: 1)
    guard parts.count == 2, let cursor = self.cursors[String(parts[0])], let start = Int(parts[1]),
      cursor.expiresAt > now, (1..<cursor.matches.count).contains(start)
    else { throw APIRefusal("INVALID_QUERY_LOCATOR", "invalid query locator") }
    return self.page(of: cursor, id: String(parts[0]), from: start)
  }

  private func page(of cursor: Cursor, id: String, from start: Int) -> [UInt8] {
    let end = min(cursor.matches.count, start + cursor.pageSize)
    let isDone = end == cursor.matches.count
    if !isDone { self.cursors[id] = cursor }
    var bytes = Array("{\"totalSize\":\(cursor.matches.count),\"done\":\(isDone),".utf8)
    if !isDone {
      bytes +=
        "\"nextRecordsUrl\":\"/services/data/v\(Self.version)/query/\(id)-\(end)\",".utf8
    }
    bytes += "\"records\":[".utf8
    for place in start..<end {
      if place > start { bytes.append(UInt8(ascii: ",")) }
      self.store.appendJSON(
        cursor.query.object, cursor.matches[place], fields: cursor.query.fields,
        version: Self.version, to: &bytes)
    }
    bytes += "]}".utf8
    return bytes
  }

  /// `POST /composite/sobjects/X`: records in the order of the IDs, null for those that are not found.
  package func retrieve(
    _ name: String, ids: [String], fields names: [String]
  ) throws(APIRefusal) -> [UInt8] {
    let object = try self.object(name)
    guard ids.count <= 2000 else {
      throw APIRefusal(
        "EXCEEDED_ID_LIMIT",
        "record limit reached. cannot submit more than 2000 records in this call")
    }
    try self.store.checkWidth(names.count)
    var fields: [OrgField] = []
    for name in names {
      let description = self.store.objects[object]
      guard let index = description.index(of: name) else {
        throw .unknownField(name, of: description.name)
      }
      fields.append(description.fields[index])
    }
    var bytes = Array("[".utf8)
    for (place, id) in ids.enumerated() {
      if place > 0 { bytes.append(UInt8(ascii: ",")) }
      guard id.utf8.count == 18 || id.utf8.count == 15 else {
        throw APIRefusal("MALFORMED_ID", "malformed id \(id.prefix(20))")
      }
      guard let index = self.store.index(object, of: Array(id.utf8)),
        self.store.isVisible(object, index, withDeleted: false)
      else {
        bytes += "null".utf8
        continue
      }
      self.store.appendJSON(object, index, fields: fields, version: Self.version, to: &bytes)
    }
    bytes.append(UInt8(ascii: "]"))
    return bytes
  }

  package func object(_ name: String) throws(APIRefusal) -> Int {
    guard let object = self.store.object(named: name) else {
      throw APIRefusal("NOT_FOUND", "The requested resource does not exist", status: 404)
    }
    return object
  }

  /// Members of `GET /limits`.
  var limits: String {
    let jobs = BulkLimits.jobs
    return "\"DailyApiRequests\":{\"Max\":\(self.callLimit),\"Remaining\":"
      + "\(max(0, self.callLimit - self.callCount)),\"Data Loader\":{\"Max\":0,\"Remaining\":0}},"
      + "\"DailyBulkV2QueryJobs\":{\"Max\":\(jobs),\"Remaining\":\(jobs - self.jobs.createdCount)},"
      + "\"DailyBulkV2QueryFileStorageMB\":{\"Max\":976562,\"Remaining\":976562},"
      + "\"MonthlyPlatformEventsUsageEntitlement\":{\"Max\":0,\"Remaining\":-3}"
  }

  private enum BulkLimits { static let jobs = 10_000 }

  /// `GET /limits/recordCount`
  package func recordCounts(_ names: [String]) -> String {
    let counts = names.compactMap { name -> String? in
      guard let object = self.store.object(named: name) else { return nil }
      let count = (0..<self.store.recordCount(object)).count {
        !self.store.record(object, $0).isDeleted
      }
      return "{\"count\":\(count),\"name\":\"\(self.store.objects[object].name)\"}"
    }
    return "{\"sObjects\":[\(counts.joined(separator: ","))]}"
  }
}
