import JSON
import Testing

@testable import Pipeline

/// Records that are read into sinks whose state the checkpoint holds.
@Suite("Records read into checkpointed sinks") struct CheckpointedReadsTests {
  private class LineSink: CheckpointedSink {
    let name: String

    init(_ name: String) { self.name = name }

    func recover(from state: JSONValue?) throws {}
    func write(_ batch: RecordBatch) throws {}
    func flush(finish: Bool) throws -> JSONValue { nil }
    func committed() throws -> Bool { false }
  }

  private final class ReadingSink: LineSink, RecordReceiver {
    var reads = PollSchedule.LastReads()

    func lastReads(of entity: String) -> PollSchedule.LastReads { self.reads }

    var known: ReadPass?
    var written: [ReadPass] = []

    init(_ name: String, _ known: ReadPass? = nil) {
      self.known = known
      super.init(name)
    }

    func takesReads(of layout: RecordLayout) -> Bool { true }
    func needsPass(over entity: String, topic: String) -> Bool { false }
    func noteUnreadable(_ record: UnreadableRecord, of entity: String) {}
    func noteDescriptions(_ fields: [FieldDescription], of entity: String) {}
    func noteLeftOut(_ changes: RecordBatch) {}
    func pass(over entity: String) -> ReadPass? { self.known }
    func passNumber(over entity: String) -> Int { self.known?.number ?? 0 }
    func write(_ reads: RecordBatch, pass: ReadPass?) throws {
      if let pass { self.written.append(pass) }
    }
  }

  /// A stage whose sink gets no rows, as a route makes one.
  private final class Nowhere: Transform {
    var kind: String { "nowhere" }
    func layout(for input: RecordLayout) throws -> RecordLayout { input }
    func bringsRows(of input: RecordLayout) -> Bool { input.entity != "T" }
    func apply(to batch: RecordBatch) throws {}
  }

  private static func store(_ sinks: [LineSink]) -> CheckpointedStore {
    CheckpointedStore(sinks: sinks.map { StagedSink($0) }, deadLetters: MemoryDeadLetters()) {
      _, _, _ in
    }
  }

  private static func pass(_ number: Int, rows: Int = 0) -> ReadPass {
    var pass = ReadPass(entity: "T", number: number, state: .reading)
    pass.job = "j"
    pass.rowCount = rows
    return pass
  }

  @Test("A pass resumes where all sinks are at the same place")
  func together() {
    let sinks: [LineSink] = [
      ReadingSink("a", Self.pass(2, rows: 7)), LineSink("lines"),
      ReadingSink("b", Self.pass(2, rows: 7)),
    ]
    #expect(Self.store(sinks).pass(over: "T") == Self.pass(2, rows: 7))
    #expect(Self.store(sinks).passNumber(over: "T") == 2)
  }

  @Test("All sinks get all records under a new pass number if one sink is new or behind")
  func apart() {
    for other in [nil, Self.pass(2, rows: 6), Self.pass(1, rows: 7)] {
      let store = Self.store([ReadingSink("a", Self.pass(2, rows: 7)), ReadingSink("b", other)])
      #expect(store.pass(over: "T") == nil)
      #expect(store.passNumber(over: "T") == 2)
    }
  }

  @Test("Standard output gets no records, and without files there is no recipient")
  func recipients() throws {
    let (files, lines) = (ReadingSink("files"), LineSink("lines"))
    let layout = RecordLayout(
      topic: "/data/T", schemaID: "s", entity: "T", family: .changeEvent, slotCount: 16,
      fieldOrder: [], columns: [])
    let store = Self.store([lines, files])
    #expect(store.takesReads(of: layout))
    try store.write(RecordBatch(layout: layout), pass: Self.pass(1))
    #expect(files.written == [Self.pass(1)])
    #expect(!Self.store([lines]).takesReads(of: layout))
  }

  @Test("A sink that the route sends no row of an object to has no pass over it, and delays none")
  func unreached() throws {
    func layout(_ entity: String) -> RecordLayout {
      RecordLayout(
        topic: "/data/\(entity)", schemaID: "s", entity: entity, family: .changeEvent,
        slotCount: 16, fieldOrder: [], columns: [])
    }
    let (reached, unreached) = (ReadingSink("a", Self.pass(2, rows: 7)), ReadingSink("b"))
    let sinks = [
      StagedSink(reached), StagedSink(unreached, stages: StageChain([Nowhere()], sink: "b")),
    ]
    let store = CheckpointedStore(sinks: sinks, deadLetters: MemoryDeadLetters()) { _, _, _ in }
    #expect(store.takesReads(of: layout("T")))
    #expect(store.pass(over: "T") == Self.pass(2, rows: 7))
    try store.write(RecordBatch(layout: layout("T")), pass: Self.pass(2, rows: 8))
    #expect(reached.written == [Self.pass(2, rows: 8)])
    #expect(unreached.written.isEmpty)
    try store.write(RecordBatch(layout: layout("U")), pass: Self.pass(1))
    #expect(unreached.written == [Self.pass(1)])
    let alone = CheckpointedStore(sinks: [sinks[1]], deadLetters: MemoryDeadLetters()) { _, _, _ in
    }
    #expect(!alone.takesReads(of: layout("T")))
  }
}
