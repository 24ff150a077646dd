import Testing

@testable import Pipeline

/// Records read beside the stream, into one database.
@Suite("Reading records during a run") struct RecordReadingTests {
  private typealias Harness = PipelineRunnerTests.Harness

  private static let records = (1...9).map { "r\($0)" }

  private static func harness(
    initial: Bool = true, condition: String? = nil, isRepaired: Bool = false,
    _ change: @escaping (ScriptedReader) -> Void = { _ in }
  ) -> Harness {
    let harness = Harness()
    harness.databases = ["d"]
    harness.configuration.visibilityWait = .zero
    // Nothing else is on its way, so a run would only wait for it.
    harness.configuration.commitMaxDelay = .milliseconds(20)
    harness.reader = { source in
      let reader = ScriptedReader(
        ReadObject(
          entity: "T", topic: "/data/T", layout: source.layout, initial: initial ? ["d"] : [],
          anew: condition == nil ? [] : ["d"], condition: condition, isRepaired: isRepaired),
        records: Self.records)
      change(reader)
      return reader
    }
    return harness
  }

  @Test("Records are requested once the position is durable, and all arrive before the run ends")
  func readsAll() async throws {
    var begun: [ReadPass] = []
    var wasDurable = false
    let harness = Self.harness()
    let make = harness.reader
    harness.reader = { [unowned harness] source in
      let reader = make(source)
      reader?.onBegin = { pass in
        begun.append(pass)
        wasDurable =
          harness.store.transactions["d"] != nil && harness.store.reads["d"]?.pass == pass
      }
      return reader
    }
    try await harness.run(ScriptedSource(PipelineRunnerTests.events(10)))
    #expect(wasDurable)
    #expect(begun.map(\.state) == [.begun])
    #expect(harness.store.reads["d"]?.records == Self.records)
    #expect(harness.store.reads["d"]?.pass?.state == .complete)
    #expect(harness.store.lines(of: "d") == PipelineRunnerTests.events(10).map(\.line))
    // The next run has nothing to read.
    try await harness.run(ScriptedSource(PipelineRunnerTests.events(12)))
    #expect(begun.count == 1)
    #expect(harness.store.reads["d"]?.records == Self.records)
  }

  @Test("A pass gets a number that no other has taken between its plan and its beginning")
  func takenNumbers() async throws {
    let harness = Self.harness()
    harness.store.otherPassNumbers = [2, 3]
    try await harness.run(ScriptedSource(PipelineRunnerTests.events(10)))
    #expect(harness.store.reads["d"]?.pass?.number == 4)
    #expect(harness.store.reads["d"]?.records == Self.records)
  }

  @Test("Stores are made ready again when a schema that arrives during a pass changes their tables")
  func changedTables() async throws {
    let harness = Self.harness()
    let make = harness.reader
    harness.reader = { [unowned harness] source in
      let reader = make(source)
      reader?.onBegin = { _ in harness.store.tableChanges += 1 }
      return reader
    }
    try await harness.run(ScriptedSource(PipelineRunnerTests.events(10)))
    #expect(harness.store.tableChanges == 1)
    #expect(harness.store.reads["d"]?.records == Self.records)
  }

  @Test("The schema of an event committed since the run began is not older than that of a read")
  func newerSchemas() async throws {
    let begin = PipelineRunnerTests.Harness().wallClock
    for (age, expected) in [(Int64(3_600_000), ["s"]), (-5000, ["s", "not current"])] {
      let harness = Self.harness()
      var events = PipelineRunnerTests.events(6)
      for index in events.indices {
        events[index].committedAt = begin - 3_600_000
        guard index >= 3 else { continue }
        events[index].isOfOtherSchema = true
        events[index].committedAt = begin - age
      }
      try await harness.run(ScriptedSource(events))
      var said: [String] = []
      for schema in harness.store.schemas where said.last != schema { said.append(schema) }
      #expect(said == expected)
    }
  }

  /// Makes a layout of its own, as `route` and others do.
  private struct Rearranging: Transform {
    func layout(for input: RecordLayout) throws -> RecordLayout {
      input.with(columns: input.columns)
    }
  }

  @Test("A pass starts and ends with the columns that leave the stages")
  func passesStages() async throws {
    let harness = Self.harness()
    harness.stages = { [Rearranging()] }
    try await harness.run(ScriptedSource(PipelineRunnerTests.events(10)))
    #expect(harness.store.reads["d"]?.records == Self.records)
    #expect(harness.store.reads["d"]?.pass?.state == .complete)
  }

  @Test("A crash at any call repeats no record and loses none", arguments: [nil, 4, 5])
  func crashAnywhere(losesJobAfter lost: Int?) async throws {
    var point = 0
    var hasCrashed = true
    while hasCrashed {
      let harness = Self.harness { $0.losesJobAfter = lost }
      hasCrashed = false
      let events = PipelineRunnerTests.events(7)
      do {
        try await harness.run(ScriptedSource(events), crashAfter: point)
      } catch is CrashPoint.Crash {
        hasCrashed = true
        try await harness.run(ScriptedSource(events))
      }
      // Those of the lost job come again.
      let records = try #require(harness.store.reads["d"]).records
      if let lost, records.count > Self.records.count {
        #expect(records.suffix(Self.records.count) == Self.records[...])
        #expect(records.count <= Self.records.count + lost)
      } else {
        #expect(records == Self.records)
      }
      #expect(harness.store.reads["d"]?.pass?.state == .complete)
      #expect(harness.store.lines(of: "d") == events.map(\.line))
      point += 1
    }
    #expect(point > 20)
  }

  @Test("With a condition no pass is stored, and one in progress keeps its place")
  func condition() async throws {
    let harness = Self.harness(initial: false, condition: "Name = 'x'")
    var unfinished = ReadPass(entity: "T", number: 4, state: .reading)
    unfinished.job = "750"
    unfinished.row = 3
    harness.store.reads["d"] = MemoryReads(pass: unfinished)
    try await harness.run(ScriptedSource(PipelineRunnerTests.events(5)))
    #expect(harness.store.reads["d"]?.records == Self.records)
    #expect(harness.store.reads["d"]?.pass == unfinished)
  }

  @Test("Records that cannot be read end the run only once the stream is caught up")
  func failure() async throws {
    let harness = Self.harness {
      $0.failure = SourceFailure(.refused, reason: "snapshot_stop", "no")
    }
    try await harness.run(ScriptedSource(PipelineRunnerTests.events(9)))
    #expect(harness.readFailure?.reason == "snapshot_stop")
    #expect(harness.store.lines(of: "d") == PipelineRunnerTests.events(9).map(\.line))
    #expect(harness.store.reads["d"]?.pass?.state == .begun)
  }

  @Test("Stale records are requested, and missing records and calls are noted")
  func repair() async throws {
    let harness = Self.harness(initial: false, isRepaired: true)
    harness.wrong = ["r2", "r7", "rx"]
    try await harness.run(ScriptedSource(PipelineRunnerTests.events(3)))
    #expect(harness.store.reads["d"]?.records == ["r2", "r7"])
    #expect(harness.store.reads["d"]?.unseen == ["rx"])
    #expect(harness.store.reads["d"]?.calls == 3)
    #expect(harness.store.reads["d"]?.pass == nil)
    #expect(harness.statistics?.reads.repaired == 2)
  }

  @Test("A stale record that cannot become a row is counted, and adds no pass to the report")
  func unreadableRepair() async throws {
    let harness = Self.harness(initial: false, isRepaired: true) { $0.unreadable = ["r2"] }
    harness.wrong = ["r2", "r7"]
    try await harness.run(ScriptedSource(PipelineRunnerTests.events(3)))
    let reads = try #require(harness.statistics?.reads)
    #expect(reads.unreadable == 1 && reads.unwritten == 0 && reads.repaired == 1)
    #expect(reads.passes.isEmpty)
  }

  /// Refuses each second record.
  private struct Refusing: Transform {
    func layout(for input: RecordLayout) throws -> RecordLayout { input }
    var changesRows: Bool { true }
    func apply(to batch: RecordBatch) throws {
      for index in batch.events.indices
      where batch.events[index].kind == .snapshot && index % 2 == 0 {
        batch.refuse(event: index, reason: "no")
      }
    }
  }

  @Test(
    "Records of a pass that a stage refuses count against the limit of dead letters",
    arguments: [(0, 1), (4, 5), (5, nil), (nil, nil)] as [(Int?, Int?)])
  func refusedRecords(limit: Int?, endsAfter: Int?) async throws {
    let harness = Self.harness()
    harness.stages = { [Refusing()] }
    harness.configuration.maxDeadLetters = limit
    let outcome = try await harness.run(ScriptedSource(PipelineRunnerTests.events(10)))
    if let endsAfter {
      guard case .deadLetterLimit("/data/T", .count) = outcome else {
        Issue.record("\(outcome)")
        return
      }
      #expect(harness.statistics?.reads.unwritten == endsAfter)
    } else {
      guard case .caughtUp = outcome else {
        Issue.record("\(outcome)")
        return
      }
      #expect(harness.store.reads["d"]?.records == ["r2", "r4", "r6", "r8"])
    }
  }
}
