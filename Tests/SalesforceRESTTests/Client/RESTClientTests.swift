import HTTPClient
import JSON
import OrgTestSupport
import PubSubSimulator
import SimulatedOrg
import Testing

@testable import SalesforceREST

@Suite("Calls of the REST API", .serialized) struct RESTClientTests {
  @Test("Describe lists the fields and marks compounds, formulas and hidden ones")
  func describe() async throws {
    let org = try await OrgServer { $0.org.hiddenFields = ["Opportunity.NextStep"] }
    let account = try await org.client.describe("Account")
    #expect(account.keyPrefix == "001" && account.isQueryable && account.isRetrievable)
    #expect(account.field("BillingAddress")?.isCompound == true)
    #expect(account.field("BillingStreet")?.compoundFieldName == "BillingAddress")
    #expect(account.field("Name")?.compoundFieldName == "Name")
    let opportunity = try await org.client.describe("Opportunity")
    #expect(opportunity.field("NextStep") == nil)
    #expect(opportunity.field("Weighted_Amount__c")?.isCalculated == true)
    await #expect { try await org.client.describe("Nope") } throws: {
      ($0 as? RESTError)?.disposition == .stop
    }
    await org.stop()
  }

  @Test("A field history has a row for the creation of each record, and two for a new reference")
  func fieldHistory() async throws {
    let org = try await OrgServer {
      $0.org.tracksFields = true
      $0.org.existing = 20
      $0.org.events = 200
      $0.org.topics = ["/data/OpportunityChangeEvent"]
    }
    let object = try await org.client.describe("OpportunityFieldHistory")
    #expect(object.isFieldHistory && object.stampField == "CreatedDate")
    let fields = [
      "Id", "OpportunityId", "Field", "DataType", "OldValue", "NewValue", "CreatedDate",
    ]
    let rows = try await org.client.query(SOQL.select(fields, from: object.name)).records
    #expect(rows.count { $0["Field"] == "created" } >= 20)
    let changes = rows.filter { $0["Field"] != "created" }
    #expect(!changes.isEmpty && changes.allSatisfy { $0["OldValue"] != $0["NewValue"] })
    let owners = changes.filter { $0["Field"] == "Owner" }
    #expect(owners.count { $0["DataType"] == "EntityId" } * 2 == owners.count && !owners.isEmpty)
    let since = try #require(changes.last?["CreatedDate"])
    let newer = try await org.client.query(
      SOQL.select(
        fields, from: object.name, where: "(CreatedDate >= \(since.replacing("+0000", with: "Z")))")
    )
    #expect((1..<rows.count).contains(newer.records.count))
    await org.stop()
  }

  @Test("A query is read to its last page, and a record by its ID has the same values")
  func pages() async throws {
    let org = try await OrgServer { $0.org.existing = 2300 }
    let fields = ["Id", "Name", "Amount", "CloseDate", "IsWon", "SystemModstamp"]
    var page = try await org.client.query(SOQL.select(fields, from: "Opportunity"))
    #expect(page.totalSize == 2300)
    var records = page.records
    var pages = 1
    while let next = page.next {
      page = try await org.client.nextPage(next)
      records += page.records
      pages += 1
    }
    #expect(pages == 2)
    #expect(Set(records.compactMap { $0["Id"] }).count == 2300)
    #expect(try await org.client.count("Opportunity") == 2300)
    let ids = records.suffix(3).compactMap { $0["Id"] } + ["006000000000000AAA"]
    let found = try await org.client.retrieve("Opportunity", ids: ids, fields: fields)
    #expect(found.count == 4 && found[3] == nil)
    for (record, other) in zip(records.suffix(3), found) {
      for field in fields { #expect(record[field] == other?[field]) }
    }
    #expect(org.client.callCount == 4)
    #expect(org.client.usage == RESTClient.Usage(used: 4, limit: 100_000))
    #expect(try await org.client.limits()["DailyApiRequests"]?.remaining == 99_995)
    #expect(try await org.client.limits()["MonthlyPlatformEventsUsageEntitlement"]?.remaining == -3)
    await org.stop()
  }

  @Test("A session that may not use the API ends the call without another login")
  func unusableSession() async throws {
    let org = try await OrgServer()
    try await org.fault(
      #"{"method":"Query","status":401,"error_code":"INVALID_SESSION_ID","message":"This session is not valid for use with the REST API"}"#
    )
    let error = try await #require(throws: RESTError.self) {
      try await org.client.count("Account")
    }
    #expect(error.disposition == .stop)
    for word in ["scope api", "high-assurance", "IP address"] {
      #expect("\(error)".contains(word), "\(error)")
    }
    #expect(org.client.callCount == 1)
    await org.stop()
  }

  @Test("A refused token is replaced once; a second refusal ends the call")
  func login() async throws {
    let org = try await OrgServer()
    await org.sessions.set("stale")
    #expect(try await org.client.count("Account") == 500)
    #expect(await org.sessions.refusals == 1)
    for _ in 0..<2 {
      try await org.fault(
        #"{"method":"Query","status":401,"error_code":"INVALID_SESSION_ID","message":"gone"}"#)
    }
    await #expect { try await org.client.count("Account") } throws: { error in
      (error as? RESTError)?.disposition == .login
        && "\(error)".contains("INVALID_SESSION_ID: gone")
    }
    #expect(try await org.client.count("Account") == 500)
    await org.stop()
  }

  @Test(
    "Salesforce's code decides what an error means, then the status",
    arguments: [
      (
        #"{"status":403,"error_code":"REQUEST_LIMIT_EXCEEDED","message":"TotalRequests Limit exceeded."}"#,
        RESTError.Disposition.quota
      ),
      (
        #"{"status":403,"error_code":"REQUEST_LIMIT_EXCEEDED","message":"ConcurrentRequests (Concurrent API Requests) Limit exceeded."}"#,
        .retry
      ),
      (#"{"status":400,"error_code":"QUERY_TIMEOUT"}"#, .split),
      (#"{"status":400,"error_code":"INVALID_QUERY_LOCATOR"}"#, .gone),
      (#"{"status":404,"error_code":"NOT_FOUND"}"#, .stop),
      (#"{"status":400,"error_code":"MALFORMED_QUERY"}"#, .bug),
      (#"{"status":400,"error_code":"INVALID_FIELD"}"#, .describe),
      (#"{"status":400,"error_code":"INVALIDENTITY"}"#, .unsupportedByBulk),
      (#"{"status":403,"error_code":"INSUFFICIENT_ACCESS"}"#, .stop),
      (#"{"status":503,"error_code":"SERVER_UNAVAILABLE"}"#, .retry),
      (#"{"status":500,"error_code":"SOMETHING_NEW"}"#, .retry),
      (#"{"action":"html","status":502}"#, .retry),
      (#"{"action":"html","status":403}"#, .configuration),
      (#"{"action":"html","status":501}"#, .configuration),
      (#"{"action":"html","status":302}"#, .configuration),
      (#"{"action":"html","status":420}"#, .retry),
      (#"{"action":"html","status":200}"#, .retry),
      (#"{"action":"cut"}"#, .retry),
      (#"{"action":"drop"}"#, .retry),
    ])
  func dispositions(fault: String, expected: RESTError.Disposition) async throws {
    let org = try await OrgServer()
    try await org.fault(fault.replacing("{", with: #"{"method":"Query","#, maxReplacements: 1))
    await #expect {
      try await org.client.query("SELECT Id, Name FROM Account")
    } throws: { ($0 as? RESTError)?.disposition == expected }
    #expect(try await org.client.count("Account") == 500)
    await org.stop()
  }

  @Test("The usage is found anywhere in its header")
  func usage() {
    #expect(RESTClient.usage("api-usage=18/5000") == RESTClient.Usage(used: 18, limit: 5000))
    #expect(
      RESTClient.usage("per-app-api-usage=17/250(appName=sample-app); api-usage=25/5000")
        == RESTClient.Usage(used: 25, limit: 5000))
    for header in ["", "api-usage=", "api-usage=1", "api-usage=-1/5", "api-usage=1/0", "x=1/2"] {
      #expect(RESTClient.usage(header) == nil, "\(header)")
    }
  }

  @Test("Text in statements is checked")
  func texts() {
    #expect(
      SOQL.isName("Segment__c") && !SOQL.isName("") && !SOQL.isName("a b") && !SOQL.isName("1a"))
    #expect(SOQL.isRecordID("006Dp0000004C93IAE") && !SOQL.isRecordID("006Dp0000004C93IA'"))
    #expect(
      SOQL.select(["Id"], from: "Account", where: SOQL.isOneOf(["a", "b"]))
        == "SELECT Id FROM Account WHERE Id IN ('a', 'b')")
  }
}
