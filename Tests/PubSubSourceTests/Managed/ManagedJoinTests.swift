import FoundationEssentials
import Pipeline
import PubSubAPI
import PubSubMessages
import SwiftProtobuf
import Testing

@testable import PubSubSource

@Suite("Joining a managed stream") struct ManagedJoinTests {
  private let now = ContinuousClock.now

  /// A response with events of these numbers, whose replay IDs rise with them.
  static func response(_ numbers: Int...) throws -> FetchResponseView {
    let message = Eventbus_V1_ManagedFetchResponse.with {
      $0.events = numbers.map { number in
        .with {
          $0.event.id = "e-\(number)"
          $0.replayID = Data(Self.replayID(number))
        }
      }
    }
    return try FetchResponseView(parsing: message.serializedBytes(), isManaged: true)
  }

  static func replayID(_ number: Int) -> [UInt8] {
    [0, 0, 0, 0, 0, 0, UInt8(number >> 8), UInt8(number & 255), 0, 0]
  }

  static func event(_ number: Int) -> ManagedJoin.Event {
    ManagedJoin.Event(
      replayID: ReplayID(Self.replayID(number)), eventID: Array("e-\(number)".utf8))
  }

  @Test("Without our own position, the service's applies")
  func noProof() throws {
    var join = ManagedJoin(needsProof: false)
    #expect(try join.received(Self.response(7), at: self.now) == .handOn(droppingFirst: 0))
  }

  @Test("A stream that begins with the first event after our position is delivered")
  func atOurPosition() throws {
    var join = ManagedJoin(needsProof: true)
    join.expect(Self.event(5), at: self.now)
    #expect(!join.counts)
    #expect(try join.received(Self.response(5, 6), at: self.now) == .handOn(droppingFirst: 0))
    #expect(join.counts)
    #expect(try join.received(Self.response(7), at: self.now) == .handOn(droppingFirst: 0))
  }

  @Test("Events before our position are dropped, up to the middle of a response")
  func behind() throws {
    var join = ManagedJoin(needsProof: true)
    join.expect(Self.event(5), at: self.now)
    #expect(try join.received(Self.response(1, 2), at: self.now) == .drop)
    #expect(try join.received(Self.response(3, 4, 5, 6), at: self.now) == .handOn(droppingFirst: 2))
  }

  @Test("Nothing is delivered before the expected event is known")
  func unknown() throws {
    var join = ManagedJoin(needsProof: true)
    #expect(try join.received(Self.response(6), at: self.now) == .hold)
    #expect(!join.isOverdue(at: self.now + .seconds(3600)))
    join.expect(Self.event(5), at: self.now)
    #expect(try join.received(Self.response(6), at: self.now) == .apart)
    #expect(join.first == Self.event(6))
  }

  @Test("A stream that begins after the expected event is rejected, however many events it skips")
  func ahead() throws {
    for number in [6, 7, 300] {
      var join = ManagedJoin(needsProof: true)
      join.expect(Self.event(5), at: self.now)
      #expect(try join.received(Self.response(number), at: self.now) == .apart)
    }
  }

  @Test("The same replay ID with another event is not the expected event")
  func otherEvent() throws {
    var join = ManagedJoin(needsProof: true)
    join.expect(
      ManagedJoin.Event(replayID: ReplayID(Self.replayID(5)), eventID: Array("x".utf8)),
      at: self.now)
    #expect(try join.received(Self.response(5), at: self.now) == .drop)
    #expect(try join.received(Self.response(6), at: self.now) == .apart)
  }

  @Test("A managed stream that stays silent while others get the event is rejected")
  func silent() throws {
    var join = ManagedJoin(needsProof: true)
    join.expect(Self.event(5), at: self.now)
    #expect(!join.isOverdue(at: self.now + .seconds(9)))
    _ = try join.received(Self.response(1), at: self.now + .seconds(9))
    #expect(!join.isOverdue(at: self.now + .seconds(18)))
    #expect(join.isOverdue(at: self.now + .seconds(19)))
  }

  @Test("The search among incomparable IDs is limited")
  func incomparable() throws {
    var join = ManagedJoin(needsProof: true)
    join.expect(ManagedJoin.Event(replayID: ReplayID([9]), eventID: [1]), at: self.now)
    for _ in 0..<StreamCursor.passingLimit {
      #expect(try join.received(Self.response(1), at: self.now) == .drop)
    }
    #expect(try join.received(Self.response(1), at: self.now) == .apart)
  }
}
