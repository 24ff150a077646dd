import FoundationEssentials
import GRPCCore
import PubSubMessages
import SwiftProtobuf
import Testing

@testable import PubSubAPI

@Suite("Replay IDs that cannot be a place in a stream")
struct ReplayIDLimitsTests {
  private func deserialize(
    replayIDs: [Int], latest: Int
  ) throws -> FetchResponseView {
    let message = Eventbus_V1_FetchResponse.with {
      $0.events = replayIDs.map { count in
        .with {
          $0.replayID = Data(repeating: 1, count: count)
          $0.event.payload = Data([1])
        }
      }
      $0.latestReplayID = Data(repeating: 1, count: latest)
    }
    return try FetchResponseDeserializer().deserialize(message.serializedBytes() as [UInt8])
  }

  @Test(
    "IDs of 1 to 1,024 bytes are accepted, and a keepalive may have none",
    arguments: [
      ([1, 10, 1024], 1024), ([], 0), ([], 10), ([10], 0),
    ])
  func accepted(replayIDs: [Int], latest: Int) throws {
    let view = try self.deserialize(replayIDs: replayIDs, latest: latest)
    #expect(view.events.map(\.replayID.count) == replayIDs)
  }

  @Test(
    "An event with a missing or oversized replay ID breaks the stream",
    arguments: [
      ([10, 0, 10], 10, "event 2 of 3 has no replay ID"), ([0], 0, "event 1 of 1 has no replay ID"),
      ([1025], 10, "a replay ID of 1025 bytes"), ([10], 1025, "a replay ID of 1025 bytes"),
      ([], 90_000, "a replay ID of 90000 bytes"),
    ])
  func refused(replayIDs: [Int], latest: Int, reason: String) throws {
    let error = #expect(throws: RPCError.self) {
      try self.deserialize(replayIDs: replayIDs, latest: latest)
    }
    let failure = PubSubError(try #require(error), operation: "Subscribe to /event/A__e")
    #expect(failure.code == .malformedResponse)
    #expect(failure.message.contains(reason))
  }
}
