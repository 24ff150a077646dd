import FoundationEssentials
import GRPCCore
import PubSubMessages
import SwiftProtobuf
import Testing

@testable import PubSubAPI

/// Encodings made with the reference protobuf runtime (TheService.md#wire-format).
@Suite("Messages of the reference runtime") struct GoldenEncodingTests {
  struct Golden: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var message: any (Message & Sendable)
    var hex: String

    init(_ description: String, _ hex: String, _ message: any (Message & Sendable)) {
      self.testDescription = description
      self.message = message
      self.hex = hex
    }
  }

  /// The replay ID 00000000000000`number`0000.
  static func replayID(_ number: UInt8) -> [UInt8] { [0, 0, 0, 0, 0, 0, 0, number, 0, 0] }

  static let goldens: [Golden] = [
    Golden(
      "first request, LATEST is not written",
      "0a122f646174612f4368616e67654576656e74732064",
      Eventbus_V1_FetchRequest.with {
        $0.topicName = "/data/ChangeEvents"
        $0.replayPreset = .latest
        $0.numRequested = 100
      }),
    Golden(
      "first request, EARLIEST",
      "0a182f646174612f4163636f756e744368616e67654576656e7410012001",
      Eventbus_V1_FetchRequest.with {
        $0.topicName = "/data/AccountChangeEvent"
        $0.replayPreset = .earliest
        $0.numRequested = 1
      }),
    Golden(
      "first request, CUSTOM",
      "0a0f2f6576656e742f4f726465725f5f6510021a0a000000000017905000002019",
      Eventbus_V1_FetchRequest.with {
        $0.topicName = "/event/Order__e"
        $0.replayPreset = .custom
        $0.replayID = .init([0, 0, 0, 0, 0, 0x17, 0x90, 0x50, 0, 0])
        $0.numRequested = 25
      }),
    Golden("top-up", "2032", Eventbus_V1_FetchRequest.with { $0.numRequested = 50 }),
    Golden(
      "keepalive",
      "120a000000000017905e00001a03722d312064",
      Eventbus_V1_FetchResponse.with {
        $0.latestReplayID = .init([0, 0, 0, 0, 0, 0x17, 0x90, 0x5e, 0, 0])
        $0.rpcID = "r-1"
        $0.pendingNumRequested = 100
      }),
    Golden(
      "response with one event",
      "0a1a0a0c0a03652d311201531a020102120a00000000000000070000"
        + "120a000000000000000700001a03722d322063",
      Eventbus_V1_FetchResponse.with {
        $0.events = [
          .with {
            $0.event.id = "e-1"
            $0.event.schemaID = "S"
            $0.event.payload = .init([1, 2])
            $0.replayID = .init(Self.replayID(7))
          }
        ]
        $0.latestReplayID = .init(Self.replayID(7))
        $0.rpcID = "r-2"
        $0.pendingNumRequested = 99
      }),
    Golden(
      "schema request",
      "0a165f43414445337161656758334543455730726c625941",
      Eventbus_V1_SchemaRequest.with { $0.schemaID = "_CADE3qaegX3ECEW0rlbYA" }),
    Golden(
      "topic information",
      "0a0b2f6576656e742f4f5f5f65120d434f52452f70726f642f30304420012a0153320172",
      Eventbus_V1_TopicInfo.with {
        $0.topicName = "/event/O__e"
        $0.tenantGuid = "CORE/prod/00D"
        $0.canSubscribe = true
        $0.schemaID = "S"
        $0.rpcID = "r"
      }),
    Golden(
      "managed request",
      "12064d795f537562180a",
      Eventbus_V1_ManagedFetchRequest.with {
        $0.developerName = "My_Sub"
        $0.numRequested = 10
      }),
    Golden(
      "managed commit",
      "2a100a026331120a00000000000000070000",
      Eventbus_V1_ManagedFetchRequest.with {
        $0.commitReplayIDRequest.commitRequestID = "c1"
        $0.commitReplayIDRequest.replayID = .init(Self.replayID(7))
      }),
    Golden(
      "managed commit acknowledged",
      "2a170a026331120a000000000000000700002080d095ffbc31",
      Eventbus_V1_ManagedFetchResponse.with {
        $0.commitResponse.commitRequestID = "c1"
        $0.commitResponse.replayID = .init(Self.replayID(7))
        $0.commitResponse.processTime = 1_700_000_000_000
      }),
    Golden(
      "managed commit failed",
      "2a0b0a0263311a050802120178",
      Eventbus_V1_ManagedFetchResponse.with {
        $0.commitResponse.commitRequestID = "c1"
        $0.commitResponse.error.code = .commit
        $0.commitResponse.error.msg = "x"
      }),
    Golden(
      "one event published, one refused",
      "0a100a0a000000000000000800001a026b310a0d1207080112036261641a026b321201531a0172",
      Eventbus_V1_PublishResponse.with {
        $0.results = [
          .with {
            $0.replayID = .init(Self.replayID(8))
            $0.correlationKey = "k1"
          },
          .with {
            $0.error.code = .publish
            $0.error.msg = "bad"
            $0.correlationKey = "k2"
          },
        ]
        $0.schemaID = "S"
        $0.rpcID = "r"
      }),
  ]

  @Test("Messages are encoded as the reference runtime encodes them", arguments: goldens)
  func writes(golden: Golden) throws {
    let bytes: [UInt8] = try golden.message.serializedBytes()
    #expect(bytes == Bytes(hex: golden.hex))
  }

  @Test("Messages of the reference runtime are decoded", arguments: goldens)
  func reads(golden: Golden) throws {
    func check<M: Message>(_ message: M) throws {
      let read = try M(serializedBytes: Bytes(hex: golden.hex))
      #expect(read.isEqualTo(message: message))
    }
    try check(golden.message)
  }

  @Test("A method's path names package, service and method")
  func paths() {
    let methods = Eventbus_V1_PubSub.Method.descriptors.map(\.fullyQualifiedMethod)
    #expect(
      methods.sorted()
        == [
          "GetSchema", "GetTopic", "ManagedSubscribe", "Publish", "PublishStream", "Subscribe",
        ].map { "eventbus.v1.PubSub/\($0)" })
  }
}

typealias Bytes = [UInt8]

extension [UInt8] {
  /// - Parameter hex: an even number of lower-case digits; blanks are skipped.
  init(hex: String) {
    let digits = hex.utf8.filter { $0 != UInt8(ascii: " ") }
      .map { $0 > UInt8(ascii: "9") ? $0 - UInt8(ascii: "a") + 10 : $0 - UInt8(ascii: "0") }
    precondition(digits.count.isMultiple(of: 2), "odd number of digits")
    self = stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }
}
