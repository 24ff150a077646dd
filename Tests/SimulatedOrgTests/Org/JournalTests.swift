import Foundation
import TestSupport
import Testing

@testable import SimulatedOrg

@Suite("The journal of a state directory")
struct JournalTests {
  private static let entries: [Journal.Entry] = [
    .publish(time: 5, count: 3, topic: nil, isLive: false),
    .publish(time: 6, count: 1, topic: "/data/X", isLive: true),
    .received(time: 7, topic: "/event/Y", id: "a\tb\n", payload: [0, 255, 10]),
    .keepalive(time: 8, topic: "/data/X"), .newSchemas, .clock(milliseconds: 72),
  ]

  @Test("Entries are read back as written, up to a truncated line")
  func roundTrip() throws {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/journal"
    let journal = try Journal(path: path, fingerprint: "f")
    #expect(journal.entries.isEmpty)
    for entry in Self.entries { try journal.append(entry) }
    let whole = try Data(contentsOf: URL(filePath: path))
    for torn in [0, 1, 5] {
      try whole.dropLast(torn).write(to: URL(filePath: path))
      let kept = torn == 0 ? Self.entries : Self.entries.dropLast()
      #expect(try Journal(path: path, fingerprint: "f").entries == Array(kept))
    }
  }

  @Test("A journal with other settings is refused")
  func fingerprint() throws {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/journal"
    _ = try Journal(path: path, fingerprint: "seed=1")
    let error = #expect(throws: SimulatorError.self) {
      _ = try Journal(path: path, fingerprint: "seed=2")
    }
    #expect(error?.code == .configuration)
  }

  @Test(
    "A restarted org has the same events, replay IDs and times, and continues in the same way",
    arguments: OrgData.allCases)
  func restart(data: OrgData) throws {
    let directory = try TemporaryDirectory()
    var configuration = SimulatedOrgConfiguration()
    configuration.data = data
    configuration.events = 300
    configuration.stateDirectory = directory.path
    configuration.truthPath = "\(directory.path)/truth"
    func org() throws -> Org {
      try Org(configuration: configuration, epoch: 1_800_000_000_000) { Issue.record($0) }
    }
    let topic = "/event/CM_Test_Event_Two__e"
    let schema = try #require(EntityModel.messageEvent.versions.first)
    // CreatedDate 1, CreatedById "u", Message__c null
    let payload: [UInt8] = [2, 2, UInt8(ascii: "u"), 0]
    var first: Org? = try org()
    try first?.publish(50, topic: nil)
    let position = first?.keepalivePosition("/data/OpportunityChangeEvent")
    _ = try first?.publish(
      PublishedPayload.image(payload, model: .messageEvent, schema: schema), payload: payload,
      id: "k", topic: topic)
    try first?.advanceClock(byMilliseconds: 1000)
    try first?.publish(20, topic: "/data/OpportunityChangeEvent", isLive: true)
    first?.eventsWerePublished()
    let before = try Data(contentsOf: URL(filePath: "\(directory.path)/truth"))
    first = nil
    let second = try org()
    #expect(try Data(contentsOf: URL(filePath: "\(directory.path)/truth")) == before)
    #expect(second.livePublished == 20)
    let log = try #require(second.log.topics["/data/OpportunityChangeEvent"])
    let start = try log.start(
      preset: .custom, replayID: ReplayPosition.bytes(try #require(position)),
      at: second.clock.now)
    #expect(start == log.entries.count - 20)
  }
}
