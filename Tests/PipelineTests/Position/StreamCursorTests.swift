import JSON
import Testing

@testable import Pipeline

@Suite("Stream cursor") struct StreamCursorTests {
  @Test("A single-entity topic resumes after the last event of a response")
  func closesAtResponseEnd() {
    var stream = Stream(isChannel: false)
    #expect(stream.position.reopen() == nil)
    #expect(stream.response([1, 2, 3]) == [.new, .new, .new])
    #expect(stream.position.reopen() == .after(id(3)))
    #expect(stream.position.ordinal == 3)
  }

  @Test("A channel resumes before the last ID until another ID has followed")
  func keepsGroupOpen() {
    var stream = Stream(isChannel: true)
    _ = stream.response([1, 2])
    #expect(stream.position.reopen() == .after(id(1)))
  }

  @Test("An empty response closes the group and may advance the position")
  func keepaliveCloses() {
    var stream = Stream(isChannel: true)
    _ = stream.response([1, 2])
    stream.position.keepalive(id(9), now: 0)
    #expect(stream.position.reopen() == .after(id(9)))
  }

  @Test("A keepalive never moves a position backwards")
  func keepaliveVeto() {
    var stream = Stream(isChannel: false)
    _ = stream.response([5])
    stream.position.keepalive(id(4), now: 0)
    #expect(stream.position.reopen() == .after(id(5)))
  }

  @Test("Repeated rows of an open group are dropped, and its other rows are not")
  func resumesInsideGroup() throws {
    var stream = Stream(isChannel: true)
    _ = stream.response([1])
    _ = stream.response([2], records: ["a"])
    var resumed = try stream.stored()
    #expect(resumed.position.reopen() == .after(id(1)))
    #expect(resumed.response([2], records: ["a"]) == [.repeated])
    #expect(resumed.response([2], records: ["b"]) == [.new])
    #expect(resumed.response([3]) == [.new])
    #expect(resumed.position.ordinal == 4)
    #expect(resumed.position.reopen() == .after(id(2)))
  }

  @Test("A group that commits split at any place is exported exactly once", arguments: 1...4)
  func everyCutOfAGroup(cut: Int) throws {
    let records = ["a", "b", "c", "d"]
    var stream = Stream(isChannel: true)
    _ = stream.response([1])
    for record in records[..<cut] { _ = stream.response([7], records: [record]) }
    var resumed = try stream.stored()
    _ = resumed.position.reopen()
    let verdicts = records.flatMap { resumed.response([7], records: [$0]) }
    #expect(verdicts == records.indices.map { $0 < cut ? .repeated : .new })
  }

  @Test("Events sent again after a resume are dropped up to the first new one")
  func dropsResent() throws {
    var stream = Stream(isChannel: false)
    _ = stream.response(Array(1...200))
    var resumed = try stream.stored()
    _ = resumed.position.reopen()
    #expect(resumed.response([199, 200]) == [.repeated, .repeated])
    #expect(resumed.response([201, 200]) == [.new, .new])
  }

  @Test("A position of an earlier version, with both IDs of recent events, resumes exactly")
  func earlierForm() throws {
    // As version 1 stored 130 events of a topic, of which it kept the last 128.
    let recent = (3...130).map { number -> JSONValue in
      [.string(id(number).hex), .string("event-\(number)")]
    }
    let last = id(130).hex
    let stored: JSONValue = [
      "epoch": 2, "next_ordinal": 130, "resume": .string(last),
      "last_event": ["replay_id": .string(last), "event_id": "event-130"],
      "recent": .array(recent), "confirmed_at_ms": 1, "holes": 1,
    ]
    let position = try TopicPosition(json: stored, topic: "/t")
    #expect(try TopicPosition(json: position.json, topic: "/t") == position)
    #expect(position.json["recent"]?.string?.utf8.count == 1368)
    for first in [3, 77, 130] {
      var resumed = Stream(isChannel: false, stored: position)
      #expect(resumed.position.reopen() == .after(id(130)))
      let repeated = Array(first...130)
      #expect(resumed.response(repeated).allSatisfy { $0 == .repeated })
      #expect(resumed.response([131]) == [.new])
      #expect(resumed.position.ordinal == 131 && resumed.position.epoch == 2)
    }
    // What a cursor of this version stores after the same events is the same.
    var stream = Stream(isChannel: false)
    _ = stream.response(Array(1...130))
    #expect(stream.position.stored.recent == position.recent)
    // Forgotten events are new.
    var resumed = Stream(isChannel: false, stored: position)
    _ = resumed.position.reopen()
    #expect(resumed.response([2]) == [.new])
  }

  @Test("Recent events that are not hashes of eight bytes are refused")
  func damagedRecent() throws {
    for text in ["AAAA", "!", "AAAAAAAAAAA"] {
      let json: JSONValue = [
        "epoch": 1, "next_ordinal": 1, "resume": "0a", "recent": .string(text),
      ]
      #expect(throws: TopicPositionError.self) { try TopicPosition(json: json, topic: "/t") }
    }
  }

  @Test("Recent events are recognized by both IDs, and by where one ends and the other begins")
  func recentHashes() {
    var recent = RecentEvents()
    func withIDs<Result>(
      _ replayID: String, _ eventID: String,
      _ body: (UnsafeBufferPointer<UInt8>, UnsafeBufferPointer<UInt8>) -> Result
    ) -> Result {
      Array(replayID.utf8).withUnsafeBufferPointer { replayID in
        Array(eventID.utf8).withUnsafeBufferPointer { body(replayID, $0) }
      }
    }
    withIDs("12345678ab", "event") { recent.append(replayID: $0, eventID: $1) }
    let isKnown = { (replayID: String, eventID: String) -> Bool in
      withIDs(replayID, eventID) { recent.contains(replayID: $0, eventID: $1) }
    }
    #expect(isKnown("12345678ab", "event"))
    #expect(!isKnown("12345678abe", "vent") && !isKnown("12345678a", "bevent"))
    #expect(!isKnown("12345678ab", "event\0") && !isKnown("12345678ac", "event"))
    #expect(!isKnown("", ""))
  }

  @Test("SipHash gives the results of its authors' test vectors")
  func sipHash() {
    // vectors_sip64 of the reference implementation, for 0, 8, 16 and 24 bytes 00 01 02 …
    let words: [UInt64] = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908, 0x1716_1514_1312_1110]
    let results: [UInt64] = [
      0x726f_db47_dd0e_0e31, 0x93f5_f579_9a93_2462, 0x3f2a_cc7f_57c2_9bdb, 0xb8ad_50c6_f649_af94,
    ]
    for (count, result) in results.enumerated() {
      var hash = SipHash()
      for word in words[..<count] { hash.add(word) }
      #expect(hash.finish() == result)
    }
  }

  @Test("A new epoch starts without a position and counts from zero")
  func newEpoch() {
    var stream = Stream(isChannel: false)
    _ = stream.response([1, 2])
    stream.position.begin(epoch: 2)
    #expect(stream.position.reopen() == nil)
    #expect(stream.position.epoch == 2)
    #expect(stream.position.ordinal == 0)
    #expect(stream.response([1]) == [.new])
  }

  @Test("A stored position that lacks a member is refused by name")
  func refusesDamage() throws {
    var stream = Stream(isChannel: true)
    _ = stream.response([1, 2])
    let json = stream.position.stored.json
    let members = try #require(json.members)
    for required in ["epoch", "next_ordinal"] {
      let damaged = JSONValue(.object(members.filter { $0.name != required }))
      #expect(throws: TopicPositionError.self) { try TopicPosition(json: damaged, topic: "/t") }
      // Nor may it leave no room to count on, or for the digits of a file name.
      for number in [Int64.min, -1, 999_999_999_999_999_999, .max] {
        let damaged = JSONValue(
          .object(members.map { $0.name == required ? JSONMember(required, .integer(number)) : $0 })
        )
        #expect(throws: TopicPositionError.self) { try TopicPosition(json: damaged, topic: "/t") }
      }
    }
  }

  @Test("A start set by hand is stored until there is a place to resume from")
  func chosenStart() throws {
    let json = TopicPosition(beginningEpoch: 4, start: .earliest, holes: 2).json
    let stored = try TopicPosition(json: json, topic: "/t")
    #expect(stored.isResumable)
    var position = StreamCursor(isChannel: false, stored: stored)
    #expect(position.reopen() == .earliest)
    #expect(position.stored.start == .earliest)
    position.keepalive(ReplayID([1]), now: 5)
    #expect(position.reopen() == .after(ReplayID([1])))
    #expect(position.stored.start == nil)
    #expect(position.stored.holes == 2)
    position.begin(epoch: 5)
    #expect(position.stored.holes == 3)
    #expect(position.reopen() == nil)
  }
}

private func id(_ number: Int) -> ReplayID {
  ReplayID([0, 0, 0, 0, 0, 0, UInt8(number >> 8), UInt8(number & 255), 0, 0])
}

/// Feeds a position the way the runner does.
private struct Stream {
  var position: StreamCursor

  init(isChannel: Bool, stored: TopicPosition? = nil) {
    self.position = StreamCursor(isChannel: isChannel, stored: stored)
  }

  /// Takes events with these replay IDs; the event ID follows from it.
  mutating func response(
    _ numbers: [Int], records: [String] = [""]
  ) -> [StreamCursor.Verdict] {
    var verdicts: [StreamCursor.Verdict] = []
    for number in numbers {
      for record in records {
        let replay = id(number).bytes
        let event = Array("event-\(number)".utf8)
        replay.withUnsafeBufferPointer { replayID in
          event.withUnsafeBufferPointer { eventID in
            Array(record.utf8).withUnsafeBufferPointer { key in
              guard
                let verdict = try? self.position.judge(
                  replayID: replayID, eventID: eventID, recordIDs: key)
              else {
                Issue.record("the position was passed")
                return
              }
              verdicts.append(verdict)
              guard verdict == .new else { return }
              _ = self.position.take(replayID: replayID, eventID: eventID, recordIDs: key)
            }
            guard verdicts.last == .new else { return }
            self.position.endResponse(replayID: id(number), eventID: event, confirmedAt: 1)
          }
        }
      }
    }
    return verdicts
  }

  /// The position as a later run finds it.
  func stored() throws -> Stream {
    var copy = self
    let json = self.position.stored.json
    let stored = try TopicPosition(json: json, topic: "/t")
    #expect(stored == self.position.stored)
    copy.position = StreamCursor(
      isChannel: !self.position.closesAtResponseEnd, stored: stored)
    return copy
  }
}
