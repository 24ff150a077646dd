import Checkpoint
import Clocks
import FoundationEssentials
import OrgTestSupport
import PubSubSimulator
import TestSupport
import Testing

@testable import PubSubETL

@Suite("Doctor") struct DoctorTests {
  private static func examine(
    _ configuration: PipelineConfiguration, isDeep: Bool = false
  ) async -> Doctor {
    let doctor = Doctor(configuration, isDeep: isDeep)
    await doctor.run()
    return doctor
  }

  private static func states(_ doctor: Doctor, of area: String) -> [Finding.State] {
    doctor.findings.filter { $0.area == area }.map(\.state)
  }

  private static func message(_ doctor: Doctor, of area: String) -> String {
    doctor.findings.first { $0.area == area }?.message ?? ""
  }

  @Test("A pipeline that can run has no failure, and nothing is delivered, locked or left behind")
  func healthy() async throws {
    let pipeline = try await SimulatedPipeline(events: 5, existing: 5)
    let configuration = try pipeline.load()
    let doctor = await Self.examine(configuration)
    #expect(doctor.exitCode == nil)
    for area in ["files", "lock", "login", "clock", "service", "topic", "schemas", "rights"] {
      #expect(Self.states(doctor, of: area).first == .ok, "\(area)")
    }
    #expect(Self.states(doctor, of: "api") == [.ok])
    #expect(Self.states(doctor, of: "allowance") == [.ok])
    let delivered = try await pipeline.org.server.deliveredJSON()
    #expect(delivered.contains(#""total":0"#), "\(delivered)")
    #expect(!FilePath.exists(configuration.checkpoint.directory))
    await pipeline.org.stop()
  }

  @Test("A deep look asks each topic for an event where the next run would, and stores nothing")
  func deep() async throws {
    let pipeline = try await SimulatedPipeline(events: 5, existing: 5)
    let configuration = try pipeline.load()
    func look(_ words: String, delivered: Int) async throws {
      let doctor = await Self.examine(configuration, isDeep: true)
      #expect(doctor.exitCode == nil)
      #expect(Self.states(doctor, of: "response") == [.ok])
      #expect(Self.message(doctor, of: "response").contains(words))
      let found = try await pipeline.org.server.deliveredJSON()
      #expect(found.contains(#""total":\#(delivered)"#), "\(found)")
    }
    try await look("an event came after", delivered: 1)
    #expect(!FilePath.exists(configuration.checkpoint.directory))
    let run = try pipeline.makeRun(configuration)
    await run.execute()
    #expect(run.report.exitCode == .success)
    try await look("no event waits", delivered: 6)
    await pipeline.org.stop()
  }

  @Test(
    "A deep look finds a position that the service does not know",
    arguments: ["fail", "earliest"])
  func unknownPosition(policy: String) async throws {
    let pipeline = try await SimulatedPipeline(events: 5, existing: 5)
    let configuration = try pipeline.load(
      start: #"{"replay_id":"00112233445566778899"}"#, sets: ["source.on_invalid_replay=\(policy)"])
    #expect(await Self.examine(configuration).exitCode == nil)
    let doctor = await Self.examine(configuration, isDeep: true)
    #expect(doctor.exitCode == (policy == "fail" ? .data : nil))
    #expect(Self.states(doctor, of: "response") == [policy == "fail" ? .failed : .attention])
    await pipeline.org.stop()
  }

  @Test("A run in progress is named and not disturbed")
  func running() async throws {
    let pipeline = try await SimulatedPipeline()
    let configuration = try pipeline.load()
    let other = try FileCheckpointStore(
      directory: configuration.checkpoint.directory, pipeline: configuration.name)
    let doctor = await Self.examine(configuration)
    #expect(doctor.exitCode == nil)
    let lock = doctor.findings.first { $0.area == "lock" }
    #expect(lock?.state == .attention)
    #expect(lock?.message.contains("runs this pipeline now") == true)
    withExtendedLifetime(other) {}
    await pipeline.org.stop()
  }

  @Test(
    "Output without its checkpoint is a failure, as it is for a run",
    arguments: [#"{}"#, #"{"min_bytes":"8MiB"}"#])
  func lostState(rotate: String) async throws {
    let pipeline = try await SimulatedPipeline(events: 10, existing: 5)
    let configuration = try pipeline.load(sets: [
      #"run.until={"events":10}"#,
      #"sinks=[{"type":"files","directory":"out","rotate":\#(rotate)}]"#,
    ])
    let run = try pipeline.makeRun(configuration)
    await run.execute()
    #expect(run.report.exitCode == .success)
    #expect(await Self.examine(configuration).exitCode == nil)
    try FileManager.default.removeItem(atPath: configuration.checkpoint.directory)
    let doctor = await Self.examine(configuration)
    #expect(doctor.exitCode == .data)
    #expect(doctor.findings.contains { $0.area == "status" && $0.state == .failed })
    await pipeline.org.stop()
  }

  @Test("A refused login fails alone: what needs it is skipped, the rest is looked at")
  func login() async throws {
    let pipeline = try await SimulatedPipeline(existing: 5)
    let doctor = await Self.examine(
      try pipeline.load(environment: ["SF_CLIENT_SECRET": "another-secret"]))
    #expect(doctor.exitCode == .refused)
    #expect(Self.states(doctor, of: "login") == [.failed])
    #expect(Self.states(doctor, of: "topic") == [.skipped])
    #expect(Self.states(doctor, of: "files").first == .ok)
    await pipeline.org.stop()
  }

  @Test("A topic that is refused does not hide the others, the rights and the allowance")
  func topic() async throws {
    let pipeline = try await SimulatedPipeline(existing: 5)
    let doctor = await Self.examine(
      try pipeline.load(sets: [
        #"source.topic=["/data/LeadChangeEvent","/data/OpportunityChangeEvent"]"#
      ]))
    #expect(doctor.exitCode == .refused)
    #expect(Self.states(doctor, of: "topic") == [.failed, .ok])
    #expect(Self.states(doctor, of: "service") == [.ok])
    #expect(Self.states(doctor, of: "schemas") == [.skipped])
    #expect(Self.states(doctor, of: "rights") == [.ok])
    await pipeline.org.stop()
  }

  @Test("A service that does not answer is a failure of its own, after a login that works")
  func service() async throws {
    let pipeline = try await SimulatedPipeline(existing: 5)
    // Nobody listens on port 1.
    let doctor = await Self.examine(
      try pipeline.load(environment: ["PUBSUB_ENDPOINT": "http://127.0.0.1:1"]))
    #expect(Self.states(doctor, of: "login") == [.ok])
    #expect(Self.states(doctor, of: "service") == [.failed])
    #expect(Self.message(doctor, of: "service").contains("check source.org.endpoint"))
    #expect(doctor.exitCode == .unavailable)
    await pipeline.org.stop()
  }

  @Test("A login server and a database that do not answer are failures with remedies")
  func silence() async throws {
    let pipeline = try await SimulatedPipeline(existing: 5)
    let doctor = await Self.examine(
      try pipeline.load(environment: [
        "SF_LOGIN_URL": "http://127.0.0.1:1", "DATABASE_URL": "postgresql://etl@127.0.0.1:1/x",
      ]) {
        $0.replacing(
          #"{ "type": "files", "directory": "out" }"#,
          with: #"{ "type": "postgres", "name": "wh", "url": "${DATABASE_URL}" }"#)
      })
    #expect(Self.states(doctor, of: "login") == [.failed])
    #expect(Self.message(doctor, of: "login").contains("check login_url"))
    #expect(Self.states(doctor, of: "sink") == [.failed])
    #expect(Self.message(doctor, of: "sink").contains("start the database"))
    #expect(doctor.exitCode == .unavailable)
    await pipeline.org.stop()
  }

  private static func tokenLogin(_ text: String) -> String {
    text.replacing(
      #"{ "type": "client_credentials", "login_url": "${SF_LOGIN_URL}","#,
      with: #"{ "type": "token", "access_token": "${SF_ACCESS_TOKEN}","#
    ).replacing(
      #""client_id": "${SF_CLIENT_ID}", "client_secret": "${SF_CLIENT_SECRET}" }"#,
      with: #""instance_url": "${SF_INSTANCE_URL}" }"#)
  }

  @Test("A login with a token is as good as the token", arguments: [true, false])
  func token(works: Bool) async throws {
    let pipeline = try await SimulatedPipeline(existing: 5)
    let token = try #require(pipeline.org.environment["SF_ACCESS_TOKEN"])
    let doctor = await Self.examine(
      try pipeline.load(
        environment: ["SF_ACCESS_TOKEN": works ? token : token + "x"], changing: Self.tokenLogin))
    #expect(Self.states(doctor, of: "login") == [works ? .ok : .failed])
    #expect(Self.message(doctor, of: "login").contains("replace it") == !works)
    #expect(Self.states(doctor, of: "topic") == (works ? [.ok] : []))
    #expect(doctor.exitCode == (works ? nil : .refused))
    await pipeline.org.stop()
  }

  @Test("A token that no service was asked about is not called a login that works")
  func untriedToken() async throws {
    let pipeline = try await SimulatedPipeline(existing: 5)
    let doctor = await Self.examine(
      try pipeline.load(
        environment: ["PUBSUB_ENDPOINT": "http://127.0.0.1:1"], changing: Self.tokenLogin))
    #expect(Self.states(doctor, of: "login") == [.skipped])
    #expect(Self.states(doctor, of: "service") == [.failed])
    await pipeline.org.stop()
  }

  @Test(
    "An allowance that is used up, or reserved, needs attention",
    arguments: [(0, "run again later"), (100, "lower it")])
  func allowance(limit: Int, remedy: String) async throws {
    let pipeline = try await SimulatedPipeline(existing: 5, deliveryLimit: limit)
    let doctor = await Self.examine(try pipeline.load(sets: ["allowance.reserve=95"]))
    #expect(Self.states(doctor, of: "allowance") == [.attention])
    #expect(Self.message(doctor, of: "allowance").contains(remedy))
    await pipeline.org.stop()
  }

  @Test("A checkpoint that is older than the files is a failure, as it is for a run")
  func olderCheckpoint() async throws {
    let pipeline = try await SimulatedPipeline(events: 10, existing: 5)
    let configuration = try pipeline.load()
    func run(_ arguments: [String]) async throws {
      let run = try pipeline.makeRun(configuration, arguments)
      await run.execute()
      #expect(run.report.exitCode == .success, "\(run.report.message ?? "")")
    }
    try await run(["--max-events", "4"])
    let old = try TextFile.read(configuration.statePaths.checkpoint)
    try await run([])
    #expect(await Self.examine(configuration).exitCode == nil)
    try Data(old).write(to: URL(fileURLWithPath: configuration.statePaths.checkpoint))
    let doctor = await Self.examine(configuration)
    #expect(doctor.exitCode == .data)
    #expect(Self.message(doctor, of: "status").contains("put back the newest checkpoint"))
    await pipeline.org.stop()
  }

  @Test("A directory that cannot be made is a failure, and the org is asked nevertheless")
  func directory() async throws {
    let pipeline = try await SimulatedPipeline(existing: 5)
    let doctor = await Self.examine(
      try pipeline.load(sets: ["checkpoint.directory=/proc/state"]))
    #expect(doctor.exitCode == .output)
    #expect(Self.states(doctor, of: "login") == [.ok])
    await pipeline.org.stop()
  }

  @Test(
    "The clock needs attention from ten seconds on",
    arguments: [
      (0 as Int64, Finding.State.ok, "agrees"), (-9_000, .ok, "agrees"),
      (11_000, .attention, "11 s ahead of the service's"),
      (-200_000, .attention, "3 min 20 s behind the service's"),
    ])
  func clock(ahead: Int64, state: Finding.State, words: String) {
    let finding = Doctor.clock(ahead: ahead)
    #expect(finding.state == state)
    #expect(finding.message.contains(words), "\(finding.message)")
  }

  @Test("Little space, or few files that can still be made, need attention")
  func space() throws {
    #expect(DiskSpace(directory: "/", bytes: 2 << 30, files: nil).finding.state == .ok)
    #expect(DiskSpace(directory: "/", bytes: 2 << 20, files: nil).finding.state == .attention)
    #expect(DiskSpace(directory: "/", bytes: 2 << 30, files: 99).finding.state == .attention)
    let place = try TemporaryDirectory()
    let found = DiskSpace.ofFileSystems(of: ["\(place.path)/a/b", "\(place.path)/c"])
    #expect(found.map(\.directory) == [place.path])
    #expect(found.allSatisfy { $0.bytes >= 0 })
  }

  @Test(
    "Lines of 'check' keep their meaning",
    arguments: [
      ("rights: attention: the user has X", Finding.State.attention, "rights", "the user has X"),
      (
        "allowance: not known: HTTP 403", .skipped, "allowance",
        "not known: HTTP 403; a run can begin without it"
      ),
      (
        "warning: this org has person accounts", .attention, "records",
        "this org has person accounts"
      ),
      ("note: Opportunity: formulas: X", .ok, "records", "Opportunity: formulas: X"),
      ("attention: no space", .attention, "records", "no space"),
      ("columns: every name was found", .ok, "columns", "every name was found"),
    ])
  func lines(line: String, state: Finding.State, area: String, message: String) {
    var expected = Finding(state, area, message)
    expected.exitCode = nil
    #expect(Finding(line: line, "records") == expected)
  }
}
