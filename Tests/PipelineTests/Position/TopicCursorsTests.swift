import Testing

@testable import Pipeline

@Suite("Positions of several stores")
struct TopicCursorsTests {
  private static func id(_ number: Int) -> [UInt8] {
    withUnsafeBytes(of: UInt64(number).bigEndian) { Array($0) } + [0, 0]
  }

  /// Judges one event, and takes it for the stores for which it is new.
  private static func pass(_ number: Int, to cursors: inout TopicCursors) throws -> StoreSet {
    try Self.id(number).withUnsafeBufferPointer { replayID in
      try Array("event-\(number)".utf8).withUnsafeBufferPointer { eventID in
        let none = UnsafeBufferPointer<UInt8>(start: nil, count: 0)
        let recipients = try cursors.judge(
          replayID: replayID, eventID: eventID, recordIDs: none)
        if !recipients.isEmpty {
          _ = cursors.take(
            for: recipients, replayID: replayID, eventID: eventID, recordIDs: none)
          cursors.endResponse(
            replayID: ReplayID(replayID), eventID: Array(eventID), confirmedAt: 1)
        }
        return recipients
      }
    }
  }

  @Test(
    "After a crash between the stores, a commit of any size skips the store that already has it",
    arguments: [1, 10_000, 10_001, 25_000])
  func largeCommit(eventCount: Int) throws {
    var cursors = TopicCursors(isChannel: false, stored: [nil, nil])
    _ = cursors.reopen(start: .earliest)
    _ = try Self.pass(1, to: &cursors)
    let behind = cursors.stores[1].stored
    for number in 2...(eventCount + 1) { _ = try Self.pass(number, to: &cursors) }
    let ahead = cursors.stores[0].stored

    cursors = TopicCursors(isChannel: false, stored: [ahead, behind])
    #expect(cursors.reopen(start: nil) == .after(ReplayID(Self.id(1))))
    var second = StoreSet()
    second.insert(1)
    for number in 2...(eventCount + 1) {
      #expect(try Self.pass(number, to: &cursors) == second)
    }
    var both = second
    both.insert(0)
    #expect(try Self.pass(eventCount + 2, to: &cursors) == both)
  }

  @Test("The wait for the last event of the store that is ahead is limited")
  func lastEventNeverComes() throws {
    var cursors = TopicCursors(isChannel: false, stored: [nil, nil])
    _ = cursors.reopen(start: .earliest)
    _ = try Self.pass(1, to: &cursors)
    let behind = cursors.stores[1].stored
    _ = try Self.pass(2_000_000, to: &cursors)
    cursors = TopicCursors(isChannel: false, stored: [cursors.stores[0].stored, behind])
    _ = cursors.reopen(start: nil)
    for number in 2...10_001 { _ = try Self.pass(number, to: &cursors) }
    #expect(throws: PassedPositionError.self) { try Self.pass(10_002, to: &cursors) }
  }
}
