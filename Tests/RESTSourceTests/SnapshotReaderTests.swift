import EventLoop
import OrgTestSupport
import Pipeline
import PubSubSimulator
import PubSubSource
import SimulatedOrg
import TestSupport
import Testing

@testable import RESTSource

/// Whole passes over an object of the simulated org, against faults, and from any place on.
@Suite("Passes over the records of an object", .serialized) struct SnapshotReaderTests {
  private static let count = 2600

  private static func org() async throws -> OrgServer {
    try await OrgServer { $0.org.existing = Self.count }
  }

  /// What a reader has told: IDs in the order in which they came, and the pass after each batch.
  private struct Told {
    var ids: [String] = []
    var passes: [ReadPass] = []
    /// What the rows of each batch point to.
    var texts: [[UInt8]] = []
    var retries: [SourceFailure] = []
    var waits: [String] = []
    var failure: SourceFailure?
  }

  private static func read(
    _ org: OrgServer, from pass: ReadPass = ReadPass(entity: "Account", number: 3),
    condition: String? = nil, scope: String? = nil, filling: Set<String>? = nil,
    poll: PollSchedule? = nil, recycles: Bool = true,
    options: SnapshotReader.Options = SnapshotReader.Options()
  ) async throws -> Told {
    var object = ReadObject(
      entity: "Account", topic: "/data/AccountChangeEvent",
      layout: try SnapshotDecoderTests.layout(of: "Account"), condition: condition)
    (object.scope, object.filling, object.poll) = (scope, filling, poll)
    let (woken, wake) = AsyncStream<Void>.makeStream()
    let reader = SnapshotReader([object], client: org.client, options: options) { wake.yield() }
    let background = Task(operation: reader.background)
    defer { background.cancel() }
    reader.begin(object: 0, pass)
    var told = Told()
    for await _ in woken {
      while let signal = reader.next() {
        switch signal {
        case .progress(_, let pass):
          told.passes.append(pass)
          if pass.state == .complete { return told }
        case .records(_, let batch, let pass):
          told.ids += batch.events.map {
            String(decoding: batch.bytes($0.eventID), as: UTF8.self)
          }
          told.passes.append(pass)
          told.texts.append(
            Array(UnsafeBufferPointer(start: batch.arenaBase, count: batch.arenaCount)))
          if recycles { reader.recycle(batch) }
        case .retrying(_, let failure, _): told.retries.append(failure)
        case .failed(_, let failure):
          told.failure = failure
          return told
        case .unreadable(_, _, let record): Issue.record("\(record)")
        case .waiting(_, let what): told.waits.append(what)
        case .underWay: break
        case .found, .notAsked: Issue.record("nothing was asked for by ID")
        }
      }
    }
    return told
  }

  @Test("An object without change events is read by pages, and later only what has changed")
  func polled() async throws {
    let org = try await Self.org()
    let poll = PollSchedule(every: .seconds(60), fullEvery: .seconds(600))
    let all = try await Self.read(org, poll: poll)
    #expect(all.ids.count == Self.count && Set(all.ids).count == Self.count)
    #expect(all.passes.allSatisfy { $0.job?.hasPrefix("pages:") == true })
    var pass = ReadPass(entity: "Account", part: ReadPass.changes, number: 4)
    pass.since = ContinuousClock.now
    let changed = try await Self.read(org, from: pass, poll: poll)
    #expect(changed.failure == nil && changed.passes.last?.state == .complete)
    #expect(changed.ids.count < Self.count / 10)
    // From so early on, everything has changed, and deleted records are found with it.
    pass.since = ContinuousClock.now - .seconds(10 * 365 * 86_400)
    #expect(try await Self.read(org, from: pass, poll: poll).ids.count >= Self.count)
  }

  @Test("Every record is read once, in batches that end where the pass says")
  func whole() async throws {
    let org = try await Self.org()
    let told = try await Self.read(org)
    #expect(Set(told.ids).count == Self.count)
    #expect(told.ids.count == Self.count)
    #expect(told.ids.allSatisfy { $0.hasPrefix("snapshot:3:001") })
    #expect(told.passes.last?.rowCount == Self.count)
    #expect(told.passes.last?.total == Self.count)
    #expect(told.passes.first?.state == .reading)
    #expect(told.retries.isEmpty)
    await org.stop()
  }

  @Test("Reused batches hold the same rows as new ones")
  func recycled() async throws {
    let org = try await Self.org()
    let told = try await Self.read(org)
    #expect(told.texts.count > 2)
    #expect(try await Self.read(org, recycles: false).texts == told.texts)
    await org.stop()
  }

  @Test("A returned batch is reused, empty, for any layout")
  func pool() throws {
    let (account, contact) = (
      try SnapshotDecoderTests.layout(of: "Account"), try SnapshotDecoderTests.layout(of: "Contact")
    )
    let pool = BatchPool()
    let batch = pool.take(account)
    batch.readAt = .now
    _ = batch.addRow()
    #expect(pool.take(account) !== batch)
    pool.giveBack(batch)
    let again = pool.take(contact)
    #expect(again === batch)
    #expect(again.layout === contact && again.rowCount == 0 && again.arenaCount == 0)
    #expect(again.readAt == nil && again.events.isEmpty)
  }

  @Test("A pass resumes from any place without another job")
  func resumed() async throws {
    let org = try await Self.org()
    let told = try await Self.read(org)
    for (index, pass) in told.passes.dropLast().enumerated() {
      let rest = try await Self.read(org, from: pass)
      #expect(rest.ids == Array(told.ids.dropFirst(pass.rowCount)), "after signal \(index)")
      #expect(rest.passes.last?.rowCount == Self.count)
    }
    await org.stop()
  }

  @Test(
    "Faults neither lose a record nor repeat one within a job",
    arguments: [
      #"{"method":"BulkResults","action":"drop"}"#,
      #"{"method":"BulkResults","action":"cut"}"#,
      #"{"method":"BulkStatus","action":"html","status":503}"#,
      #"{"method":"BulkCreate","action":"job_failed"}"#,
      #"{"method":"BulkCreate","action":"job_aborted"}"#,
      #"{"method":"BulkCreate","action":"job_vanished","after_events":0}"#,
      #"{"method":"Describe","action":"html","status":502}"#,
    ])
  func faults(_ fault: String) async throws {
    let org = try await Self.org()
    try await org.fault(fault)
    let told = try await Self.read(org)
    #expect(told.failure == nil)
    #expect(Set(told.ids).count == Self.count)
    #expect(told.retries.count >= 1)
    #expect(told.passes.last?.state == .complete)
    #expect(told.passes.map(\.rowCount) == told.passes.map(\.rowCount).sorted())
    await org.stop()
  }

  @Test(
    "An answer that will not change ends the pass at once",
    arguments: [
      (#"{"method":"Describe","status":404,"error_code":"NOT_FOUND","times":99}"#, .refused),
      (#"{"method":"Describe","action":"html","status":404,"times":99}"#, .configuration),
      (#"{"method":"Describe","action":"html","status":501,"times":99}"#, .configuration),
      (#"{"method":"Describe","action":"html","status":302,"times":99}"#, .configuration),
      (#"{"method":"BulkCreate","action":"html","status":501,"times":99}"#, .configuration),
      (#"{"method":"BulkCreate","status":405,"error_code":"METHOD_NOT_ALLOWED","times":99}"#, .bug),
      (#"{"method":"BulkStatus","action":"html","status":403,"times":99}"#, .configuration),
      (#"{"method":"BulkResults","action":"html","status":501,"times":99}"#, .configuration),
    ] as [(String, SourceFailure.Disposition)])
  func final(fault: String, disposition: SourceFailure.Disposition) async throws {
    let org = try await Self.org()
    try await org.fault(fault)
    let told = try await Self.read(org)
    #expect(told.failure?.disposition == disposition)
    #expect(told.retries.isEmpty)
    await org.stop()
  }

  @Test(
    "Records with more fields than one request may have are read in pieces",
    arguments: [60, 8])
  func wide(maxFields: Int) async throws {
    func org(_ maxFields: Int?) async throws -> OrgServer {
      try await OrgServer {
        $0.org.existing = Self.count
        $0.org.maxQueryFields = maxFields
        // Equal stamps.
        $0.org.epoch = 1_700_000_000_000
      }
    }
    let wide = try await org(nil)
    let whole = try await Self.read(wide)
    await wide.stop()
    let narrow = try await org(maxFields)
    let told = try await Self.read(narrow)
    #expect(told.failure == nil && told.ids.count == Self.count)
    #expect(told.ids.map(Self.record).sorted() == whole.ids.map(Self.record).sorted())
    #expect(
      told.texts.map(\.count).reduce(0, +) == whole.texts.map(\.count).reduce(0, +))
    #expect(told.retries.isEmpty)
    await narrow.stop()
  }

  @Test("A date that has become a time of day is left out, and its records are read")
  func convertedDate() async throws {
    let org = try await Self.org()
    try await org.server.change(
      FieldChange(parsing: "convert Account.SLA_Expiration_Date__c datetime"))
    try await org.server.publish(300, topic: "/data/AccountChangeEvent")
    let told = try await Self.read(org)
    #expect(told.failure == nil && told.ids.count > 2000)
    await org.stop()
  }

  /// The record and its stamp, without the pass.
  private static func record(_ id: String) -> Substring { id.dropFirst("snapshot:3:".count) }

  @Test("A job that stays in progress is reported, and gives way to another")
  func stuckJob() async throws {
    let org = try await Self.org()
    try await org.fault(#"{"method":"BulkCreate","action":"job_stuck"}"#)
    var options = SnapshotReader.Options()
    options.jobPatience = .seconds(3)
    options.waitReports = .milliseconds(1)
    let told = try await Self.read(org, options: options)
    #expect(told.failure == nil && Set(told.ids).count == Self.count)
    #expect(told.retries.first?.description.contains("no progress") == true)
    #expect(told.waits.first?.contains("waiting for Bulk job 750") == true)
    await org.stop()
  }

  @Test("A scope limits passes, but neither those that fill columns nor another condition")
  func scope() async throws {
    let org = try await Self.org()
    let all = try await Self.read(org).ids
    let (one, two) = (all[0].split(separator: ":")[2], all[1].split(separator: ":")[2])
    let limited = try await Self.read(org, scope: "Id = '\(one)'")
    #expect(limited.ids == [all[0]])
    let filled = try await Self.read(org, scope: "Id = '\(one)'", filling: ["Phone"])
    #expect(filled.ids.count == all.count)
    let chosen = try await Self.read(org, condition: "Id = '\(two)'", scope: "Id = '\(one)'")
    #expect(chosen.ids == [all[1]])
    await org.stop()
  }

  @Test("A condition selects records, in its own parentheses")
  func condition() async throws {
    let org = try await Self.org()
    let one = try await Self.read(org).ids[0].split(separator: ":")[2]
    let told = try await Self.read(org, condition: "Id = '\(one)' OR Id = '000000000000000AAA'")
    #expect(told.ids.count == 1)
    let wrong = try await Self.read(org, condition: "Id = '\(one)') LIMIT 1 (")
    #expect(wrong.failure != nil && wrong.ids.isEmpty)
    await org.stop()
  }
}
