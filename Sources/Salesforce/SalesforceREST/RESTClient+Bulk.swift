internal import Bytes
package import HTTPClient
internal import JSON

/// A query job of Bulk API 2.0 (RESTAndBulk.md#bulk-queries).
package struct BulkJob: Sendable, Equatable {
  package enum State: Sendable, Equatable {
    /// Queued or running.
    case underWay
    case complete
    case failed(message: String?)
    case aborted
  }

  package var id: String
  package var state: State
  /// The number of rows so far; for a complete job, of all rows.
  package var recordCount: Int
  /// The job waits for its turn.
  package var isQueued = false
  /// How often the org has begun the job again.
  package var retries: Int64 = 0

  package init(
    id: String, state: State, recordCount: Int, isQueued: Bool = false, retries: Int64 = 0
  ) {
    (self.id, self.state, self.recordCount) = (id, state, recordCount)
    (self.isQueued, self.retries) = (isQueued, retries)
  }
}

/// Some of a job's rows, as CSV that is still arriving.
package struct BulkPage: Sendable {
  /// The call that the page answers, for messages.
  let name: String
  package var body: HTTPBodyStream
  /// The number of rows without the header; a page with a different number is incomplete.
  package var recordCount: Int
  /// The locator of the next page; nil after the last one.
  package var nextLocator: String?
}

extension RESTClient {
  /// The length of a SOQL statement.
  private static let maxStatementBytes = 100_000

  /// Starts a query. Repeated only if certainly no job was created, because each job counts against
  /// a limit.
  package func createJob(_ statement: String, withDeleted: Bool = false) async throws -> BulkJob {
    guard statement.utf8.count <= Self.maxStatementBytes else {
      throw RESTError(
        .tooWide, "POST jobs/query: the statement has more than \(Self.maxStatementBytes) bytes")
    }
    let body = JSONValue(
      .object([
        JSONMember("operation", .string(withDeleted ? "queryAll" : "query")),
        JSONMember("query", .string(statement)),
        JSONMember("contentType", "CSV"), JSONMember("columnDelimiter", "COMMA"),
        JSONMember("lineEnding", "LF"),
      ]))
    return try await self.job(
      Call(
        method: .post, path: "jobs/query", body: Array(body.text().utf8), kind: .creationOfJobs))
  }

  package func job(_ id: String) async throws -> BulkJob {
    try await self.job(Call(path: Self.path(id), kind: .ofJobsAndPages))
  }

  /// Aborts a job in progress.
  package func abortJob(_ id: String) async throws -> BulkJob {
    try await self.job(
      Call(
        method: .patch, path: Self.path(id), body: Array(#"{"state":"Aborted"}"#.utf8),
        kind: .ofJobsAndPages))
  }

  /// One page of a complete job.
  ///
  /// - Parameters:
  ///   - locator: from the previous page; nil for the first page. The same page can be requested
  ///     again.
  ///   - maxRecords: the maximum number of rows.
  package func results(
    ofJob id: String, locator: String?, maxRecords: Int
  ) async throws -> BulkPage {
    var path = "\(Self.path(id))/results?maxRecords=\(maxRecords)"
    if let locator { path += "&locator=\(PercentEncoding.encoded(locator))" }
    let call = Call(path: path, headers: [("Accept", "text/csv")], kind: .ofJobsAndPages)
    let body = try await self.stream(call)
    let response = body.response
    guard let count = response.header("Sforce-NumberOfRecords").flatMap(Int.init), count >= 0 else {
      throw RESTError(.retry, "\(call.name): the response does not have Sforce-NumberOfRecords")
    }
    let next = response.header("Sforce-Locator")
    return BulkPage(
      name: call.name, body: body, recordCount: count,
      nextLocator: next.flatMap { $0.isEmpty || $0 == "null" ? nil : $0 })
  }

  private static func path(_ id: String) -> String {
    precondition(SOQL.isRecordID(id), "a job's ID is checked when it is received")
    return "jobs/query/\(id)"
  }

  private func job(_ call: Call) async throws -> BulkJob {
    let json = try await self.json(call)
    guard let id = json["id"]?.string, SOQL.isRecordID(id), let name = json["state"]?.string else {
      throw RESTError(.retry, "\(call.name): the response is not a job")
    }
    let state: BulkJob.State
    switch name {
    case "UploadComplete", "InProgress": state = .underWay
    case "JobComplete": state = .complete
    case "Aborted": state = .aborted
    case "Failed": state = .failed(message: json["errorMessage"]?.string?.shown(upTo: 300))
    default:
      throw RESTError(.stop, "\(call.name): the job's state '\(name.shown(upTo: 40))' is not known")
    }
    let stated = json["numberRecordsProcessed"]?.integer
    guard state != .complete || stated != nil else {
      throw RESTError(
        .retry, "\(call.name): the job is complete, and does not say how many records it has")
    }
    let count = stated ?? 0
    guard Self.countRange.contains(count) else {
      throw RESTError(.retry, "\(call.name): the response is not a job: it has \(count) records")
    }
    return BulkJob(
      id: id, state: state, recordCount: Int(count), isQueued: name == "UploadComplete",
      retries: json["retries"]?.integer ?? 0)
  }
}
