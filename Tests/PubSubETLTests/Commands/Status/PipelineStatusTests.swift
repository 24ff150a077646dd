import Bytes
import Checkpoint
import FileSink
import Glibc
import JSON
import Pipeline
import Testing

@testable import PubSubETL

@Suite("Status of a pipeline")
struct PipelineStatusTests {
  private let now = UTCTime.now()
  private let hour: Int64 = 3_600_000

  private func kinds(
    _ state: StateSample, maxAge: Duration? = nil, now: Int64? = nil
  ) throws
    -> [String]
  {
    try PipelineStatus.read(state.configuration, maxAge: maxAge, now: now ?? self.now)
      .problems.map(\.kind)
  }

  @Test("A pipeline that never ran is not healthy, and status creates nothing")
  func neverRun() throws {
    let state = try StateSample()
    let status = try PipelineStatus.read(state.configuration, maxAge: nil)
    #expect(status.problems.map(\.kind) == ["never_run"])
    #expect(status.exitCode == 75)
    #expect(access(state.paths.directory, F_OK) != 0)
    #expect(access(state.output, F_OK) != 0)
  }

  @Test("After a good run positions, files and the run are shown, and all is well")
  func healthy() throws {
    let state = try StateSample()
    try state.store([StateSample.topic: state.position(confirmedAt: self.now - 3 * self.hour)])
    try state.write(
      StateSample.line(0...4) + StateSample.line(5...9, committed: "2026-02-18T00:00:00.000Z")
        + "{\"torn", to: state.output + "/_manifest.ndjson")
    let end = UTCTime.now() + 5
    try LastRun.store(
      state.report(.success, at: end), processID: getpid(), in: state.paths, hiding: SecretMask())
    let status = try PipelineStatus.read(state.configuration, maxAge: .seconds(60))
    #expect(status.problems == [])
    #expect(status.exitCode == 0)
    let sink = try #require(status.json["sinks"]?.array?.first)
    #expect(sink["files"] == 2)
    #expect(sink["events"] == 10)
    #expect(sink["bytes"] == 200)
    let topic = try #require(status.topics.first)
    #expect(topic.lastCommitTimestamp == "2026-02-18T00:00:00.000Z")
    #expect(topic.position?.resume?.hex == "00aa")
    #expect(status.json["topics"]?.array?.first?["position"]?["next_ordinal"]?.integer == 10)
    #expect(status.json["last_run"]?["reason"]?.string == "caught_up")
    #expect(status.text.contains("resumes after 00aa"))
    #expect(status.text.contains("expires in 2 d 2"))
    // The torn line is still there: nothing was written.
    #expect(try state.read(state.output + "/_manifest.ndjson").hasSuffix("{\"torn"))
  }

  @Test("Files that lack changes are not complete, and status names the command that reads them")
  func incompleteFiles() throws {
    let state = try StateSample()
    var position = try #require(
      state.position(epoch: 3, confirmedAt: self.now).members)
    position.append(JSONMember("holes", 2))
    try state.store(
      [StateSample.topic: JSONValue(.object(position))],
      sinks: [
        "files": [
          "directory": .string(state.output), "files": [],
          "gap_events": [
            "Account": ["covered": 1, "open": 2],
            "Contact": ["covered": 0, "open": 0, "left_out": false],
          ],
        ]
      ])
    try LastRun.store(
      state.report(.success, at: UTCTime.now() + 5), processID: getpid(), in: state.paths,
      hiding: SecretMask())
    let status = try PipelineStatus.read(state.configuration, maxAge: nil)
    #expect(status.problems == [])
    let file = state.configuration.file
    #expect(
      status.text.contains(
        "good; sink 'files' is not complete: 2 missing ranges of Opportunity, and 3 gap events of "
          + "Account; 'pubsub-etl snapshot \(file)' reads their records again, and stages left out "
          + "changes of Contact; once they no longer do, 'pubsub-etl snapshot \(file)' reads its "
          + "records again\n"))
    let sink = status.json["sinks"]?.array?.first
    #expect(sink?["missing_ranges"]?["Opportunity"]?.integer == 2)
    #expect(sink?["gap_events"] == ["Account": 3])
    #expect(sink?["left_out"] == ["Contact"])
  }

  @Test("Waiting dead letters are always shown, and are a problem above the configured limit")
  func waitingLetters() throws {
    let cases: [(sets: [String], kinds: [String])] = [
      ([], ["dead_letters"]), (["dead_letter={\"max\":2}"], []),
      (["dead_letter={\"max\":1}"], ["dead_letters"]), (["dead_letter={\"max_ratio\":0.5}"], []),
      (
        ["dead_letter={\"max\":2}", "run={\"fail_on\":[\"dead_letters\"]}"], ["dead_letters"]
      ),
    ]
    for (sets, kinds) in cases {
      let state = try StateSample(sets: sets)
      try state.store([StateSample.topic: state.position(confirmedAt: self.now)])
      try state.write(
        StateSample.line(3...4, isDeadLetter: true),
        to: state.configuration.deadLetter.directory + "/_manifest.ndjson")
      // Only its name and size are looked at.
      try state.write(
        String(repeating: "x", count: 100),
        to: state.configuration.deadLetter.directory
          + "/export_date=2026-02-17/opps-OpportunityChangeEvent-e1-000000000003.dead.ndjson.zst")
      try LastRun.store(
        state.report(.success, at: UTCTime.now() + 5), processID: getpid(), in: state.paths,
        hiding: SecretMask())
      let status = try PipelineStatus.read(state.configuration, maxAge: nil)
      #expect(status.deadLetters.waiting == 2)
      #expect(status.problems.map(\.kind) == kinds)
      #expect(status.exitCode == (kinds.isEmpty ? 0 : 65))
      #expect(status.text.contains("2 dead letters are waiting ('dead-letters list' shows why"))
    }
  }

  @Test("Dead letters whose file was removed or truncated are lost output")
  func lostLetters() throws {
    for content in [nil, "x"] {
      let state = try StateSample(sets: ["dead_letter={\"max\":5}"])
      try state.store([StateSample.topic: state.position(confirmedAt: self.now)])
      let directory = state.configuration.deadLetter.directory
      try state.write(
        StateSample.line(3...4, isDeadLetter: true), to: directory + "/_manifest.ndjson")
      let path =
        directory
        + "/export_date=2026-02-17/opps-OpportunityChangeEvent-e1-000000000003.dead.ndjson.zst"
      if let content { try state.write(content, to: path) }
      try LastRun.store(
        state.report(.success, at: UTCTime.now() + 5), processID: getpid(), in: state.paths,
        hiding: SecretMask())
      let status = try PipelineStatus.read(state.configuration, maxAge: nil)
      #expect(status.problems.map(\.kind) == ["lost_output"])
      #expect(status.problems.first?.message.contains(path) == true)
      #expect(status.exitCode == 65)
      #expect(status.deadLetters.waiting == 2)
    }
  }

  @Test("Text and JSON show the time through which a topic is complete, null while unknown")
  func completeThrough() throws {
    for (time, text) in [(nil, nil), (1_771_300_995_000, "2026-02-17T04:03:15.000Z")]
      as [(Int64?, String?)]
    {
      let state = try StateSample()
      try state.store([
        StateSample.topic: state.position(confirmedAt: self.now, completeThrough: time)
      ])
      let status = try PipelineStatus.read(state.configuration, maxAge: nil)
      let position = status.json["topics"]?.array?.first?["position"]
      #expect(position?["complete_through"]?.string == text)
      #expect(status.text.contains("complete through") == (time != nil))
    }
  }

  @Test("An emptied output directory is a problem, and one whose files a loader took is not")
  func lostOutput() throws {
    let state = try StateSample()
    let last =
      "Opportunity/commit_date=2026-02-17/opps-OpportunityChangeEvent-e1-000000000005.ndjson.zst"
    try state.store(
      [StateSample.topic: state.position(confirmedAt: self.now)],
      sinks: [
        "files": [
          "directory": .string(state.output), "files": [], "last_finished": .string(last),
        ]
      ])
    try LastRun.store(
      state.report(.success, at: UTCTime.now() + 5), processID: getpid(), in: state.paths,
      hiding: SecretMask())
    #expect(try self.kinds(state) == ["lost_output"])
    let manifest = StateSample.line(0...4) + StateSample.line(5...9)
    try state.write(manifest, to: state.output + "/_manifest.ndjson")
    #expect(try self.kinds(state) == [])
    let status = try PipelineStatus.read(state.configuration, maxAge: nil)
    #expect(status.text.contains("2 of the newest 2 files are missing"))
    #expect(status.json["sinks"]?.array?.first?["newest_files_missing"]?.integer == 2)
    #expect(status.json["sinks"]?.array?.first?["verified"]?["files"] == nil)
    // Cut, and then the older one alone is there.
    try state.write("x", to: "\(state.output)/\(last)")
    #expect(try self.kinds(state) == ["lost_output"])
  }

  @Test("The retries of a run in progress are shown, and a refused topic is a problem")
  func waiting() throws {
    let state = try StateSample()
    try state.store([StateSample.topic: state.position(confirmedAt: self.now)])
    try LastRun.store(
      state.report(.success, at: UTCTime.now() + 5), processID: getpid(), in: state.paths,
      hiding: SecretMask())
    var ledger = RetryLedger()
    ledger.failed(
      .sink("db"), code: "57P03", "the database system is starting up", delay: .seconds(60),
      at: self.now)
    ledger.failed(
      .topic("/data/A"), code: "topic_not_found", "/data/A: not found", isRefusal: true,
      delay: .seconds(600), at: self.now)
    try WaitingRecord.store(
      ledger.waiting, processID: getpid(), in: state.paths, hiding: SecretMask())
    // Left by a run that was killed: nothing holds the lock.
    #expect(try PipelineStatus.read(state.configuration, maxAge: nil).waiting.isEmpty)
    let run = try FileCheckpointStore(directory: state.paths.directory, pipeline: "opps")
    try withExtendedLifetime(run) {
      let status = try PipelineStatus.read(state.configuration, maxAge: nil, now: self.now)
      #expect(status.waiting == ledger.waiting)
      #expect(status.problems.map(\.kind) == ["topic_refused"])
      #expect(status.exitCode == 77)
      #expect(status.text.contains("topic /data/A is refused, since"))
      #expect(status.text.contains("1 failed attempt, next in 10 min"))
      #expect(status.json["waiting"]?.array?.count == 2)
      // The incident of a run that failed is the same refusal, or something else that lasts.
      for (code, kinds) in [(77, ["topic_refused"]), (69, ["topic_refused", "failing"])] {
        var book = IncidentBook()
        _ = book.saw(
          .failing, Incident.Finding(message: "no", reason: "r", exitCode: Int32(code)),
          at: self.now)
        try IncidentFile(paths: state.paths, secrets: SecretMask()).store(book)
        #expect(try self.kinds(state) == kinds)
      }
      // Nothing is waited for any more.
      try WaitingRecord.store([], processID: getpid(), in: state.paths, hiding: SecretMask())
      #expect(access(state.paths.waiting, F_OK) != 0)
      #expect(try PipelineStatus.read(state.configuration, maxAge: nil).problems.isEmpty)
    }
  }

  @Test("Every file is compared with its size and hash on request")
  func verified() throws {
    let state = try StateSample()
    let content = String(repeating: "x", count: 100)
    try state.store([StateSample.topic: state.position(confirmedAt: self.now)])
    try LastRun.store(
      state.report(.success, at: UTCTime.now() + 5), processID: getpid(), in: state.paths,
      hiding: SecretMask())
    let name =
      "Opportunity/commit_date=2026-02-17/opps-OpportunityChangeEvent-e1-000000000000.ndjson.zst"
    let path = "\(state.output)/\(name)"
    try state.write(content, to: path)
    func verify(_ sha256: String) throws -> PipelineStatus {
      let line = StateSample.line(0...4).dropLast(2) + ",\"sha256\":\"\(sha256)\"}\n"
      try state.write(line + StateSample.line(5...9), to: state.output + "/_manifest.ndjson")
      return try PipelineStatus.read(state.configuration, maxAge: nil, verifies: true)
    }
    // sha256sum of 100 times x
    let sha256 = "09ecb6ebc8bcefc733f6f2ec44f791abeed6a99edf0cc31519637898aebd52d8"
    func verification(_ status: PipelineStatus) -> JSONValue? {
      status.json["sinks"]?.array?.first?["verified"]
    }
    let good = try verify(sha256)
    #expect(verification(good)?["files"] == 1)
    #expect(verification(good)?["bytes"] == 100)
    // The second is missing: newer than one that is there, and so also at the tail.
    #expect(verification(good)?["missing"] == 1)
    #expect(good.problems.map(\.kind) == ["lost_output", "lost_output"])
    #expect(good.exitCode == 65)
    let bad = try verify(String(sha256.reversed()))
    #expect(verification(bad)?["changed"] == 1)
    #expect(
      verification(bad)?["faults"]?.array?.first?.string?.contains("has the SHA-256 \(sha256)")
        == true)
    #expect(bad.text.contains("verified: 0 files"))
    // Without being asked nothing is read.
    let quick = try PipelineStatus.read(state.configuration, maxAge: nil)
    #expect(verification(quick) == JSONValue(.null))
  }

  @Test("A failed run is shown with its exit code, except while another run is in progress")
  func failed() throws {
    let state = try StateSample()
    try state.store([StateSample.topic: state.position(confirmedAt: self.now)])
    try LastRun.store(
      state.report(.refused, reason: "login", at: UTCTime.now() + 5), processID: getpid(),
      in: state.paths, hiding: SecretMask())
    let status = try PipelineStatus.read(state.configuration, maxAge: nil)
    #expect(status.problems.map(\.kind) == ["last_run_failed"])
    #expect(status.exitCode == 77)
    let store = try FileCheckpointStore(directory: state.paths.directory, pipeline: "opps")
    let running = try PipelineStatus.read(state.configuration, maxAge: nil)
    #expect(running.lock.isHeld == true)
    #expect(running.lock.processID == getpid())
    #expect(running.problems == [])
    withExtendedLifetime(store) {}
  }

  @Test("A killed run is recognized by its lock without a record")
  func killed() throws {
    let state = try StateSample()
    try state.write("", to: state.paths.lock)
    try LastRun.store(
      state.report(.success, at: self.now - 1000), processID: 1, in: state.paths,
      hiding: SecretMask())
    try state.store([StateSample.topic: state.position(confirmedAt: self.now)])
    #expect(try self.kinds(state) == ["killed"])
  }

  @Test("An old commit and an ageing position are problems")
  func old() throws {
    let state = try StateSample()
    try state.store([StateSample.topic: state.position(confirmedAt: self.now)])
    try LastRun.store(
      state.report(.success, at: UTCTime.now() + 5), processID: getpid(), in: state.paths,
      hiding: SecretMask())
    #expect(try self.kinds(state, maxAge: .seconds(600)) == [])
    #expect(try self.kinds(state, maxAge: .seconds(600), now: self.now + self.hour) == ["old"])
    #expect(try self.kinds(state, now: self.now + 48 * self.hour) == [])
    #expect(try self.kinds(state, now: self.now + 49 * self.hour) == ["ageing_out"])
    #expect(try self.kinds(state, now: self.now + 73 * self.hour) == ["aged_out"])
  }

  @Test("Files without a checkpoint are lost state")
  func lost() throws {
    let state = try StateSample()
    try state.write(StateSample.line(0...4), to: state.output + "/_manifest.ndjson")
    let status = try PipelineStatus.read(state.configuration, maxAge: nil)
    #expect(status.problems.map(\.kind) == ["lost_state"])
    #expect(status.exitCode == 65)
  }
}
