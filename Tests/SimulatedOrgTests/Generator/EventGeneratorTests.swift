import Foundation
import TestSupport
import Testing

@testable import SimulatedOrg

@Suite("Generated events")
struct EventGeneratorTests {
  /// The truth of an org made with these settings.
  private func truth(
    seed: UInt64, events: Int, topics: [String] = [], extremes: Double? = nil,
    in directory: TemporaryDirectory
  ) throws -> Data {
    var configuration = SimulatedOrgConfiguration()
    if let extremes { configuration.mix.extremes = extremes }
    configuration.seed = seed
    configuration.events = events
    configuration.topics = topics
    configuration.truthPath = "\(directory.path)/truth"
    _ = try Org(configuration: configuration, epoch: 1_800_000_000_000) { error in
      Issue.record(error)
    }
    return try Data(contentsOf: URL(filePath: "\(directory.path)/truth"))
  }

  @Test("Equal seeds give equal events, and other seeds do not")
  func deterministic() throws {
    let directory = try TemporaryDirectory()
    let first = try self.truth(seed: 5, events: 2000, in: directory)
    #expect(try self.truth(seed: 5, events: 2000, in: directory) == first)
    #expect(try self.truth(seed: 6, events: 2000, in: directory) != first)
  }

  @Test("Referenced accounts and contacts were created before and are never deleted")
  func references() throws {
    let directory = try TemporaryDirectory()
    let data = try self.truth(
      seed: 4, events: 20_000, topics: ["/data/ChangeEvents"], in: directory)
    var created: Set<String> = []
    var referenced: Set<String> = []
    var deletions: [String: Int] = [:]
    for line in data.split(separator: UInt8(ascii: "\n")) {
      let object = try #require(
        try JSONSerialization.jsonObject(with: line) as? [String: Any])
      let header = try #require(object["header"] as? [String: Any])
      let type = try #require(header["changeType"] as? String)
      let records = try #require(header["recordIds"] as? [String])
      if type.hasSuffix("CREATE") { created.formUnion(records) }
      if type.hasSuffix("DELETE"), !type.hasSuffix("UNDELETE") {
        #expect(referenced.isDisjoint(with: records))
        deletions[try #require(object["entity"] as? String), default: 0] += 1
      }
      let fields = object["fields"] as? [String: Any] ?? [:]
      for name in ["AccountId", "ContactId"] {
        guard let id = fields[name] as? String else { continue }
        #expect(created.contains(id), "\(name) \(id)")
        referenced.insert(id)
      }
    }
    #expect(referenced.count > 100)
    #expect(deletions["Account", default: 0] > 50)
    #expect(deletions["Contact", default: 0] > 50)
  }

  @Test(
    "Numbers are small enough to be summed unless extremes are requested", arguments: [nil, 0.01])
  func extremes(share: Double?) throws {
    let directory = try TemporaryDirectory()
    let data = try self.truth(
      seed: 4, events: 5000, topics: ["/data/OpportunityChangeEvent"], extremes: share,
      in: directory)
    var largest = 0.0
    for line in data.split(separator: UInt8(ascii: "\n")) {
      let object = try #require(
        try JSONSerialization.jsonObject(with: line) as? [String: Any])
      for case let number as Double in (object["fields"] as? [String: Any] ?? [:]).values {
        largest = max(largest, abs(number))
      }
    }
    #expect(largest > 1000)
    #expect((largest > 1e15) == (share != nil))
  }

  @Test("All kinds of events occur, with both versions of a schema interleaved")
  func variety() throws {
    let directory = try TemporaryDirectory()
    let data = try self.truth(
      seed: 3, events: 20_000, topics: ["/data/AccountChangeEvent"], in: directory)
    var kinds: Set<String> = []
    var schemas: [String] = []
    var hasSeveralRecords = false
    var hasNulledCompound = false
    var hasPersonAccount = false
    for line in data.split(separator: UInt8(ascii: "\n")) {
      let object = try #require(
        try JSONSerialization.jsonObject(with: line) as? [String: Any])
      let header = try #require(object["header"] as? [String: Any])
      kinds.insert("\(try #require(object["kind"])) \(try #require(header["changeType"]))")
      schemas.append(try #require(object["schema_id"] as? String))
      hasSeveralRecords = hasSeveralRecords || (header["recordIds"] as? [Any])?.count ?? 0 > 1
      hasNulledCompound =
        hasNulledCompound
        || (header["nulledFields"] as? [String])?.contains("BillingAddress") ?? false
      hasPersonAccount =
        hasPersonAccount || (object["fields"] as? [String: Any])?["Name"] is [String: Any]
    }
    #expect(
      kinds == [
        "change CREATE", "change UPDATE", "change DELETE", "change UNDELETE", "gap GAP_CREATE",
        "gap GAP_UPDATE", "gap GAP_DELETE", "gap GAP_UNDELETE", "overflow GAP_OVERFLOW",
        "wildcard UPDATE",
      ])
    #expect(hasSeveralRecords && hasNulledCompound && hasPersonAccount)
    let versions = EntityModel.account.versions.map(\.id)
    #expect(Set(schemas) == Set(versions))
    let lastOld = try #require(schemas.lastIndex(of: versions[0]))
    let firstNew = try #require(schemas.firstIndex(of: versions[1]))
    #expect(firstNew < lastOld)
  }

  @Test("An enriched channel has groups of equal replay IDs with one record each")
  func groups() throws {
    let directory = try TemporaryDirectory()
    let data = try self.truth(
      seed: 4, events: 5000, topics: ["/data/Sales__chn", "/data/ChangeEvents"], in: directory)
    var records: [String: [[String]]] = [:]
    for line in data.split(separator: UInt8(ascii: "\n")) {
      let object = try #require(
        try JSONSerialization.jsonObject(with: line) as? [String: Any])
      let header = try #require(object["header"] as? [String: Any])
      let key = "\(try #require(object["topic"])) \(try #require(object["replay_id"]))"
      records[key, default: []].append(try #require(header["recordIds"] as? [String]))
    }
    let groups = records.filter { $0.value.count > 1 }
    #expect(!groups.isEmpty)
    #expect(groups.allSatisfy { $0.key.hasPrefix("/data/Sales__chn") })
    #expect(groups.allSatisfy { $0.value.allSatisfy { $0.count == 1 } })
    #expect(groups.allSatisfy { Set($0.value).count == $0.value.count })
  }

  @Test("An unknown topic is refused with the choices")
  func unknownTopic() throws {
    let directory = try TemporaryDirectory()
    let error = #expect(throws: SimulatorError.self) {
      try self.truth(seed: 1, events: 0, topics: ["/data/X"], in: directory)
    }
    #expect(error?.message.contains("/data/OpportunityChangeEvent") == true)
  }
}
