import OrgTestSupport
import Pipeline
import PubSubSimulator
import SimulatedOrg
import TestSupport
import Testing

@testable import RESTSource
@testable import SalesforceREST

@Suite("Fields that a copy lacks", .serialized) struct BlindFieldsTests {
  @Test("Formulas, hidden fields and fields that events lack are distinguished")
  func kinds() async throws {
    let org = try await OrgServer { $0.org.hiddenFields = ["Opportunity.Amount"] }
    var description = try await org.client.describe("Opportunity")
    let layout = try SnapshotDecoderTests.layout(of: "Opportunity")
    var fields = BlindFields(layout, description)
    // The formula of the simulated org is one of a hidden field.
    #expect(fields.calculated == ["Weighted_Amount__c"])
    #expect(fields.hidden == ["Amount"])
    #expect(fields.notCarried == [])
    description.fields.append(
      ObjectDescription.Field(
        name: "LastViewedDate", type: "datetime", compoundFieldName: nil, isCalculated: false,
        isFilterable: true))
    fields = BlindFields(layout, description)
    #expect(fields.notCarried == ["LastViewedDate"])
    await org.stop()
  }

  @Test(
    "Compounds and their parts count as carried by events",
    arguments: ["Account", "Contact", "Station__c"])
  func compounds(object: String) async throws {
    let org = try await OrgServer { $0.org.topics = ["/data/ChangeEvents"] }
    let fields = BlindFields(
      try SnapshotDecoderTests.layout(of: object), try await org.client.describe(object))
    #expect(fields.isEmpty, "\(fields)")
    await org.stop()
  }
}

@Suite("What is known about reading fields", .serialized) struct FieldAccessTests {
  @Test("A field that REST lacks does not count as hidden from the user")
  func unreadable() async throws {
    let org = try await OrgServer {
      $0.org.topics = ["/data/ChangeEvents"]
      $0.org.hiddenFields = ["Account.Portal__c"]
    }
    let layout = try SnapshotDecoderTests.layout(of: "Account")
    var description = try await org.client.describe("Account")
    description.fields.removeAll { $0.name == "BillingCity" || $0.name.hasPrefix("Shipping") }
    description.fields.append(
      ObjectDescription.Field(
        name: "EmailPreferencesAutoBcc", type: "boolean", compoundFieldName: nil,
        isCalculated: false, isFilterable: true))
    let known = FieldAccess.known(
      layout.fieldNames + ["EmailPreferences", "Gone__c"], in: description)
    #expect(known["Name"] == .readable && known["BillingAddress.Street"] == .readable)
    #expect(known["BillingAddress.City"] == .unreadable && known["EmailPreferences"] == .unreadable)
    #expect(known["Portal__c"] == .hidden && known["Gone__c"] == .hidden)
    #expect(known["ShippingAddress.City"] == .hidden)
    let blind = BlindFields(layout, description)
    #expect(blind.hidden.contains("Portal__c") && blind.hidden.contains("ShippingAddress.City"))
    #expect(blind.unreadable == ["BillingAddress.City"])
    await org.stop()
  }
}

@Suite("Covered time", .serialized) struct CoveredTimeTests {
  @Test("Changes that are not yet visible hold the time back, and it is never in the future")
  func heldBack() async throws {
    let org = try await OrgServer { $0.org.visibilityDelay = 10_000 }
    _ = try await org.client.describe("Account")
    let now = try #require(org.client.serviceTime())
    let time = try await CoveredTime.ask(org.client, of: "Account", now: now)
    #expect(time <= now && time > now - 60_000)
    await org.stop()
  }

  @Test("An org's refusal to give the information is an error")
  func refused() async throws {
    let org = try await OrgServer()
    _ = try await org.client.describe("Account")
    let now = try #require(org.client.serviceTime())
    try await org.fault(
      #"{"method":"Replication","status":400,"error_code":"INVALID_REPLICATION_DATE","message":"no"}"#
    )
    await #expect {
      try await CoveredTime.ask(org.client, of: "Account", now: now)
    } throws: {
      ($0 as? RESTError)?.disposition == .stop
    }
    await #expect {
      try await CoveredTime.ask(org.client, of: "Account", now: now - 40 * 86_400_000)
    } throws: {
      ($0 as? RESTError)?.errorCode == "INVALID_REPLICATION_DATE"
    }
    await org.stop()
  }
}
