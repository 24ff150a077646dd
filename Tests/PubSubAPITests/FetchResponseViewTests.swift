import FoundationEssentials
import PubSubMessages
import SwiftProtobuf
import Testing

@testable import PubSubAPI

@Suite("Reading fetch responses") struct FetchResponseViewTests {
  /// What both readers can be compared by.
  struct Content: Equatable {
    struct Event: Equatable {
      var eventID: String
      var schemaID: String
      var payload: Bytes
      var replayID: Bytes
    }
    var events: [Event]
    var latestReplayID: Bytes
    var rpcID: String
    var pendingCredit: Int

    init(_ view: FetchResponseView) {
      self.events = view.events.map {
        Event(
          eventID: view.string($0.eventID), schemaID: view.string($0.schemaID),
          payload: Bytes(view[$0.payload]), replayID: Bytes(view[$0.replayID]))
      }
      self.latestReplayID = Bytes(view[view.latestReplayIDField])
      self.rpcID = view.string(view.rpcID)
      self.pendingCredit = view.pendingCredit
    }

    init(_ message: Eventbus_V1_FetchResponse) {
      self.events = message.events.map {
        Event(
          eventID: $0.event.id, schemaID: $0.event.schemaID, payload: Bytes($0.event.payload),
          replayID: Bytes($0.replayID))
      }
      self.latestReplayID = Bytes(message.latestReplayID)
      self.rpcID = message.rpcID
      self.pendingCredit = Int(message.pendingNumRequested)
    }
  }

  /// Both readers give the same content, or both refuse.
  static func compare(_ bytes: Bytes, _ note: @autoclosure () -> String) {
    let oracle = (try? Eventbus_V1_FetchResponse(serializedBytes: bytes)).map { Content($0) }
    let ours = (try? FetchResponseView(parsing: bytes)).map { Content($0) }
    #expect(ours == oracle, "\(note()): \(bytes)")
  }

  static func randomMessage(using random: inout SeededGenerator) -> Eventbus_V1_FetchResponse {
    func bytes(_ range: ClosedRange<Int>) -> Data {
      Data(
        (0..<Int.random(in: range, using: &random)).map { _ in
          UInt8.random(in: 0...255, using: &random)
        })
    }
    func text() -> String {
      let scalars: [Unicode.Scalar] = ["a", "Z", "0", "é", "€", "😀", "\u{0}", "\u{10FFFF}"]
      var text = ""
      for _ in 0..<Int.random(in: 0...6, using: &random) {
        text.unicodeScalars.append(scalars.randomElement(using: &random) ?? "a")
      }
      return text
    }
    return .with {
      for _ in 0..<Int.random(in: 0...4, using: &random) {
        let event = Eventbus_V1_ConsumerEvent.with {
          $0.event.id = text()
          $0.event.schemaID = text()
          $0.event.payload = bytes(0...200)
          if Bool.random(using: &random) {
            $0.event.headers = [
              .with {
                $0.key = text()
                $0.value = bytes(0...3)
              }
            ]
          }
          $0.replayID = bytes(0...10)
        }
        $0.events.append(event)
      }
      $0.latestReplayID = bytes(0...10)
      $0.rpcID = text()
      $0.pendingNumRequested = Int32.random(in: -2...200, using: &random)
    }
  }

  @Test("Random messages are read as by SwiftProtobuf, complete and truncated anywhere")
  func randomAndTruncated() throws {
    var random = SeededGenerator(seed: 1)
    for round in 0..<60 {
      let bytes: Bytes = try Self.randomMessage(using: &random).serializedBytes()
      for length in 0...bytes.count {
        Self.compare(Bytes(bytes[..<length]), "round \(round), \(length) bytes")
      }
    }
  }

  @Test("Mutated messages are read or refused as by SwiftProtobuf")
  func mutated() throws {
    var random = SeededGenerator(seed: 2)
    for round in 0..<20_000 {
      var bytes: Bytes = try Self.randomMessage(using: &random).serializedBytes()
      for _ in 0..<Int.random(in: 1...4, using: &random) where !bytes.isEmpty {
        let index = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0...3, using: &random) {
        case 0: bytes[index] ^= 1 << UInt8.random(in: 0...7, using: &random)
        case 1: bytes[index] = UInt8.random(in: 0...255, using: &random)
        case 2: bytes.remove(at: index)
        default: bytes.insert(UInt8.random(in: 0...255, using: &random), at: index)
        }
      }
      Self.compare(bytes, "round \(round)")
    }
  }

  @Test("Random tags and lengths are read or refused as by SwiftProtobuf")
  func tagSoup() {
    // Tags of fields 1 to 5 with every wire type, short lengths, and what ends or breaks varints.
    let alphabet: Bytes =
      (1...5).flatMap { number in (0...7).map { UInt8(number << 3 | $0) } }
      + [0, 1, 2, 3, 4, 0x7f, 0x80, 0xff, 0x61, 0xc3, 0xa9]
    var random = SeededGenerator(seed: 3)
    for round in 0..<100_000 {
      let bytes = (0..<Int.random(in: 0...24, using: &random)).map { _ in
        alphabet.randomElement(using: &random) ?? 0
      }
      Self.compare(bytes, "round \(round)")
    }
  }

  @Test(
    "Legal but unusual encodings are read",
    arguments: [
      ("event in two parts merges", "0a0c 0a03 0a0161 0a05 1201531a00"),
      ("second part replaces the ID only", "0a0e 0a06 0a0161120153 0a04 0a02 6262"),
      ("last replay ID counts", "12010112020203"),
      ("pending as negative int32", "20ffffffffffffffffff01"),
      ("pending of more than 32 bits", "208180808010"),
      ("pending as a length", "2201ff"),
      ("unknown fields of every wire type", "2801 31 0102030405060708 3a0161 45 01020304"),
      ("a group", "2b 0801 33 34 2c"),
      ("a group that is not closed", "2b 0801"),
      ("a group closed by another number", "2b 34"),
      ("an end without a start", "2c"),
      ("a tag in more bytes than needed", "a0 80 00 05"),
      ("a tag in five bytes", "a080808000 05"),
      ("a tag in six bytes", "a08080808000 05"),
      ("a large tag in six bytes", "1010 f8efefef8a00 00"),
      ("a tag in six bytes in an event", "0a07 a08080808000 05"),
      ("a tag in six bytes in a group", "2b a08080808000 05 2c"),
      ("a tag in ten bytes in a group", "2b a0808080808080808000 05 2c"),
      ("field number 0", "0001"),
      ("wire type 6", "0e00"),
      ("invalid UTF-8 in an overridden string", "1a01ff 1a0161"),
      ("surrogate in UTF-8", "1a03eda080"),
      ("overlong UTF-8", "1a02c080"),
      ("invalid UTF-8 in a header", "0a07 0a05 2203 0a01ff"),
      ("11-byte varint", "20ffffffffffffffffffff01"),
      ("length beyond 64 bits", "0affffffffffffffffff7f"),
      ("length of 2^63", "0a80808080808080808001"),
    ])
  func unusual(name: String, hex: String) { Self.compare(Bytes(hex: hex), name) }

  @Test(
    "Groups may nest as deep as SwiftProtobuf allows",
    arguments: [1, 96, 97, 98, 99, 100, 101, 200])
  func nestedGroups(depth: Int) {
    let group = Bytes(repeating: 0x2b, count: depth) + Bytes(repeating: 0x2c, count: depth)
    Self.compare(group, "groups in the response")
    func nested(_ body: Bytes) -> Bytes {
      var length: Bytes = []
      var rest = body.count
      while rest > 127 {
        length.append(UInt8(rest & 127) | 128)
        rest >>= 7
      }
      return [0x0a] + length + [UInt8(rest)] + body
    }
    Self.compare(nested(group), "groups in a ConsumerEvent")
    Self.compare(nested(nested(group)), "groups in a ProducerEvent")
  }

  @Test("More events than the limit are refused before they take memory")
  func eventLimit() throws {
    let bytes = Bytes((0..<5).flatMap { _ in [0x0a, 0x00] as Bytes })
    #expect(try FetchResponseView(parsing: bytes, maxEvents: 5).events.count == 5)
    let error = #expect(throws: FetchResponseError.self) {
      try FetchResponseView(parsing: bytes, maxEvents: 4)
    }
    #expect(error?.code == .limitExceeded)
  }

  @Test("An error names the byte offset and no content")
  func errorText() throws {
    let error = #expect(throws: FetchResponseError.self) {
      try FetchResponseView(parsing: Bytes(hex: "12020102 1a01ff"))
    }
    #expect(error?.code == .invalidUTF8)
    #expect(error?.offset == 6)
    #expect(
      error?.description == "FetchResponse unreadable at byte 6: a string that is not UTF-8")
  }
}

/// SplitMix64: the same numbers in every run.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64
  init(seed: UInt64) { self.state = seed }
  mutating func next() -> UInt64 {
    self.state &+= 0x9e37_79b9_7f4a_7c15
    var z = self.state
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }
}
