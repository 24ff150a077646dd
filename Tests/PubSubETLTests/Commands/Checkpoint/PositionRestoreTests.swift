import JSON
import Pipeline
import Testing

@testable import FileSink
@testable import PubSubETL

@Suite("Restoring a position from manifests")
struct PositionRestoreTests {
  private static let since = "2026-02-15T00:00:00.000Z"

  private func files(_ lines: [String]) throws -> [ExportedFile] {
    try lines.map { try #require(ExportedFile(json: JSONValue(parsing: Array($0.utf8)))) }
  }

  private func outcome(
    _ sinks: [[String]], deadLetters: [String] = [], isChannel: Bool = false
  ) throws -> PositionRestore.Outcome {
    PositionRestore(
      topic: StateSample.topic, isChannel: isChannel, sinks: try sinks.map(self.files),
      deadLetters: try self.files(deadLetters), retainedSince: Self.since
    ).outcome
  }

  private func resumed(_ outcome: PositionRestore.Outcome) -> TopicPosition? {
    if case .goesOn(let position) = outcome { position } else { nil }
  }

  private func again(_ outcome: PositionRestore.Outcome) -> TopicPosition? {
    if case .readsAgain(let position, _) = outcome { position } else { nil }
  }

  @Test("Without files there is nothing to restore")
  func nothing() throws {
    #expect(try self.outcome([[]]) == .nothing)
  }

  @Test("Complete files of two dates resume after the last event in the same epoch")
  func complete() throws {
    let position = try #require(
      self.resumed(
        self.outcome([
          [
            StateSample.line(0...7, events: 5, replayIDs: ("00a0", "00a7")),
            StateSample.line(3...9, events: 5, replayIDs: ("00a3", "00a9")),
          ]
        ])))
    #expect(position.epoch == 1)
    #expect(position.nextOrdinal == 10)
    #expect(position.resume?.hex == "00a9")
    #expect(!position.hasOpenGroup)
  }

  @Test("Only the newest epoch counts")
  func epochs() throws {
    let position = try #require(
      self.resumed(
        self.outcome([
          [
            StateSample.line(0...99, replayIDs: ("0001", "0099")),
            StateSample.line(0...1, epoch: 2, replayIDs: ("00b0", "00b1")),
          ]
        ])))
    #expect(position.epoch == 2)
    #expect(position.nextOrdinal == 2)
    #expect(position.resume?.hex == "00b1")
  }

  @Test("An event that only a database refused is in the files and in a letter, and counts once")
  func refusedByDatabase() throws {
    let letter = StateSample.line(5...5, replayIDs: ("00a5", "00a5"), isDeadLetter: true)
    let position = try #require(
      self.resumed(
        self.outcome(
          [[StateSample.line(0...9, replayIDs: ("00a0", "00a9"))]], deadLetters: [letter])))
    #expect(position.epoch == 1 && position.nextOrdinal == 10)
  }

  @Test("A dead letter between files or at the end does not count as missing")
  func deadLetters() throws {
    let letters = [
      StateSample.line(3...3, replayIDs: ("00a3", "00a3"), isDeadLetter: true),
      StateSample.line(10...10, replayIDs: ("00b0", "00b0"), isDeadLetter: true),
    ]
    let position = try #require(
      self.resumed(
        self.outcome(
          [[StateSample.line(0...9, events: 9, replayIDs: ("00a0", "00a9"))]], deadLetters: letters)
      ))
    #expect(position.nextOrdinal == 11)
    #expect(position.resume?.hex == "00b0")
  }

  @Test("Events that only a file in progress had are read again in a new epoch")
  func hole() throws {
    let outcome = try self.outcome([
      [
        StateSample.line(0...4, replayIDs: ("00a0", "00a4")),
        // 6 to 8 of another date were still in progress.
        StateSample.line(5...9, events: 2, replayIDs: ("00a5", "00a9")),
      ]
    ])
    let position = try #require(self.again(outcome))
    #expect(position.epoch == 2)
    #expect(position.nextOrdinal == 0)
    #expect(position.resume?.hex == "00a4")
  }

  @Test("The sink that is behind decides, and one without files has the topic read again")
  func twoSinks() throws {
    let first = [
      StateSample.line(0...4, replayIDs: ("00a0", "00a4")),
      StateSample.line(5...9, replayIDs: ("00a5", "00a9")),
    ]
    #expect(self.resumed(try self.outcome([first, first]))?.nextOrdinal == 10)
    let behind = try #require(self.again(self.outcome([first, [first[0]]])))
    #expect(behind.resume?.hex == "00a4")
    #expect(behind.epoch == 2)
    let empty = try #require(self.again(self.outcome([first, []])))
    #expect(empty.start == .earliest)
    #expect(empty.epoch == 2)
  }

  private func tail(
    _ group: [String], after: String?, _ afterOrdinal: Int64?, _ ordinal: Int64
  )
    -> JSONValue
  {
    [
      "ordinal": .integer(ordinal), "after": after.map { .string($0) } ?? nil,
      "after_ordinal": afterOrdinal.map { .integer($0) } ?? nil,
      "group": .array(group.map { [.string($0), "001"] }),
    ]
  }

  @Test("A channel resumes after the closed ID and skips the group that files have")
  func channel() throws {
    let line = StateSample.line(
      0...9, replayIDs: ("00a0", "00a9"),
      resume: self.tail(["e8", "e9"], after: "00a7", 7, 9))
    let position = try #require(self.resumed(self.outcome([[line]], isChannel: true)))
    #expect(position.resume?.hex == "00a7")
    #expect(position.nextOrdinal == 10)
    var stream = StreamCursor(isChannel: true, stored: position)
    #expect(stream.reopen() == .after(ReplayID([0, 0xA7])))
    func judge(_ event: String) throws -> StreamCursor.Verdict {
      try [0, 0xA9].withUnsafeBufferPointer { replayID in
        try Array(event.utf8).withUnsafeBufferPointer { eventID in
          try Array("001".utf8).withUnsafeBufferPointer { recordIDs in
            try stream.judge(replayID: replayID, eventID: eventID, recordIDs: recordIDs)
          }
        }
      }
    }
    #expect(try judge("e8") == .repeated)
    #expect(try judge("e10") == .new)
    #expect(try judge("e9") == .repeated)
  }

  @Test("A channel group with an unknown start is read again from before it")
  func channelUnknown() throws {
    let first = StateSample.line(
      0...4, replayIDs: ("00a0", "00a4"), resume: self.tail(["e4"], after: "00a3", 3, 4))
    let unknown = StateSample.line(
      5...9, replayIDs: ("00a5", "00a9"), resume: self.tail(["e9"], after: nil, nil, 9))
    let position = try #require(self.again(self.outcome([[first, unknown]], isChannel: true)))
    // Closed, since the next file begins with another ID.
    #expect(position.resume?.hex == "00a4")
    let old = StateSample.line(0...9, replayIDs: ("00a0", "00a9"))
    let none = try #require(self.again(self.outcome([[old]], isChannel: true)))
    #expect(none.start == .earliest)
    #expect(none.epoch == 2)
    // A dead letter lay between the closed ID and the group.
    let letter = StateSample.line(
      0...9, replayIDs: ("00a0", "00a9"), resume: self.tail(["e9"], after: "00a7", 7, 9))
    let before = try #require(self.again(self.outcome([[letter]], isChannel: true)))
    #expect(before.resume?.hex == "00a7")
  }

  @Test("An expired replay ID is not used")
  func tooOld() throws {
    let old = "2026-02-14T23:59:59.000Z"
    let outcome = try self.outcome([[StateSample.line(0...9, committed: old)]])
    let position = try #require(self.again(outcome))
    #expect(position.start == .earliest)
    #expect(position.epoch == 2)
    // A hole that old cannot be filled any more; the rest is not read again for it.
    let holes = try self.outcome([
      [
        StateSample.line(0...9, events: 8, committed: old),
        StateSample.line(10...12, replayIDs: ("00b0", "00b2")),
      ]
    ])
    #expect(self.resumed(holes)?.resume?.hex == "00b2")
  }
}
