import FoundationEssentials
import PubSubAPI
import PubSubMessages
import SwiftProtobuf
import Testing

@testable import SalesforcePubSub

@Suite("Position in a stream")
struct StreamPositionTests {
  /// A response with events, each an ID and a replay ID.
  private static func response(
    _ events: [(id: String, replayID: UInt8)], latest: UInt8 = 0, leadingZeros: Int = 0
  ) throws -> FetchResponseView {
    let zeros = Data(repeating: 0, count: leadingZeros)
    let message = Eventbus_V1_FetchResponse.with {
      $0.events = events.map { event in
        .with {
          $0.event.id = event.id
          $0.replayID = zeros + [event.replayID]
        }
      }
      if latest > 0 { $0.latestReplayID = zeros + [latest] }
    }
    return try FetchResponseView(parsing: message.serializedBytes())
  }

  private static func received(
    _ position: inout StreamPosition, _ events: [(id: String, replayID: UInt8)]
  ) throws -> [String] {
    let view = try Self.response(events)
    return position.received(view).map { view.string($0.eventID) }
  }

  @Test("The position stays before the last replay ID until another ID follows")
  func staysBeforeOpenGroup() throws {
    var position = StreamPosition(.earliest)
    #expect(try Self.received(&position, [("a", 1), ("b", 1)]) == ["a", "b"])
    #expect(position.start == .earliest)
    #expect(try Self.received(&position, [("c", 1), ("d", 2)]) == ["c", "d"])
    #expect(position.start == .after([1]))
  }

  @Test("Repeated events of the open replay ID are dropped, and new ones are not")
  func dropsRepetitions() throws {
    var position = StreamPosition(.after([1]))
    _ = try Self.received(&position, [("a", 2), ("b", 2)])
    position.interrupted()
    #expect(position.start == .after([1]))
    #expect(try Self.received(&position, [("a", 2), ("b", 2), ("c", 2)]) == ["c"])
    #expect(try Self.received(&position, [("d", 3), ("a", 4)]) == ["d", "a"])
    #expect(position.start == .after([3]))
  }

  @Test("An empty response closes the replay ID and moves the position")
  func keepalive() throws {
    var position = StreamPosition(.latest)
    _ = try Self.received(&position, [("a", 2)])
    #expect(position.received(try Self.response([], latest: 9)).isEmpty)
    #expect(position.start == .after([9]))
    // Without a position of its own, it says that nothing else has the replay ID.
    _ = try Self.received(&position, [("b", 10)])
    #expect(position.received(try Self.response([])).isEmpty)
    #expect(position.start == .after([10]))
  }

  @Test("An empty response with an earlier replay ID neither closes the open one nor moves back")
  func earlierKeepalive() throws {
    // As long as those of the service, so that their order is known.
    func response(
      _ events: [(id: String, replayID: UInt8)], latest: UInt8 = 0
    ) throws -> FetchResponseView {
      try Self.response(events, latest: latest, leadingZeros: 7)
    }
    let one: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 1]
    var position = StreamPosition(.earliest)
    #expect(position.received(try response([("a", 1), ("b", 4)])).count == 2)
    #expect(position.start == .after(one))
    #expect(position.received(try response([], latest: 3)).isEmpty)
    #expect(position.start == .after(one))
    #expect(position.received(try response([("b", 4), ("c", 4)])).count == 1)
    #expect(position.received(try response([], latest: 5)).isEmpty)
    #expect(position.received(try response([], latest: 2)).isEmpty)
    #expect(position.start == .after([0, 0, 0, 0, 0, 0, 0, 5]))
  }

  @Test("A subscription that began at the tip does not begin there again")
  func latest() throws {
    var position = StreamPosition(.latest)
    position.interrupted()
    #expect(position.start == .latest)
    _ = try Self.received(&position, [("a", 2)])
    position.interrupted()
    #expect(position.start == .after([2]))
  }
}
