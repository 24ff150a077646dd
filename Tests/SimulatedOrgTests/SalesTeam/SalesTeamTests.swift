import Foundation
import TestSupport
import Testing

@testable import SimulatedOrg

@Suite("A sales team")
struct SalesTeamTests {
  @Test(
    "The records after the events are those before them with all changes", arguments: [1, 2, 9])
  func fold(seed: UInt64) throws {
    let org = try SalesOrg(seed: seed, events: 900)
    let copy = org.folded()
    #expect(copy.count == org.after.count)
    for (id, record) in org.after {
      let found = try #require(copy[id])
      #expect(found.isDeleted == record.isDeleted, "\(id)")
      #expect(found.fields as NSDictionary == record.fields as NSDictionary, "\(id)")
    }
  }

  @Test("Equal seeds give equal teams, and other seeds do not")
  func deterministic() throws {
    func events(_ seed: UInt64) throws -> [String] {
      try SalesOrg(seed: seed, events: 100).changes.map { "\($0.records) \($0.time) \($0.changed)" }
    }
    #expect(try events(3) == events(3))
    #expect(try events(3) != events(4))
  }

  @Test("A deal moves to the next stage, is won at the end, or is lost", arguments: [1, 2, 3])
  func stages(seed: UInt64) throws {
    let org = try SalesOrg(seed: seed, events: 900)
    var stages = SalesOrg.records("006", of: org.before).mapValues {
      $0.fields["StageName"] as? String
    }
    var closed = 0
    for change in org.changes where change.entity == "Opportunity" {
      guard let name = change.fields["StageName"] as? String else { continue }
      let next = try #require(DealStage(rawValue: name))
      for id in change.records {
        defer { stages[id] = name }
        switch change.type {
        case "CREATE": #expect(next == .prospecting)
        case "UNDELETE": #expect(stages[id] == name)
        default:
          let last = try #require(stages[id].flatMap { $0.flatMap(DealStage.init(rawValue:)) })
          #expect(!last.isClosed)
          #expect(next.place == last.place + 1 || next == .lost && last.place >= 1)
          if next.isClosed { closed += 1 }
        }
      }
    }
    #expect(closed > 5)
  }

  @Test("Stage, probability, forecast and the marks of a closed deal agree")
  func closing() throws {
    let org = try SalesOrg(events: 900)
    let deals = SalesOrg.records("006", of: org.after)
    var names: Set<String> = []
    for (id, deal) in deals {
      let name = try #require(deal.fields["StageName"] as? String)
      let stage = try #require(DealStage(rawValue: name))
      names.insert(name)
      #expect(deal.fields["IsClosed"] as? Bool == stage.isClosed, "\(id)")
      #expect(deal.fields["IsWon"] as? Bool == (stage == .won), "\(id)")
      #expect(deal.fields["Probability"] as? Double == stage.probability, "\(id)")
      #expect(deal.fields["ForecastCategory"] as? String == stage.forecast.category, "\(id)")
      let amount = try #require(deal.fields["Amount"] as? Double)
      #expect(SalesTeam.amounts.contains(amount), "\(id)")
      #expect(
        deal.fields["ExpectedRevenue"] as? Double == amount * stage.probability / 100, "\(id)")
      #expect((deal.fields["OrderNumber__c"] != nil) == (stage == .won), "\(id)")
      #expect((deal.fields["NextStep"] == nil) == stage.isClosed, "\(id)")
    }
    #expect(names.count == DealStage.allCases.count)
  }

  @Test(
    "Deals close in the year of the start, on whatever day that is",
    arguments: ["2026-01-01", "2026-01-03", "2026-06-30", "2026-11-27", "2027-12-30", "2028-12-31"])
  func closeDates(day: String) throws {
    let noon = try Date("\(day)T12:00:00Z", strategy: .iso8601)
    let epoch = Int64(noon.timeIntervalSince1970 * 1000)
    let org = try SalesOrg(epoch: epoch)
    let start = epoch - 71 * 3_600_000
    for (id, deal) in SalesOrg.records("006", of: org.before) {
      let date = Int64(try #require(deal.fields["CloseDate"] as? Int))
      #expect(date % 86_400_000 == 0)
      if deal.fields["IsClosed"] as? Bool == true {
        #expect(CivilDate.year(date) == CivilDate.year(start) && date <= start, "\(id)")
      } else {
        #expect(CivilDate.year(date) == CivilDate.year(epoch), "\(id)")
        #expect(date >= start - 8 * 86_400_000, "\(id)")
      }
      let created = Int64(try #require(deal.fields["CreatedDate"] as? Int))
      let modified = Int64(try #require(deal.fields["LastModifiedDate"] as? Int))
      #expect(created <= modified && modified < start, "\(id)")
    }
    // Later changes may move a date into the first weeks of the next year, if this one is ending.
    for (id, deal) in SalesOrg.records("006", of: org.after) {
      let date = Int64(try #require(deal.fields["CloseDate"] as? Int))
      #expect(
        date <= CivilDate.lastDay(ofYearOf: epoch) || date <= epoch + 45 * 86_400_000, "\(id)")
    }
  }

  @Test("Owners, accounts, contacts, managers and the users of changes exist")
  func references() throws {
    let org = try SalesOrg(events: 900)
    let users = SalesOrg.records("005", of: org.after)
    #expect(users.count == 12)
    for (id, record) in org.after {
      for name in [
        "OwnerId", "CreatedById", "LastModifiedById", "AccountId", "ContactId", "ManagerId",
      ] {
        guard let reference = record.fields[name] as? String else { continue }
        let prefix = ["AccountId": "001", "ContactId": "003"][name] ?? "005"
        #expect(reference.hasPrefix(prefix), "\(id).\(name)")
        #expect(org.after[reference]?.isDeleted == false, "\(id).\(name)")
      }
      if !id.hasPrefix("005") { #expect(record.fields["OwnerId"] != nil, "\(id)") }
    }
    for change in org.changes { #expect(users[change.user] != nil) }
    let deals = SalesOrg.records("006", of: org.after).values
    #expect(deals.allSatisfy { $0.fields["AccountId"] != nil })
    #expect(deals.contains { $0.fields["ContactId"] != nil })
  }

  @Test("An update names what it changes, and what it empties", arguments: [1, 5])
  func header(seed: UInt64) throws {
    let org = try SalesOrg(seed: seed, events: 900)
    for change in org.changes where change.type == "UPDATE" {
      #expect(change.changed.contains("LastModifiedDate"))
      #expect(Set(change.nulled).isSubset(of: change.changed))
      for name in change.changed {
        let parts = name.split(separator: ".").map(String.init)
        let value =
          parts.count == 1
          ? change.fields[name] : (change.fields[parts[0]] as? [String: Any])?[parts[1]]
        #expect((value == nil) == change.nulled.contains(name), "\(name)")
      }
      let tops = Set(change.changed.compactMap { $0.split(separator: ".").first.map(String.init) })
      #expect(tops.isSuperset(of: change.fields.keys))
      #expect(change.fields["LastModifiedDate"] as? Int == Int(change.time))
    }
    #expect(org.changes.contains { $0.nulled.contains("NextStep") })
  }

  @Test(
    "The usual 200 events have new owners, slipped dates, wins, and a deal that comes back",
    arguments: 1...6)
  func variety(seed: UInt64) throws {
    let org = try SalesOrg(seed: seed)
    let deals = org.changes.filter { $0.entity == "Opportunity" }
    let owned = deals.filter { $0.type == "UPDATE" && $0.changed.contains("OwnerId") }
    #expect(!owned.isEmpty)
    #expect(owned.contains { $0.records.count > 1 })
    let deleted = deals.filter { $0.type == "DELETE" }
    #expect(!deleted.isEmpty)
    #expect(deals.contains { $0.type == "UNDELETE" })
    #expect(
      deals.contains { $0.changed.contains("CloseDate") && !$0.changed.contains("StageName") })
    #expect(deals.contains { $0.changed.contains("Amount") })
    let stages = SalesOrg.records("006", of: org.after).values.compactMap {
      $0.fields["StageName"] as? String
    }
    #expect(stages.contains("Closed Won") && stages.contains("Closed Lost"))
    #expect(Set(org.changes.map(\.entity)) == ["Opportunity", "Account", "Contact", "User"])
  }

  @Test("Other languages are in descriptions and addresses, and in few records")
  func languages() throws {
    let org = try SalesOrg()
    func hasLetters(_ text: Any?) -> Bool {
      (text as? String)?.unicodeScalars.contains { $0.value > 0x7f && $0.properties.isAlphabetic }
        ?? false
    }
    let notes = org.after.values.map { $0.fields["Description"] }.filter(hasLetters)
    #expect(notes.count > 5 && notes.count < org.after.count / 3)
    let plain = [
      "StageName", "NextStep", "Industry", "Type", "LeadSource", "Email", "Website", "Title",
    ]
    for (id, record) in org.after {
      for name in plain { #expect(!hasLetters(record.fields[name]), "\(id).\(name)") }
    }
  }

  @Test("Companies and people have names of their own, and nobody's addresses")
  func names() throws {
    let org = try SalesOrg(existing: 900)
    let accounts = SalesOrg.records("001", of: org.after).values
    let names = accounts.compactMap { $0.fields["Name"] as? String }
    #expect(Set(names).count == accounts.count)
    for record in org.after.values {
      if let mail = record.fields["Email"] as? String { #expect(mail.hasSuffix(".example")) }
      if let site = record.fields["Website"] as? String { #expect(site.hasSuffix(".example")) }
    }
  }

  @Test("A topic alone has events of its objects, about records that exist")
  func oneTopic() throws {
    let org = try SalesOrg(topics: ["/data/OpportunityChangeEvent"])
    #expect(org.changes.count == 200)
    #expect(Set(org.changes.map(\.entity)) == ["Opportunity"])
    #expect(org.folded().count == org.after.count)
    #expect(SalesOrg.records("001", of: org.after).count == 150)
  }

  @Test("A team that begins with no deals makes them")
  func empty() throws {
    let org = try SalesOrg(
      events: 200, existing: 0, topics: ["/data/ChangeEvents", "/data/OpportunityChangeEvent"])
    #expect(SalesOrg.records("006", of: org.before).isEmpty)
    #expect(SalesOrg.records("006", of: org.after).count > 10)
    #expect(SalesOrg.records("005", of: org.after).count == 12)
  }

  @Test("Fields that an admin deletes or converts have no values of the team")
  func administration() throws {
    var configuration = SimulatedOrgConfiguration()
    configuration.data = .sales
    configuration.existing = 60
    let org = try Org(configuration: configuration, epoch: 1_795_730_000_000) { Issue.record($0) }
    try org.change(FieldChange(parsing: "delete Opportunity.TrackingNumber__c"))
    try org.change(FieldChange(parsing: "convert Opportunity.OrderNumber__c number"))
    try org.change(FieldChange(parsing: "convert Account.Number_of_Locations__c text"))
    try org.change(FieldChange(parsing: "add Opportunity.Urgent__c checkbox"))
    try org.publish(400, topic: nil)
    #expect(org.publisher.published == 401)
  }

  @Test("Users belong to a sales team, and random data has them on request")
  func userTopic() throws {
    #expect(Topic.usual(.sales).contains { $0.name == "/data/UserChangeEvent" })
    #expect(!Topic.usual(.random).contains { $0.name == "/data/UserChangeEvent" })
    var configuration = SimulatedOrgConfiguration()
    configuration.topics = ["/data/UserChangeEvent"]
    configuration.events = 50
    let org = try Org(configuration: configuration, epoch: 1_795_730_000_000) { Issue.record($0) }
    #expect(org.log.topics["/data/UserChangeEvent"]?.entries.count == 50)
  }
}
