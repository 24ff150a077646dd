import JSON
import Pipeline
import Testing

@testable import FileSink

@Suite("Tail of a stream")
struct StreamTailTests {
  private let batches = TestBatches()

  private func tail(_ events: [TestEvent], epochs: [Int] = []) -> StreamTail? {
    var tail: StreamTail?
    // A batch per event: groups span batches, as on channels.
    for (index, event) in events.enumerated() {
      for batch in self.batches.batches([event], epoch: epochs.isEmpty ? 1 : epochs[index]) {
        tail = StreamTail(tail, batch, count: batch.events.count)
      }
    }
    return tail
  }

  private func text(_ bytes: [UInt8]?) -> String? {
    bytes.map { String(decoding: $0, as: UTF8.self) }
  }

  @Test("A group spans batches and entities; the place before it is closed")
  func group() throws {
    let tail = try #require(
      self.tail([
        TestEvent(number: 4),
        TestEvent(number: 5, replay: 50),
        TestEvent(number: 6, entity: "Account", replay: 50),
      ]))
    #expect(self.text(tail.replayID) == "r50")
    #expect(tail.ordinal == 6)
    #expect(tail.group.map { self.text($0.eventID) } == ["e5", "e6"])
    #expect(self.text(tail.after?.replayID) == "r4")
    #expect(tail.after?.ordinal == 4)
  }

  @Test("Inside a batch the tail is that of the events so far")
  func insideBatch() throws {
    let batch = try #require(
      self.batches.batches([
        TestEvent(number: 0), TestEvent(number: 1, replay: 9), TestEvent(number: 2, replay: 9),
        TestEvent(number: 3),
      ]).first)
    let tails = (1...4).map { StreamTail(nil, batch, count: $0) }
    #expect(tails.map(\.ordinal) == [0, 1, 2, 3])
    #expect(tails.map(\.group.count) == [1, 1, 2, 1])
    #expect(tails.map { $0.after?.ordinal } == [nil, 0, 0, 2])
  }

  @Test("What a run has not seen is not made up, and an epoch knows nothing of the one before")
  func unknown() throws {
    let first = try #require(self.tail([TestEvent(number: 7)]))
    #expect(first.after == nil)
    let other = try #require(
      self.tail([TestEvent(number: 8), TestEvent(number: 0)], epochs: [1, 2]))
    #expect(other.after == nil)
    #expect(other.epoch == 2)
  }

  @Test("The manifest's line is read back; lines without a tail are, too")
  func line() throws {
    let tail = try #require(
      self.tail([TestEvent(number: 4), TestEvent(number: 5), TestEvent(number: 6, replay: 5)]))
    var members = [
      ("name", "a"), ("org", "o"), ("topic", "t"), ("first_replay_id", "00"),
      ("last_replay_id", "01"),
    ].map { JSONMember($0, .string($1)) }
    members += ["events", "bytes", "epoch", "first_ordinal", "last_ordinal"].map {
      JSONMember($0, 1)
    }
    #expect(ExportedFile(json: JSONValue(.object(members)))?.tail == nil)
    members.append(JSONMember("resume", tail.json))
    let read = try #require(ExportedFile(json: JSONValue(.object(members)))?.tail)
    #expect(read.ordinal == 6)
    #expect(read.after == ReplayID(Array("r4".utf8)).hex)
    #expect(read.afterOrdinal == 4)
    #expect(read.group.map(\.eventID) == ["e5", "e6"])
  }
}
