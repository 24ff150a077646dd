import HTTPClient
import OrgTestSupport
import PubSubSimulator
import SimulatedOrg
import Testing

@testable import SalesforceREST

@Suite("Bulk jobs", .serialized) struct BulkTests {
  private static let statement = "SELECT Id, Name, Amount FROM Opportunity"

  @Test(
    "A job's pages have every row once, by locator, however often they are requested",
    arguments: [false, true])
  func results(isCompressed: Bool) async throws {
    let org = try await OrgServer { $0.compressesRecords = isCompressed }
    let job = try await org.endedJob(Self.statement)
    #expect(job.state == .complete && job.recordCount == 500)
    var ids: [String] = []
    var locator: String?
    repeat {
      let page = try await org.client.results(ofJob: job.id, locator: locator, maxRecords: 200)
      let rows = try await page.rows()
      #expect(rows.count == page.recordCount)
      let again = try await org.client.results(ofJob: job.id, locator: locator, maxRecords: 200)
      #expect(try await again.rows() == rows)
      ids += rows.map { $0[0] }
      locator = page.nextLocator
    } while locator != nil
    #expect(Set(ids).count == 500 && ids.count == 500)
    await org.stop()
  }

  @Test("A job that fails, is aborted, keeps running or vanishes is reported")
  func ends() async throws {
    let org = try await OrgServer()
    try await org.fault(
      #"{"method":"BulkCreate","action":"job_failed","message":"InvalidBatch : boom"}"#)
    #expect(try await org.endedJob(Self.statement).state == .failed(message: "InvalidBatch : boom"))
    try await org.fault(#"{"method":"BulkCreate","action":"job_failed"}"#)
    #expect(try await org.endedJob(Self.statement).state == .failed(message: nil))
    try await org.fault(#"{"method":"BulkCreate","action":"job_aborted"}"#)
    #expect(try await org.endedJob(Self.statement).state == .aborted)
    try await org.fault(#"{"method":"BulkCreate","action":"job_stuck"}"#)
    let stuck = try await org.client.createJob(Self.statement)
    #expect(try await org.client.job(stuck.id).state == .underWay)
    #expect(try await org.client.abortJob(stuck.id).state == .aborted)
    try await org.fault(#"{"method":"BulkCreate","action":"job_vanished","after_events":1}"#)
    let job = try await org.endedJob(Self.statement)
    let page = try await org.client.results(ofJob: job.id, locator: nil, maxRecords: 100)
    #expect(try await page.rows().count == 100)
    await #expect {
      try await org.client.results(ofJob: job.id, locator: page.nextLocator, maxRecords: 100)
    } throws: { ($0 as? RESTError)?.disposition == .gone }
    await #expect {
      try await org.client.createJob("SELECT Id, BillingAddress FROM Account")
    } throws: { ($0 as? RESTError)?.disposition == .unsupportedByBulk }
    await org.stop()
  }

  private static func read(_ page: BulkPage) async throws -> [[String]] {
    let rows = BulkRows(page, fields: ["Id", "Name", "Amount"])
    var found: [[String]] = []
    while try await rows.next({ row in
      found.append(row.indices.map { String(decoding: row[$0], as: UTF8.self) })
    }) {}
    return found
  }

  @Test(
    "A truncated, dropped, slow or miscounted page is detected and can be read again",
    arguments: [false, true])
  func faults(isCompressed: Bool) async throws {
    let org = try await OrgServer { $0.compressesRecords = isCompressed }
    let job = try await org.endedJob(Self.statement)
    func page() async throws -> BulkPage {
      try await org.client.results(ofJob: job.id, locator: nil, maxRecords: 400)
    }
    func isNoticed(_ fault: String, saying text: String) async throws {
      try await org.fault(#"{"method":"BulkResults",\#(fault)}"#)
      await #expect {
        _ = try await Self.read(page())
      } throws: { error in
        (error as? RESTError)?.disposition == .retry && "\(error)".contains(text)
      }
    }
    try await isNoticed(#""action":"cut""#, saying: "page")
    try await isNoticed(#""action":"row_count""#, saying: "has 400 rows instead of 401")
    try await isNoticed(#""action":"drop""#, saying: "results")
    try await isNoticed(#""action":"html","status":503"#, saying: "HTTP 503")
    try await isNoticed(#""action":"drip""#, saying: "less than 1000 bytes per second")
    #expect(try await Self.read(page()).count == 400)
    let other = BulkRows(try await page(), fields: ["Id", "Amount", "Name"])
    await #expect {
      _ = try await other.next { _ in }
    } throws: { "\($0)".contains("other columns") }
    await org.stop()
  }

  @Test("A job without rows has a page without rows")
  func empty() async throws {
    let org = try await OrgServer { $0.org.existing = 0 }
    let job = try await org.endedJob(Self.statement)
    #expect(job.state == .complete && job.recordCount == 0)
    let page = try await org.client.results(ofJob: job.id, locator: nil, maxRecords: 400)
    #expect(try await Self.read(page).isEmpty && page.nextLocator == nil)
    await org.stop()
  }
}
