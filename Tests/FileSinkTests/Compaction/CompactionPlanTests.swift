import JSON
import Testing

@testable import FileSink

@Suite("Choice of files to compact")
struct CompactionPlanTests {
  private static let topic = "/data/OpportunityChangeEvent"

  private func exported(
    _ range: ClosedRange<Int64>, events: Int64? = nil, bytes: Int64 = 100, day: Int = 17,
    topic: String = Self.topic, epoch: Int = 1, pass: String = "", sha256: String? = "aa"
  ) throws -> (ExportedFile, JSONValue) {
    let digits = String(range.lowerBound)
    let ordinal = String(repeating: "0", count: 12 - digits.count) + digits
    let line: JSONValue = [
      "name": .string(
        "Opportunity/commit_date=2026-02-\(day)/opps-T-e\(epoch)-\(ordinal)\(pass).ndjson.zst"),
      "org": "00D", "topic": .string(topic), "bytes": .integer(bytes),
      "events": .integer(events ?? range.upperBound - range.lowerBound + 1),
      "epoch": .integer(epoch), "first_ordinal": .integer(range.lowerBound),
      "last_ordinal": .integer(range.upperBound), "first_replay_id": "00",
      "last_replay_id": "01", "sha256": sha256.map { .string($0) } ?? nil,
    ]
    return (try #require(ExportedFile(json: line)), line)
  }

  private func plan(
    _ ranges: [ClosedRange<Int64>], rotation: FileSinkConfiguration.Rotation = .init()
  ) throws -> CompactionPlan {
    var plan = CompactionPlan(rotation)
    for range in ranges { try self.add(range, to: &plan) }
    return plan
  }

  private func add(
    _ range: ClosedRange<Int64>, to plan: inout CompactionPlan, events: Int64? = nil,
    bytes: Int64 = 100, day: Int = 17, topic: String = Self.topic, epoch: Int = 1,
    sha256: String? = "aa"
  ) throws {
    let (file, line) = try self.exported(
      range, events: events, bytes: bytes, day: day, topic: topic, epoch: epoch, sha256: sha256)
    plan.add(.init(exported: file, line: line, compaction: 0))
  }

  /// The first ordinals of each group.
  private func groups(
    _ plan: CompactionPlan, missing: Set<Int64> = [], placed: Set<Int64> = []
  ) throws -> [[Int64]] {
    let folders = try plan.groups(
      exists: { file throws(FileSinkError) in !missing.contains(file.exported.firstOrdinal) },
      placesLines: { file throws(FileSinkError) in placed.contains(file.exported.firstOrdinal) })
    return folders.flatMap(\.groups).map { $0.map(\.exported.firstOrdinal) }
  }

  private let tens: [ClosedRange<Int64>] = [0...9, 10...19, 20...29, 30...39]

  @Test("Neighbours are joined in the order of the stream, whatever the order of the manifest")
  func neighbours() throws {
    #expect(try self.groups(self.plan(self.tens.reversed())) == [[0, 10, 20, 30]])
    #expect(try self.groups(self.plan([0...9])) == [])
  }

  @Test("A group has at most the bytes and the events of a file, and large files stay as they are")
  func sizes() throws {
    #expect(
      try self.groups(self.plan(self.tens, rotation: .init(maxByteCount: 250)))
        == [[0, 10], [20, 30]])
    #expect(
      try self.groups(self.plan(self.tens, rotation: .init(maxEventCount: 35)))
        == [[0, 10, 20]])
    #expect(try self.groups(self.plan(self.tens, rotation: .init(maxByteCount: 200))) == [])
    var plan = try self.plan(
      [0...9, 10...19, 30...39, 40...49], rotation: .init(maxByteCount: 1000))
    try self.add(20...29, to: &plan, bytes: 500)
    #expect(try self.groups(plan) == [[0, 10], [30, 40]])
  }

  @Test("Dates, topics and epochs are not joined with each other")
  func families() throws {
    var plan = try self.plan([0...9, 10...19])
    try self.add(20...29, to: &plan, day: 18)
    try self.add(30...39, to: &plan, day: 18)
    try self.add(20...29, to: &plan, epoch: 2)
    try self.add(30...39, to: &plan, epoch: 2)
    try self.add(20...29, to: &plan, topic: "/data/ChangeEvents")
    #expect(
      try self.groups(plan).sorted { ($0.count, $0[0]) < ($1.count, $1[0]) }
        == [[0, 10], [20, 30], [20, 30]])
  }

  @Test("A missing file, and one without a hash, end a group")
  func unusable() throws {
    #expect(try self.groups(self.plan(self.tens), missing: [20]) == [[0, 10]])
    var plan = try self.plan([0...9, 20...29, 30...39])
    try self.add(10...19, to: &plan, sha256: nil)
    #expect(try self.groups(plan) == [[20, 30]])
  }

  @Test(
    "Lines do not pass a snapshot, and no group begins at its place",
    arguments: [
      (0, [[10, 20, 30]]), (1, [[10, 20, 30]]), (10, [[20, 30]]), (15, [[0, 10], [20, 30]]),
      (20, [[0, 10]]), (35, [[0, 10, 20, 30]]), (40, [[0, 10, 20, 30]]),
    ] as [(Int64, [[Int64]])])
  func snapshots(place: Int64, expected: [[Int64]]) throws {
    for isInCheckpoint in [false, true] {
      var plan = try self.plan(self.tens)
      if isInCheckpoint {
        plan.add(snapshotBefore: place, epoch: 1)
      } else {
        plan.add(
          snapshotBefore: place, of: .init(org: "00D", topic: Self.topic, epoch: 1))
      }
      #expect(try self.groups(plan) == expected)
      plan = try self.plan(self.tens)
      plan.add(snapshotBefore: place, epoch: 2)
      #expect(try self.groups(plan) == [[0, 10, 20, 30]])
    }
  }

  @Test("Lines do not pass another file of the object: another date, dead letters, one in progress")
  func otherFiles() throws {
    var plan = try self.plan([0...9, 20...29, 30...39, 40...49])
    try self.add(12...15, to: &plan, day: 16)
    #expect(try self.groups(plan) == [[20, 30, 40]])
    plan = try self.plan([0...9, 20...29, 30...39, 40...49])
    plan.add(other: try self.exported(33...35).0, isOpen: false)
    #expect(try self.groups(plan) == [[0, 20, 30]])
    plan = try self.plan([0...9, 20...29, 30...39, 40...49])
    plan.add(other: try self.exported(22...22).0, isOpen: true)
    #expect(try self.groups(plan) == [[0, 20]])
    // It lies within a file, whose lines are all before or after it as before.
    plan = try self.plan([0...9, 20...29])
    plan.add(other: try self.exported(22...23).0, isOpen: false)
    #expect(try self.groups(plan) == [[0, 20]])
  }

  @Test("Folders that overlap around midnight are compared file by file")
  func midnight() throws {
    var plan = try self.plan([0...9, 10...19, 20...25])
    try self.add(26...29, to: &plan, day: 18)
    try self.add(30...39, to: &plan, day: 18)
    try self.add(40...40, to: &plan, day: 17)
    try self.add(41...49, to: &plan, day: 18)
    try self.add(50...59, to: &plan, day: 18)
    try self.add(60...69, to: &plan, day: 19)
    try self.add(70...79, to: &plan, day: 19)
    #expect(
      try self.groups(plan) == [[0, 10, 20], [26, 30], [41, 50], [60, 70]])
  }

  @Test("A dead letter between two files keeps them apart; within a file the lines decide")
  func letters() throws {
    let gaps: [ClosedRange<Int64>] = [0...9, 20...29, 30...39]
    var plan = try self.plan(gaps)
    #expect(try self.groups(plan) == [[0, 20, 30]])
    plan.add(letters: try self.exported(12...12).0)
    #expect(try self.groups(plan) == [[20, 30]])
    plan = try self.plan(gaps)
    plan.add(letters: try self.exported(5...40).0)
    #expect(try self.groups(plan) == [[20, 30]])
    plan = try self.plan([])
    try self.add(0...9, to: &plan, events: 8)
    try self.add(10...19, to: &plan)
    try self.add(20...29, to: &plan, events: 9)
    #expect(try self.groups(plan) == [[0, 10, 20]])
    #expect(try self.groups(plan, placed: [0]) == [[10, 20]])
    // Its lines may follow others.
    #expect(try self.groups(plan, placed: [20]) == [[0, 10, 20]])
  }
}
