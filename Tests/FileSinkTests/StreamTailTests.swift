import JSON
import Pipeline
import Testing

@testable import FileSink

@Suite("Tail of a stream")
struct StreamTailTests {
  private let batches = TestBatches()

  private func tail(_ events: [TestEvent], epochs: [Int] = []) -> StreamTail {
    var tail = StreamTail()
    var scratch: [UInt8] = []
    // A batch per event: groups span batches, as on channels.
    for (index, event) in events.enumerated() {
      for batch in self.batches.batches([event], epoch: epochs.isEmpty ? 1 : epochs[index]) {
        tail.advance(over: batch, count: batch.events.count, &scratch)
      }
    }
    return tail
  }

  private func text(_ bytes: [UInt8]?) -> String? {
    bytes.map { String(decoding: $0, as: UTF8.self) }
  }

  @Test("A group may span batches and entities, and the tail resumes before it")
  func group() throws {
    let tail = self.tail([
      TestEvent(number: 4),
      TestEvent(number: 5, replay: 50),
      TestEvent(number: 6, entity: "Account", replay: 50),
    ])
    let group = try #require(tail.group.group)
    #expect(self.text(group.replayID) == "r50")
    #expect(tail.ordinal == 6)
    #expect(group.rows.map { self.text($0.eventID) } == ["e5", "e6"])
    #expect(self.text(tail.after?.bytes) == "r4")
    #expect(tail.afterOrdinal == 4)
  }

  @Test("Inside a batch the tail covers the events so far")
  func insideBatch() throws {
    let batch = try #require(
      self.batches.batches([
        TestEvent(number: 0), TestEvent(number: 1, replay: 9), TestEvent(number: 2, replay: 9),
        TestEvent(number: 3),
      ]).first)
    let tails = (1...4).map { count in
      var tail = StreamTail()
      var scratch: [UInt8] = []
      tail.advance(over: batch, count: count, &scratch)
      return tail
    }
    #expect(tails.map(\.ordinal) == [0, 1, 2, 3])
    #expect(tails.map(\.group.count) == [1, 1, 2, 1])
    #expect(tails.map(\.afterOrdinal) == [nil, 0, 0, 2])
  }

  @Test("A copy advances independently")
  func copied() throws {
    let tail = self.tail([
      TestEvent(number: 1), TestEvent(number: 2, replay: 9), TestEvent(number: 3, replay: 9),
    ])
    var copy = self.tail([TestEvent(number: 7), TestEvent(number: 8, replay: 70)])
    copy.copy(tail)
    #expect(copy.json == tail.json)
    var scratch: [UInt8] = []
    for batch in self.batches.batches([TestEvent(number: 4)], epoch: 1) {
      copy.advance(over: batch, count: 1, &scratch)
    }
    #expect(copy.json == self.tail([TestEvent(number: 3, replay: 9), TestEvent(number: 4)]).json)
    #expect(tail.ordinal == 3 && tail.group.count == 2)
  }

  @Test(
    "Values that a run has not seen stay unknown, and a new epoch starts without the last one's")
  func unknown() {
    #expect(StreamTail().json == nil)
    #expect(self.tail([TestEvent(number: 7)]).after == nil)
    let other = self.tail([TestEvent(number: 8), TestEvent(number: 0)], epochs: [1, 2])
    #expect(other.after == nil)
    #expect(other.epoch == 2)
  }

  @Test("The manifest's line is read back, even without a tail")
  func line() throws {
    let tail = self.tail([
      TestEvent(number: 4), TestEvent(number: 5), TestEvent(number: 6, replay: 5),
    ])
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
