import FoundationEssentials
import PubSubMessages
import SwiftProtobuf
import Testing

@testable import PubSubAPI

/// What the client sends and reads of ManagedSubscribe, against encodings made with the reference
/// protobuf runtime and against SwiftProtobuf.
@Suite("Messages of managed subscriptions") struct ManagedEncodingTests {
  static let replayID: Bytes = [0, 0, 0, 0, 0, 0, 0, 7, 0, 0]

  @Test("The first request names the subscription and asks for events")
  func firstRequest() throws {
    let byName = ManagedSubscription(
      record: .developerName("My_Sub"), topic: "/event/A__e", credit: 10)
    #expect(try byName.firstRequest.serializedBytes() == Bytes(hex: "12064d795f537562180a"))
    let byID = ManagedSubscription(record: .id("18x000000000001"), topic: "/event/A__e", credit: 1)
    #expect(
      try byID.firstRequest.serializedBytes() == Bytes(hex: "0a0f") + Array("18x000000000001".utf8)
        + Bytes(hex: "1801"))
  }

  @Test("A commit is sent alone or with credit")
  func commit() throws {
    let commit = ManagedCommit(id: "c1", replayID: Self.replayID)
    let alone = ManagedRequestQueue.Request(credit: 0, commit: commit).message
    #expect(
      try alone.serializedBytes() == Bytes(hex: "2a100a026331120a00000000000000070000"))
    let both = ManagedRequestQueue.Request(credit: 5, commit: commit).message
    #expect(
      try both.serializedBytes() == Bytes(hex: "18052a100a026331120a00000000000000070000"))
  }

  @Test("Only the newest of several waiting commits is sent, with all the credit")
  func queue() async {
    let queue = ManagedRequestQueue()
    queue.add(ManagedCommit(id: "c1", replayID: [1]))
    queue.add(3)
    queue.add(ManagedCommit(id: "c2", replayID: [2]))
    queue.add(4)
    queue.finish()
    #expect(
      await queue.next()
        == .init(credit: 7, commit: ManagedCommit(id: "c2", replayID: [2])))
    #expect(await queue.next() == nil)
  }

  @Test("Answers to commits are read, and elsewhere field 5 is unknown")
  func answers() throws {
    let stored = Bytes(hex: "2a170a026331120a000000000000000700002080d095ffbc31")
    let view = try FetchResponseView(parsing: stored, isManaged: true)
    let answer = try #require(view.commitAnswer)
    #expect(view.string(answer.requestID) == "c1")
    #expect(Bytes(view[answer.replayID]) == Self.replayID)
    #expect(answer.failure == nil)
    #expect(answer.processedAt == 1_700_000_000_000)
    #expect(try FetchResponseView(parsing: stored).commitAnswer == nil)

    let failed = try FetchResponseView(
      parsing: Bytes(hex: "2a0b0a0263311a050802120178"), isManaged: true)
    let failure = try #require(failed.commitAnswer?.failure)
    #expect(failure.code == 2)
    #expect(failed.string(failure.message) == "x")
  }

  @Test("A response without its first events is otherwise unchanged")
  func dropFirst() throws {
    let bytes = try Self.message(events: ["a", "b", "c"]).serializedBytes() as Bytes
    let rest = try FetchResponseView(parsing: bytes, isManaged: true).dropFirstEvents(2)
    #expect(rest.events.map { rest.string($0.eventID) } == ["c"])
    #expect(Bytes(rest[rest.latestReplayIDField]) == Self.replayID)
    #expect(rest.dropFirstEvents(9).events.isEmpty)
  }

  // MARK: SwiftProtobuf as oracle

  struct Content: Equatable {
    var response: FetchResponseViewTests.Content
    var hasAnswer: Bool
    var requestID = ""
    var replayID: Bytes = []
    var hasFailure = false
    var code: Int32 = 0
    var message = ""
    var processedAt: Int64 = 0

    init(_ view: FetchResponseView) {
      self.response = .init(view)
      self.hasAnswer = view.commitAnswer != nil
      guard let answer = view.commitAnswer else { return }
      self.requestID = view.string(answer.requestID)
      self.replayID = Bytes(view[answer.replayID])
      self.hasFailure = answer.failure != nil
      self.code = answer.failure?.code ?? 0
      self.message = answer.failure.map { view.string($0.message) } ?? ""
      self.processedAt = answer.processedAt
    }

    init(_ message: Eventbus_V1_ManagedFetchResponse) {
      self.response = .init(
        .with {
          $0.events = message.events
          $0.latestReplayID = message.latestReplayID
          $0.rpcID = message.rpcID
          $0.pendingNumRequested = message.pendingNumRequested
        })
      self.hasAnswer = message.hasCommitResponse
      guard message.hasCommitResponse else { return }
      let answer = message.commitResponse
      self.requestID = answer.commitRequestID
      self.replayID = Bytes(answer.replayID)
      self.hasFailure = answer.hasError
      self.code = Int32(answer.error.code.rawValue)
      self.message = answer.error.msg
      self.processedAt = answer.processTime
    }
  }

  static func message(events: [String]) -> Eventbus_V1_ManagedFetchResponse {
    .with {
      $0.events = events.map { id in
        .with {
          $0.event.id = id
          $0.replayID = Data(Self.replayID)
        }
      }
      $0.latestReplayID = Data(Self.replayID)
    }
  }

  static func randomMessage(using random: inout SeededGenerator) -> Eventbus_V1_ManagedFetchResponse
  {
    let plain = FetchResponseViewTests.randomMessage(using: &random)
    return .with {
      $0.events = plain.events
      $0.latestReplayID = plain.latestReplayID
      $0.rpcID = plain.rpcID
      $0.pendingNumRequested = plain.pendingNumRequested
      guard Bool.random(using: &random) else { return }
      $0.commitResponse.commitRequestID = plain.rpcID
      $0.commitResponse.replayID = plain.latestReplayID
      $0.commitResponse.processTime = Int64.random(in: .min ... .max, using: &random)
      guard Bool.random(using: &random) else { return }
      $0.commitResponse.error.code = .commit
      $0.commitResponse.error.msg = plain.rpcID
    }
  }

  static func compare(_ bytes: Bytes, _ note: @autoclosure () -> String) {
    let oracle = (try? Eventbus_V1_ManagedFetchResponse(serializedBytes: bytes)).map { Content($0) }
    let ours = (try? FetchResponseView(parsing: bytes, isManaged: true)).map { Content($0) }
    #expect(ours == oracle, "\(note()): \(bytes)")
  }

  @Test("Random messages are read as by SwiftProtobuf, complete and truncated anywhere")
  func randomAndTruncated() throws {
    var random = SeededGenerator(seed: 11)
    for round in 0..<60 {
      let bytes: Bytes = try Self.randomMessage(using: &random).serializedBytes()
      for length in 0...bytes.count {
        Self.compare(Bytes(bytes[..<length]), "round \(round), \(length) bytes")
      }
    }
  }

  @Test("Mutated messages are read or refused as by SwiftProtobuf")
  func mutated() throws {
    var random = SeededGenerator(seed: 12)
    for round in 0..<20_000 {
      var bytes: Bytes = try Self.randomMessage(using: &random).serializedBytes()
      for _ in 0..<Int.random(in: 1...4, using: &random) where !bytes.isEmpty {
        let index = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0...2, using: &random) {
        case 0: bytes[index] ^= 1 << UInt8.random(in: 0...7, using: &random)
        case 1: bytes.remove(at: index)
        default: bytes.insert(UInt8.random(in: 0...255, using: &random), at: index)
        }
      }
      Self.compare(bytes, "round \(round)")
    }
  }

  @Test("Random tags and lengths are read or refused as by SwiftProtobuf")
  func tagSoup() {
    let alphabet: Bytes =
      (1...5).flatMap { number in (0...5).map { UInt8(number << 3 | $0) } }
      + [0x2a, 0x2a, 0x2a, 0x1a, 0, 1, 2, 3, 4, 5, 6, 0x7f, 0x80, 0x61, 0xc3]
    var random = SeededGenerator(seed: 13)
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
      ("an answer in two parts merges", "2a040a026331 2a02 1201"),
      ("an error in two parts merges", "2a0c1a0208021a0612046f6f6f6f"),
      ("an answer as a number", "2801"),
      ("an empty answer", "2a00"),
      ("a negative time", "2a0b20ffffffffffffffffff01"),
      ("an unknown error code", "2a041a020863"),
      ("a name that is not UTF-8", "2a030a01ff"),
    ])
  func unusual(name: String, hex: String) { Self.compare(Bytes(hex: hex), name) }
}
