import HTTPClient
import OrgTestSupport
import PubSubSimulator
import SimulatedOrg
import Testing

@testable import SalesforceREST

@Suite("Bulk jobs", .serialized) struct BulkTests {
  private static let statement = "SELECT Id, Name, Amount FROM Opportunity"

  @Test("A job's pages have every row once, by locator, as often as they are asked for")
  func results() async throws {
    let org = try await OrgServer()
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
    try await org.client.deleteJob(job.id)
    await #expect { try await org.client.job(job.id) } throws: {
      ($0 as? RESTError)?.disposition == .gone
    }
    await org.stop()
  }

  @Test("Jobs fail, are aborted, stay under way, vanish")
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

  @Test("A page that is cut, dropped, slow or counted wrongly is noticed")
  func faults() async throws {
    let org = try await OrgServer()
    let job = try await org.endedJob(Self.statement)
    func page() async throws -> BulkPage {
      try await org.client.results(ofJob: job.id, locator: nil, maxRecords: 400)
    }
    try await org.fault(#"{"method":"BulkResults","action":"cut"}"#)
    let cut = try await page()
    let rows = (try? await cut.rows().count) ?? -1
    #expect(rows != cut.recordCount)
    try await org.fault(#"{"method":"BulkResults","action":"row_count"}"#)
    let wrong = try await page()
    #expect(try await wrong.rows().count == 400 && wrong.recordCount == 401)
    try await org.fault(#"{"method":"BulkResults","action":"drop"}"#)
    let dropped = try await page()
    await #expect { try await dropped.rows() } throws: { ($0 as? HTTPError)?.isTransient == true }
    try await org.fault(#"{"method":"BulkResults","action":"html","status":503}"#)
    await #expect { try await page() } throws: { ($0 as? RESTError)?.disposition == .retry }
    #expect(try await page().rows().count == 400)
    await org.stop()
  }
}
