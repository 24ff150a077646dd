import JSON
import Testing

@testable import Pipeline

@Suite("Pipeline runner") struct PipelineRunnerTests {
  /// A pipeline over a store, run as often as wanted.
  final class Harness {
    let store = MemoryStore()
    var configuration = RunnerConfiguration()
    var letters = MemoryDeadLetters()
    var sink = MemorySink(name: "a", crash: CrashPoint(after: .max))
    var statistics: RunStatistics?
    var readFailure: SourceFailure?
    var wallClock: Int64 = 1_000_000
    /// Names of stores besides the checkpoint.
    var databases: [String] = []
    /// Whether the databases' servers are slow.
    var areSlow = false
    /// What an event counts for in a sink until it is committed.
    var lineByteCount = 0
    var refusedEvents: Set<String> = []
    /// Databases always have a lease to renew.
    var isLeaseDue = false
    /// Reads records into the databases, new for each run.
    var reader: (ScriptedSource) -> ScriptedReader? = { _ in nil }
    /// Records that databases do not have right.
    var wrong: [String] = []
    /// When each database is not available.
    var outages: [String: OutagePlan] = [:]
    /// New for each run.
    var stages: () -> [any Transform] = { [] }
    private(set) var stores: [MemoryDatabase] = []
    /// Done before every call of a sink or store.
    var onStep: (() -> Void)?
    var onNote: ((RunNote) -> Void)?
    var onRetry: (() -> Void)?

    init() {
      self.configuration.quiet = .zero
      self.configuration.keepaliveWait = .zero
      self.configuration.commitMaxEvents = 4
    }

    @discardableResult
    func run(_ source: ScriptedSource, crashAfter calls: Int = .max) async throws -> RunOutcome {
      let crash = CrashPoint(after: calls)
      crash.onPass = self.onStep
      self.sink = MemorySink(name: "a", crash: crash)
      let second = MemorySink(name: "b", crash: crash)
      self.sink.lineByteCount = self.lineByteCount
      self.letters = MemoryDeadLetters()
      for sink in [self.sink, second] { try sink.recover(from: self.store.sinks[sink.name]) }
      try self.letters.recover(from: self.store.deadLetters)
      let databases = self.databases.map { name in
        let database = MemoryDatabase(name: name, store: self.store, crash: crash)
        database.isSlow = self.areSlow
        database.refusedEvents = self.refusedEvents
        database.isDue = self.isLeaseDue
        database.takesReads = true
        database.wrong = self.wrong
        if let outages = self.outages[name] { database.outages = outages }
        return database
      }
      self.stores = databases
      let checkpoint = CheckpointedStore(
        sinks: [StagedSink(self.sink), StagedSink(second)], deadLetters: self.letters
      ) { [store] topics, sinks, letters in
        try crash.pass()
        (store.topics, store.sinks, store.deadLetters) = (topics.mapValues(\.json), sinks, letters)
      }
      let runner = try PipelineRunner(
        source: source, stages: StageChain(self.stages()),
        stores: [StagedStore(checkpoint)] + databases.map { StagedStore($0) },
        stored: [self.store.positions()] + self.databases.map(self.store.positions(of:)),
        reader: self.reader(source), configuration: self.configuration,
        wallClock: { [wallClock] in wallClock })
      runner.onRetry = { [onRetry] _, _, _ in onRetry?() }
      runner.onNote = self.onNote
      defer { self.statistics = runner.statistics }
      let outcome = try await runner.run()
      self.readFailure = runner.reads.failure
      return outcome
    }
  }

  static func events(_ count: Int) -> [ScriptedEvent] {
    (1...count).map { ScriptedEvent(replay: $0, event: "e\($0)", transaction: "t\($0 / 3)") }
  }

  /// Runs of equal replay IDs, as on enriched channels.
  static let grouped: [ScriptedEvent] = [(1, 1), (2, 4), (3, 1), (4, 7), (5, 2), (6, 1)].flatMap {
    replay, size in
    (1...size).map { ScriptedEvent(replay: replay, event: "e\(replay)", record: "r\($0)") }
  }

  @Test("Every event reaches every sink once, and a second run exports only what is new")
  func exportsOnce() async throws {
    let harness = Harness()
    try await harness.run(ScriptedSource(Self.events(10)))
    try await harness.run(ScriptedSource(Self.events(14)))
    #expect(harness.store.lines(of: "a") == Self.events(14).map(\.line))
    #expect(harness.store.lines(of: "b") == Self.events(14).map(\.line))
    #expect(harness.statistics?.delivered == 4)
    #expect(harness.statistics?.exported == 4)
  }

  @Test("A channel whose replay ID never changes ends the run before its rows fill the memory")
  func endlessGroup() async throws {
    let harness = Harness()
    let name = String(repeating: "e", count: 1 << 20)
    let log = (0..<20).map { ScriptedEvent(replay: 7, event: "\(name)\($0)") }
    let error = await #expect(throws: SourceFailure.self) {
      try await harness.run(ScriptedSource(log, responseSize: 2, isChannel: true))
    }
    #expect(error?.reason == "open_group")
    // The same events of a single object have no group.
    let other = Harness()
    try await other.run(ScriptedSource(log, responseSize: 2))
    #expect(other.store.lines(of: "a").count == log.count)
  }

  @Test(
    "A crash at any call loses and repeats nothing",
    arguments: [(events(14), false), (grouped, true), (grouped, false)])
  func crashAnywhere(log: [ScriptedEvent], isChannel: Bool) async throws {
    // A single-entity topic has no equal IDs.
    let log = isChannel ? log : Self.events(log.count)
    for responseSize in 1...5 {
      var point = 0
      var hasCrashed = true
      while hasCrashed {
        let harness = Harness()
        hasCrashed = false
        func source() -> ScriptedSource {
          ScriptedSource(log, responseSize: responseSize, isChannel: isChannel)
        }
        do {
          try await harness.run(source(), crashAfter: point)
        } catch is CrashPoint.Crash {
          hasCrashed = true
          try await harness.run(source())
        }
        #expect(
          harness.store.lines(of: "a") == log.map(\.line),
          "crash at call \(point), responses of \(responseSize)")
        #expect(harness.store.lines(of: "b") == log.map(\.line))
        point += 1
      }
      #expect(point > 4)
    }
  }

  @Test("A broken stream resumes after the last received event, committed or not", arguments: 0...4)
  func reconnects(breakAfter: Int) async throws {
    let harness = Harness()
    harness.configuration.commitMaxEvents = 1000
    let source = ScriptedSource(Self.grouped, responseSize: 2, isChannel: true)
    source.breakAfter = breakAfter
    try await harness.run(source)
    #expect(harness.store.lines(of: "a") == Self.grouped.map(\.line))
    #expect(source.starts.count == 2)
    #expect(harness.statistics?.topics[0].retries == 1)
    #expect(harness.statistics?.topics[0].lastFailure?.reason == nil)
    // What a group begins with again is not what a limit of the run was meant for.
    let repeated = try #require(harness.statistics).topics[0].repeated
    #expect(repeated > 0 || breakAfter == 0)
    #expect(source.allowed == repeated)
  }

  @Test("A run that ends while its stream is broken names the cause")
  func lastFailure() async throws {
    let harness = Harness()
    harness.configuration.maxDuration = .zero
    let source = ScriptedSource(Self.events(3), responseSize: 3)
    source.breakAfter = 0
    let outcome = try await harness.run(source)
    guard case .outOfTime = outcome else { return #expect(Bool(false), "\(outcome)") }
    #expect(harness.statistics?.topics[0].lastFailure?.reason == "unavailable")
  }

  @Test("A topic has a stored position only after something has been received from it")
  func untouchedTopic() async throws {
    let harness = Harness()
    try await harness.run(ScriptedSource([]))
    #expect(harness.store.topics.isEmpty)

    harness.configuration.quiet = .milliseconds(50)
    let silent = ScriptedSource([])
    silent.keepalive = 7
    try await harness.run(silent)
    #expect(harness.store.topics.keys.sorted() == ["/data/T"])
    try await harness.run(ScriptedSource([]))
    #expect(harness.store.topics.keys.sorted() == ["/data/T"])
  }

  @Test("Commits end where the transaction changes")
  func transactionBoundaries() async throws {
    let harness = Harness()
    let log = (1...20).map {
      ScriptedEvent(replay: $0, event: "e\($0)", transaction: "t\(($0 - 1) / 5)")
    }
    try await harness.run(ScriptedSource(log, responseSize: 7))
    #expect(harness.sink.commitSizes == [5, 5, 5, 5])
  }

  @Test(
    "Large events are written and committed before the end of their response",
    arguments: [(0, [7]), (1 << 20, [2, 2, 2, 1])])
  func largeEvents(lineByteCount: Int, commits: [Int]) async throws {
    let harness = Harness()
    harness.configuration.commitMaxEvents = 1000
    harness.configuration.commitMaxBytes = 2 << 20
    harness.lineByteCount = lineByteCount
    var log = Self.events(7)
    for index in log.indices { log[index].byteCount = 20 << 20 }
    try await harness.run(ScriptedSource(log, responseSize: 7))
    #expect(harness.store.lines(of: "a") == log.map(\.line))
    #expect(harness.sink.commitSizes == commits)
    #expect(harness.sink.largestBatchByteCount < RecordBatch.maxByteCount + 21 << 20)
  }

  @Test("A commit that saves memory does not split events of one replay ID")
  func largeGroups() async throws {
    let harness = Harness()
    harness.configuration.commitMaxEvents = 1000
    harness.configuration.commitMaxBytes = 1
    harness.lineByteCount = 1
    var log = Self.grouped
    for index in log.indices { log[index].byteCount = 33 << 20 }
    try await harness.run(ScriptedSource(log, responseSize: log.count, isChannel: true))
    #expect(harness.store.lines(of: "a") == log.map(\.line))
    #expect(harness.sink.commitSizes == [1, 4, 1, 7, 2, 1])
  }

  @Test("A stopping run commits before it waits for outstanding events")
  func commitsBeforeDraining() async throws {
    let harness = Harness()
    harness.configuration.commitMaxEvents = 1000
    harness.configuration.until = .events(10)
    try await harness.run(ScriptedSource(Self.events(14), responseSize: 3))
    #expect(harness.sink.commitSizes == [12, 2])
  }

  @Test(
    "An event of an outdated schema waits for the new schema, and without one is a dead letter",
    arguments: [true, false])
  func outdatedSchema(isGiven: Bool) async throws {
    let harness = Harness()
    var log = Self.events(6)
    log[2].isOutdated = true
    let source = ScriptedSource(log, responseSize: 2)
    source.givesNewSchema = isGiven
    try await harness.run(source)
    #expect(source.renewals == 1)
    #expect(harness.letters.letters == (isGiven ? [] : ["e3"]))
    #expect(harness.store.lines(of: "a").contains(log[2].line) == isGiven)
  }

  @Test("An undecodable event becomes a dead letter and stops the run, and the next run continues")
  func deadLetters() async throws {
    let harness = Harness()
    var log = Self.events(6)
    log[2].isBroken = true
    let outcome = try await harness.run(ScriptedSource(log, responseSize: 2))
    guard case .deadLetterLimit = outcome else { return #expect(Bool(false), "\(outcome)") }
    #expect(harness.store.deadLetters.array?.count == 1)
    try await harness.run(ScriptedSource(log, responseSize: 2))
    #expect(harness.letters.letters == ["e3"])
    #expect(harness.store.lines(of: "a") == log.filter { !$0.isBroken }.map(\.line))
  }

  @Test(
    "A share of dead letters stops the run once there are enough events",
    arguments: [(broken: 5, of: 99, stops: false), (5, 130, true), (1, 130, false)])
  func deadLetterShare(broken: Int, count: Int, stops: Bool) async throws {
    let harness = Harness()
    harness.configuration.maxDeadLetters = nil
    harness.configuration.maxDeadLetterRatio = 0.02
    var log = Self.events(count)
    for index in 0..<broken { log[index].isBroken = true }
    let outcome = try await harness.run(ScriptedSource(log, responseSize: 10))
    guard case .deadLetterLimit(_, .ratio(ofEvents: let taken)) = outcome else {
      return #expect(!stops, "\(outcome)")
    }
    #expect(stops && taken >= RunnerConfiguration.ratioFromEvents)
    #expect(harness.letters.letters.count == broken)
  }

  @Test("An invalid replay ID stops the run unless a policy names a new start")
  func invalidReplay() async throws {
    let harness = Harness()
    try await harness.run(ScriptedSource(Self.events(3)))
    let refused = ScriptedSource(Self.events(5))
    refused.refusals = 1
    let outcome = try await harness.run(refused)
    guard case .failed(let failure) = outcome else { return #expect(Bool(false), "\(outcome)") }
    #expect(failure.disposition == .invalidReplay)
    #expect(harness.store.lines(of: "a").count == 3)

    harness.configuration.onInvalidReplay = .earliest
    let again = ScriptedSource(Self.events(5))
    again.refusals = 1
    try await harness.run(again)
    #expect(again.starts == [.after(Self.events(3)[2].replayID), .earliest])
    #expect(harness.statistics?.holes == 1)
    #expect(harness.statistics?.topics[0].epoch == 2)
  }

  @Test("A topic without a position and a start is refused, and the error names it")
  func needsStart() async throws {
    let harness = Harness()
    await #expect(throws: SourceFailure.self) {
      try await harness.run(ScriptedSource(Self.events(3), start: nil))
    }
  }

  @Test("A first run without events or keepalives stores no position")
  func noPosition() async throws {
    let harness = Harness()
    let outcome = try await harness.run(ScriptedSource([], start: .latest))
    guard case .noPosition = outcome else { return #expect(Bool(false), "\(outcome)") }
  }

  @Test("A channel with only one ID waits for a keepalive to close the group")
  func openGroupWaits() async throws {
    let harness = Harness()
    harness.configuration.keepaliveWait = .seconds(60)
    var waits: [Bool] = []
    harness.onNote = { if case .awaitsPosition(_, let isFirst, _) = $0 { waits.append(isFirst) } }
    let source = ScriptedSource(Self.events(1), isChannel: true, start: .earliest)
    source.keepalive = 9
    try await harness.run(source)
    #expect(waits == [true])
    let position = try #require(try harness.store.positions()["/data/T"])
    #expect(position.resume == ScriptedEvent(replay: 9, event: "").replayID)
  }

  @Test("Without a keepalive the group is read again from the earliest event")
  func openGroupIsFoundAgain() async throws {
    let harness = Harness()
    let source = ScriptedSource(Self.events(4), isChannel: true, start: .latest)
    source.tip = 3
    try await harness.run(source)
    let again = ScriptedSource(Self.events(6), isChannel: true, start: .latest)
    try await harness.run(again)
    #expect(again.starts == [.earliest])
    #expect(harness.store.lines(of: "a") == Self.events(6).dropFirst(3).map(\.line))
  }

  @Test(
    "A position at an old change is renewed before it expires",
    arguments: [(hours: 1, waits: false), (hours: 13, waits: true)])
  func renewsOldChanges(_ age: (hours: Int64, waits: Bool)) async throws {
    let harness = Harness()
    harness.wallClock = 100 * 3_600_000
    harness.configuration.keepaliveWait = .seconds(60)
    var waits: [Bool] = []
    harness.onNote = { if case .awaitsPosition(_, let isFirst, _) = $0 { waits.append(isFirst) } }
    var events = Self.events(3)
    for index in events.indices {
      events[index].committedAt = harness.wallClock - age.hours * 3_600_000
    }
    let source = ScriptedSource(events)
    source.keepalive = 9
    try await harness.run(source)
    let position = try #require(try harness.store.positions()["/data/T"])
    #expect((position.resume == ScriptedEvent(replay: 9, event: "").replayID) == age.waits)
    #expect(waits == (age.waits ? [false] : []))
  }

  @Test(
    "A commit time in the future is ignored, and the run continues until the topic is quiet",
    arguments: [86_400_000, 20_000, CommitTime.range.upperBound - 1_000_000])
  func futureCommits(ahead: Int64) async throws {
    let harness = Harness()
    harness.configuration.quiet = .milliseconds(20)
    harness.configuration.serviceClock = ServiceClock(reading: harness.wallClock, readAt: .now)
    var log = Self.events(9)
    log[0].committedAt = harness.wallClock + ahead
    log[1].committedAt = harness.wallClock - 5000
    try await harness.run(ScriptedSource(log, responseSize: 1))
    let topic = try #require(harness.statistics).topics[0]
    #expect(topic.caughtUpBy == "quiet")
    #expect(topic.committed.newestCommit == harness.wallClock - 5000)
    #expect(topic.futureCommits == 1)
    #expect(harness.store.lines(of: "a") == log.map(\.line))
    #expect(try harness.store.positions()["/data/T"]?.confirmedAt == harness.wallClock)
  }

  @Test("A recent commit time ends the run, even alongside one in the future")
  func plausibleCommits() async throws {
    let harness = Harness()
    harness.configuration.quiet = .seconds(60)
    harness.configuration.serviceClock = ServiceClock(
      reading: harness.wallClock, readAt: .now - .seconds(30))
    var log = Self.events(2)
    log[0].committedAt = CommitTime.range.upperBound
    log[1].committedAt = harness.wallClock + 25_000
    try await harness.run(ScriptedSource(log, responseSize: 2))
    #expect(harness.statistics?.topics[0].caughtUpBy == "committed_after_start")
    #expect(harness.statistics?.topics[0].committed.newestCommit == harness.wallClock + 25_000)
  }

  @Test("Commit times of the first and the last year are accepted")
  func extremeCommits() async throws {
    let harness = Harness()
    harness.configuration.quiet = .milliseconds(20)
    var log = Self.events(2)
    log[0].committedAt = CommitTime.range.lowerBound
    log[1].committedAt = CommitTime.range.upperBound
    try await harness.run(ScriptedSource(log, responseSize: 2))
    #expect(harness.store.lines(of: "a") == log.map(\.line))
    #expect(
      try harness.store.positions()["/data/T"]?.confirmedAt == CommitTime.range.lowerBound)
  }

  @Test(
    "A keepalive renews a quiet position with an old or future confirmation",
    arguments: [
      (hours: 1, waits: false), (hours: 13, waits: true), (hours: -1, waits: false),
      (hours: -13, waits: true),
    ])
  func renews(_ later: (hours: Int64, waits: Bool)) async throws {
    let harness = Harness()
    harness.wallClock = 100 * 3_600_000
    try await harness.run(ScriptedSource(Self.events(3)))
    harness.wallClock += later.hours * 3_600_000
    harness.configuration.keepaliveWait = .seconds(60)
    let source = ScriptedSource(Self.events(3))
    source.keepalive = 9
    try await harness.run(source)
    let position = try #require(try harness.store.positions()["/data/T"])
    #expect((position.resume == ScriptedEvent(replay: 9, event: "").replayID) == later.waits)
  }

  @Test(
    "An idle run waits one quiet period from a confirmed position, two from an old one",
    arguments: [(hours: 1, periods: 1), (hours: 13, periods: 2)])
  func idleRun(_ later: (hours: Int64, periods: Int)) async throws {
    let harness = Harness()
    harness.wallClock = 100 * 3_600_000
    try await harness.run(ScriptedSource(Self.events(3)))
    harness.wallClock += later.hours * 3_600_000
    harness.configuration.quiet = .milliseconds(200)
    let source = ScriptedSource(Self.events(3))
    try await harness.run(source)
    let waited = try #require(source.longestWait)
    #expect(waited > .milliseconds(200) * (later.periods - 1))
    #expect(waited <= .milliseconds(200) * later.periods)
  }

  @Test(
    "An event that a store refuses is one dead letter, wherever a run crashes",
    arguments: [false, true])
  func refusedEvents(areSlow: Bool) async throws {
    let log = Self.events(14)
    var point = 0
    var hasCrashed = true
    while hasCrashed {
      let harness = Harness()
      harness.configuration.maxDeadLetters = 2
      harness.databases = ["t"]
      harness.refusedEvents = ["e3", "e9"]
      harness.areSlow = areSlow
      hasCrashed = false
      do {
        try await harness.run(ScriptedSource(log), crashAfter: point)
      } catch is CrashPoint.Crash {
        hasCrashed = true
        try await harness.run(ScriptedSource(log))
      }
      #expect(harness.letters.letters == ["e3", "e9"], "crash at \(point)")
      #expect(harness.store.lines(of: "a") == log.map(\.line), "crash at \(point)")
      #expect(
        harness.store.lines(of: "t")
          == log.filter { !harness.refusedEvents.contains($0.event) }.map(\.line),
        "crash at \(point)")
      point += 1
    }
    #expect(point > 10)
  }

  @Test("A store whose last event is not delivered again stops the run")
  func storesApart() async throws {
    let harness = Harness()
    harness.databases = ["t"]
    try await harness.run(ScriptedSource(Self.events(6)))
    let behind = harness.store.transactions
    try await harness.run(ScriptedSource(Self.events(10)))
    harness.store.transactions = behind
    let other = Self.events(6) + (7...12).map { ScriptedEvent(replay: $0 + 20, event: "x\($0)") }
    await #expect(throws: SourceFailure.self) { try await harness.run(ScriptedSource(other)) }
    #expect(harness.store.lines(of: "a") == Self.events(10).map(\.line))
  }

  // MARK: Completeness

  private static func changes(_ times: [Int64]) -> [ScriptedEvent] {
    times.enumerated().map { index, time in
      ScriptedEvent(replay: index + 1, event: "e\(index)", committedAt: time)
    }
  }

  /// Our clock says 1,000,000.
  @Test(
    "A run is complete through its newest change, or through the moment of its last message",
    arguments: [
      // A run that is ended by events has no silence to go by.
      (until: RunnerConfiguration.Until.events(2), times: [900_000, 950_000], expected: 945_000),
      (.events(2), [950_000, 900_000], 945_000),
      // A time to come proves nothing, nor does one that no calendar has.
      (.events(2), [900_000, 86_400_000], 895_000), (.events(2), [900_000, .max], 895_000),
      (.events(2), [.min, 900_000], 895_000), (.events(2), [.min, .max], nil),
      // Clocks that differ a little are no reason to disbelieve.
      (.events(2), [900_000, 1_005_000], 995_000),
      (.caughtUp, [900_000, 950_000], 995_000), (.caughtUp, [.max, .min], 995_000),
    ] as [(until: RunnerConfiguration.Until, times: [Int64], expected: Int64?)])
  func completeThrough(
    until: RunnerConfiguration.Until, times: [Int64], expected: Int64?
  ) async throws {
    let harness = Harness()
    harness.configuration.until = until
    try await harness.run(ScriptedSource(Self.changes(times), responseSize: 2))
    #expect(harness.statistics?.topics[0].committed.completeThrough == expected)
    #expect(try harness.store.positions()["/data/T"]?.completeThrough == expected)
  }

  @Test(
    "On a quiet topic, completeness advances with each run and keepalive, by the service's clock")
  func completeThroughQuiet() async throws {
    let harness = Harness()
    let log = Self.changes([900_000])
    try await harness.run(ScriptedSource(log))
    #expect(harness.statistics?.topics[0].committed.completeThrough == 995_000)
    harness.wallClock = 2_000_000
    harness.configuration.serviceClock = ServiceClock(reading: 1_990_000, readAt: .now)
    try await harness.run(ScriptedSource(log))
    // The service's clock goes on meanwhile.
    let through = try #require(harness.statistics?.topics[0].committed.completeThrough)
    #expect((1_985_000..<1_995_000).contains(through))
    // A run that is limited before it is caught up has its keepalive alone.
    harness.configuration.serviceClock = nil
    harness.wallClock = 3_000_000
    harness.configuration.until = .events(1)
    let source = ScriptedSource(
      log + [ScriptedEvent(replay: 2, event: "late", committedAt: 950_000)])
    source.keepalives = [2]
    try await harness.run(source)
    #expect(harness.statistics?.topics[0].committed.completeThrough == 2_995_000)
    // It never moves back.
    harness.wallClock = 1_000_000
    harness.configuration.until = .caughtUp
    try await harness.run(ScriptedSource(source.log))
    #expect(harness.statistics?.topics[0].committed.completeThrough == 2_995_000)
  }
}
