import Checkpoint
import Glibc
import JSON
import Pipeline
import TestSupport
import Testing

/// Whatever a run may store, the next run reads.
@Suite("Checkpoints of hostile events")
struct HostileCheckpointTests {
  private let root: TemporaryDirectory

  init() throws { self.root = try TemporaryDirectory() }

  private static let scalars: [Unicode.Scalar] = [
    "a", "Z", "0", "\"", "\\", "/", "é", "e", "\u{301}", "€", "😀", "\u{1}", "\n", "\u{1F}",
    "\u{7F}", "\u{2028}", "\u{FEFF}", "\u{FFFD}", "\u{10FFFF}", "\u{0}", "{", "]",
  ]

  private func text(upTo byteCount: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    let length = [0, 1, 36, byteCount].randomElement() ?? 0
    while bytes.count < length, let scalar = Self.scalars.randomElement() {
      let next = Array(String(scalar).utf8)
      if bytes.count + next.count > length { break }
      bytes += next
    }
    return bytes
  }

  private func replayID() -> [UInt8] {
    (0..<([1, 10, 10, 1024].randomElement() ?? 1)).map { _ in .random(in: 0...255) }
  }

  /// The position after some events with IDs that are accepted.
  private func position(isChannel: Bool) throws -> TopicPosition {
    var position = StreamCursor(isChannel: isChannel)
    for _ in 0..<Int.random(in: 1...20) {
      let replayID = self.replayID()
      var eventID: [UInt8] = []
      for _ in 0..<(isChannel ? Int.random(in: 1...4) : 1) {
        eventID = self.text(upTo: 1024)
        let recordIDs = self.text(upTo: 255)
        replayID.withUnsafeBufferPointer { replayID in
          eventID.withUnsafeBufferPointer { eventID in
            recordIDs.withUnsafeBufferPointer { recordIDs in
              _ = position.take(replayID: replayID, eventID: eventID, recordIDs: recordIDs)
            }
          }
        }
      }
      position.endResponse(
        replayID: ReplayID(replayID), eventID: eventID,
        confirmedAt: [
          0, 1_771_300_995_000, CommitTime.range.lowerBound, CommitTime.range.upperBound,
        ].randomElement() ?? 0)
      if Bool.random() {
        position.keepalive(ReplayID(Bool.random() ? [] : self.replayID()), now: 1)
      }
    }
    return position.stored
  }

  @Test("Positions are loaded as they were stored", arguments: [false, true])
  func positions(isChannel: Bool) throws {
    let store = try FileCheckpointStore(directory: self.root.path, pipeline: "p")
    for _ in 0..<60 {
      let topics = try (0..<3).map { ("/data/T\($0)", try self.position(isChannel: isChannel)) }
      let document = CheckpointDocument(
        pipeline: "p", org: "00D",
        topics: Dictionary(uniqueKeysWithValues: topics))
      try store.save(document)
      let loaded = try #require(try store.load())
      for (name, position) in topics {
        #expect(loaded.topics[name] == position)
      }
    }
  }

  @Test("A checkpoint too large to be read is not stored, and the previous one is kept")
  func tooLarge() throws {
    let store = try FileCheckpointStore(directory: self.root.path, pipeline: "p")
    let small = CheckpointDocument(
      pipeline: "p", org: "00D", topics: ["/data/T": TopicPosition(beginningEpoch: 1)])
    try store.save(small)
    // As events of one replay ID on a channel would make it.
    let row: JSONValue = ["event_id": .string(String(repeating: "e", count: 90_000))]
    let large = CheckpointDocument(
      pipeline: "p", org: "00D", topics: small.topics,
      sinks: ["s": SinkState(.array(Array(repeating: row, count: 800)))])
    let error = #expect(throws: CheckpointError.self) { try store.save(large) }
    #expect(error?.code == .tooLarge)
    #expect(error?.message.contains("that can be read back") == true)
    #expect(try store.load()?.topics == small.topics)
  }

  @Test(
    "A confirmation time outside the calendar does not confirm a position",
    arguments: [
      Int64.min, .max, CommitTime.range.upperBound + 1,
    ])
  func absurdConfirmation(time: Int64) throws {
    let json: JSONValue = [
      "epoch": 1, "next_ordinal": 1, "resume": "0a", "recent": [],
      "confirmed_at_ms": .integer(time),
    ]
    let position = try TopicPosition(json: json, topic: "/data/T")
    #expect(position.confirmedAt == nil && position.resume == ReplayID([10]))
  }

  @Test(
    "A position that no run can have stored is refused, and the error names the member",
    arguments: [
      ("resume", #"{"epoch":1,"next_ordinal":5,"resume":null,"recent":[]}"#),
      ("resume", #"{"epoch":1,"next_ordinal":5,"recent":[]}"#),
      ("recent", #"{"epoch":1,"next_ordinal":5,"resume":"0a","recent":5}"#),
      ("holes", #"{"epoch":1,"next_ordinal":5,"resume":"0a","holes":9223372036854775807}"#),
      (
        "open_group.durable",
        #"{"epoch":1,"next_ordinal":5,"resume":"0a","open_group":{"replay_id":"0b","durable":5}}"#
      ),
      (
        "open_group.durable",
        #"{"epoch":1,"next_ordinal":5,"resume":"0a","open_group":{"replay_id":"0b"}}"#
      ),
    ])
  func impossiblePositions(member: String, text: String) throws {
    let json = try JSONValue(parsing: text)
    let error = #expect(throws: TopicPositionError.self) {
      try TopicPosition(json: json, topic: "/data/T")
    }
    #expect(error?.description.contains("'\(member)'") == true)
  }

  @Test(
    "Times outside the calendar are refused", arguments: [Int64.min, .max, Int64.min + 1_000_000])
  func absurdTimes(time: Int64) throws {
    let directory = self.root.path
    let store = try FileCheckpointStore(directory: directory, pipeline: "p")
    for text in [
      #"{"version":1,"pipeline":"p","org":"o","saved_at_ms":\#(time),"topics":{},"sinks":{}}"#,
      #"{"version":1,"pipeline":"p","org":"o","saved_at_ms":1,"topics":{},"sinks":{},"#
        + #""removed_sinks":{"x":{"removed_at_ms":\#(time),"state":{},"positions":{}}}}"#,
    ] {
      try Array(text.utf8).withUnsafeBytes { bytes in
        let file = try #require(fopen("\(directory)/p.checkpoint.json", "w"))
        fwrite(bytes.baseAddress, 1, bytes.count, file)
        fclose(file)
      }
      let error = #expect(throws: CheckpointError.self) { try store.load() }
      #expect(error?.code == .damaged)
    }
  }
}
