import JSON
import Pipeline
import PostgresClient
import Testing

@testable import PostgresSink

/// The decisions about a commit on its way, without a database.
@Suite("Sealed commits") struct SealedCommitTests {
  private static let topic = "/data/ThingChangeEvent"
  private static let error = PostgresError(
    .rejectedRow, "value is too long", sqlState: SQLState.stringDataRightTruncation)

  /// Sealed rows of events with the given ordinals, and of records that were read.
  private func rows(_ ordinals: [Int64], reads: [String] = []) -> PendingRows {
    let definition = TableDefinition(
      kind: .current, entity: "Thing", schema: "s", name: "thing",
      dataColumns: SampleTables.columns)
    let rows = PendingRows(
      topic: Self.topic, entity: "Thing",
      tables: LayoutTables(
        history: nil, current: definition, dataColumns: SampleTables.columns, columnIndices: []),
      PostgresSinkConfiguration(connection: PostgresConnectionConfiguration(url: "")),
      newestStamp: nil)
    for ordinal in ordinals {
      rows.open.append(
        SampleEvent(change: .create, recordID: "r\(ordinal)", ordinal: ordinal, time: 1),
        columns: SampleTables.columns)
    }
    for id in reads {
      rows.openReads.append(
        SampleRead(recordID: id, ordinal: 0, stamp: 7, readAt: 9), columns: SampleTables.columns)
    }
    rows.seal()
    return rows
  }

  private func refused(_ ordinal: Int64) -> RefusedEvent {
    RefusedEvent(topic: Self.topic, epoch: 1, ordinal: ordinal, reason: "no row", refusal: nil)
  }

  @Test("Care grows with each refusal, and at once for a refusal by the checks of COMMIT")
  func care() {
    var commit = SealedCommit(OpenCommit())
    #expect(commit.care == .none)
    commit.begin()
    commit.takeCare()
    #expect(commit.care == .savepoints)
    commit.begin()
    commit.takeCare()
    #expect(commit.care == .immediateConstraints)

    var late = SealedCommit(OpenCommit())
    late.isChecking = true
    late.takeCare()
    #expect(late.care == .immediateConstraints)
    late.begin()
    #expect(!late.isChecking && late.care == .immediateConstraints)
  }

  @Test("An event is refused once, however many of its rows are, and reported once")
  func refusals() {
    var content = OpenCommit()
    content.refused = [self.refused(1), self.refused(1), self.refused(2)]
    var commit = SealedCommit(content)
    let rows = self.rows([2, 3])
    commit.refusedRows = [0, 1, 1].map { .init(rows: rows, index: $0, error: Self.error) }
    #expect(commit.refused(by: "warehouse").map(\.ordinal) == [1, 2, 3])
    #expect(!commit.hasToldRefused(by: "warehouse"))
    #expect(commit.tellRefused(by: "warehouse").map(\.ordinal) == [1, 2, 3])

    // The next attempt refuses another row.
    commit.begin()
    #expect(commit.hasToldRefused(by: "warehouse"))
    commit.refusedRows = [.init(rows: self.rows([4]), index: 0, error: Self.error)]
    #expect(!commit.hasToldRefused(by: "warehouse"))
    let new = commit.tellRefused(by: "warehouse")
    #expect(new.map(\.ordinal) == [4])
    #expect(new[0].reason == "refused by the database (sink 'warehouse'): value is too long")
    #expect(commit.tellRefused(by: "warehouse").isEmpty)
  }

  @Test("Notes about refused events belong to the rows among which the events had their places")
  func letters() {
    let (one, other) = (self.rows([1, 2]), self.rows([3]))
    var content = OpenCommit()
    content.letters = [
      (one, ResyncTable.Entry(.deadLetter, recordID: nil, eventID: "e", replayID: nil))
    ]
    var commit = SealedCommit(content)
    commit.refusedRows = [
      .init(rows: one, index: 1, error: Self.error),
      .init(rows: other, index: 0, error: Self.error),
    ]
    #expect(commit.letters(among: one).map(\.recordID) == [nil, "r2"])
    #expect(commit.letters(among: other).map(\.recordID) == ["r3"])
  }

  @Test("Reads without a row are those that could not be encoded and those that were refused")
  func unreadable() {
    var content = OpenCommit()
    content.unreadable["Thing"] = [UnreadableRecord(recordID: "a", stamp: nil, reason: "too long")]
    var commit = SealedCommit(content)
    commit.refusedReads = [
      .init(rows: self.rows([], reads: ["b", "c"]), index: 1, error: Self.error)
    ]
    #expect(commit.unreadable["Thing"]?.map(\.recordID) == ["a", "c"])
    #expect(commit.unreadable["Thing"]?.last?.reason == "value is too long")
    commit.begin()
    #expect(commit.unreadable["Thing"]?.map(\.recordID) == ["a"])
  }

  @Test("A durable commit moves passes on, and counts refused reads of passes that it found open")
  func durable() {
    var reads = KnownReads(pipeline: "p", sink: "s", Bookkeeping(schema: "s"))
    var content = OpenCommit()
    content.passes["Thing"] = ReadPass(entity: "Thing", number: 2, state: .complete)
    var commit = SealedCommit(content)
    commit.refusedReads = [.init(rows: self.rows([], reads: ["a"]), index: 0, error: Self.error)]
    reads.committed(commit)
    #expect(reads.refused.isEmpty)
    #expect(reads.passes["Thing"]?.number == 2)
    #expect(!reads.isInPass("Thing") && reads.unfinishedPasses(over: "Thing").isEmpty)

    reads.passes["Thing"]?.pass?.state = .reading
    #expect(reads.isInPass("Thing"))
    #expect(reads.unfinishedPasses(over: "Thing").map(\.number) == [2])
    reads.committed(commit)
    #expect(reads.refused == ["Thing": 1])
    #expect(!reads.isInPass("Thing"))
  }

  @Test("Each hole is noted once, also over several commits")
  func holes() throws {
    let topic = Self.topic
    var ranges = MissingRanges(pipeline: "p", sink: "s", Bookkeeping(schema: "s"))
    func position(_ holes: Int64, epoch: Int64) -> [String: JSONValue] {
      [topic: ["holes": .integer(holes), "epoch": .integer(epoch)]]
    }
    #expect(ranges.holes(in: position(0, epoch: 1)).isEmpty)
    let first = ranges.holes(in: position(1, epoch: 2))
    #expect(first == [.init(topic: topic, epoch: 2, count: 1)])
    // A transaction that failed has noted nothing.
    #expect(ranges.holes(in: position(1, epoch: 2)) == first)
    ranges.noted(first)
    #expect(ranges.holes(in: position(1, epoch: 2)).isEmpty)
    #expect(ranges.holes(in: position(2, epoch: 3)).map(\.epoch) == [3])
  }
}
