import FoundationEssentials
import Pipeline
import PubSubAPI
import PubSubMessages
import SwiftProtobuf
import Testing

@testable import PubSubSource

@Suite("Joining a managed stream") struct ManagedJoinTests {
  private let now = ContinuousClock.now
  private static let position = StartPoint.after(ReplayID(Self.replayID(4)))

  /// A response with events of these numbers, whose replay IDs rise with them.
  static func response(_ numbers: Int...) throws -> FetchResponseView {
    try self.response(numbers)
  }

  static func response(_ numbers: [Int]) throws -> FetchResponseView {
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

  @Test("Without our own position, the service's position applies")
  func noProof() throws {
    var join = ManagedJoin(at: .managed)
    #expect(try join.received(Self.response(7), at: self.now) == .handOn(droppingFirst: 0))
  }

  @Test("A stream that begins with the first event after our position is delivered")
  func atOurPosition() throws {
    var join = ManagedJoin(at: Self.position)
    join.expect(Self.event(5), at: self.now)
    #expect(!join.counts)
    #expect(try join.received(Self.response(5, 6), at: self.now) == .handOn(droppingFirst: 0))
    #expect(join.counts)
    #expect(try join.received(Self.response(7), at: self.now) == .handOn(droppingFirst: 0))
  }

  @Test("Events before our position are dropped, up to the middle of a response")
  func behind() throws {
    var join = ManagedJoin(at: Self.position)
    join.expect(Self.event(5), at: self.now)
    #expect(try join.received(Self.response(1, 2), at: self.now) == .drop)
    #expect(try join.received(Self.response(3, 4, 5, 6), at: self.now) == .handOn(droppingFirst: 2))
  }

  @Test("Nothing is delivered before the expected event is known")
  func unknown() throws {
    var join = ManagedJoin(at: Self.position)
    #expect(try join.received(Self.response(6), at: self.now) == .hold)
    let isOverdue = join.check(at: self.now + .seconds(3600))
    #expect(!isOverdue)
    join.expect(Self.event(5), at: self.now)
    #expect(try join.received(Self.response(6), at: self.now) == .apart)
    #expect(join.first == Self.event(6))
  }

  @Test("A stream that begins after the expected event is rejected, however many events it skips")
  func ahead() throws {
    for number in [6, 7, 300] {
      var join = ManagedJoin(at: Self.position)
      join.expect(Self.event(5), at: self.now)
      #expect(try join.received(Self.response(number), at: self.now) == .apart)
    }
  }

  @Test("The same replay ID with another event is not the expected event")
  func otherEvent() throws {
    var join = ManagedJoin(at: Self.position)
    join.expect(
      ManagedJoin.Event(replayID: ReplayID(Self.replayID(5)), eventID: Array("x".utf8)),
      at: self.now)
    #expect(try join.received(Self.response(5), at: self.now) == .drop)
    #expect(try join.received(Self.response(6), at: self.now) == .apart)
  }

  @Test("A managed stream that stays silent while others get the event is rejected")
  func silent() throws {
    var join = ManagedJoin(at: Self.position)
    join.expect(Self.event(5), at: self.now)
    let early = join.check(at: self.now + .seconds(9))
    _ = try join.received(Self.response(1), at: self.now + .seconds(9))
    let later = join.check(at: self.now + .seconds(18))
    let late = join.check(at: self.now + .seconds(19))
    #expect([early, later, late] == [false, false, true])
  }

  @Test("The search among incomparable IDs is limited")
  func incomparable() throws {
    var join = ManagedJoin(at: Self.position)
    join.expect(ManagedJoin.Event(replayID: ReplayID([9]), eventID: [1]), at: self.now)
    for _ in 0..<StreamCursor.passingLimit {
      #expect(try join.received(Self.response(1), at: self.now) == .drop)
    }
    #expect(try join.received(Self.response(1), at: self.now) == .apart)
  }

  @Test("A stream that has been rejected never joins, even if the expected event arrives later")
  func apartIsFinal() throws {
    var join = ManagedJoin(at: Self.position)
    join.expect(Self.event(5), at: self.now)
    #expect(try join.received(Self.response(6), at: self.now) == .apart)
    #expect(try join.received(Self.response(5), at: self.now) == .apart)
    #expect(!join.counts && !join.isUseful)
    var late = ManagedJoin(at: Self.position)
    late.expect(Self.event(5), at: self.now)
    let isApart = late.check(at: self.now + ManagedJoin.patience)
    #expect(isApart)
    #expect(try late.received(Self.response(5), at: self.now) == .apart)
  }

  @Test("Responses that wait for proof are limited in number and in bytes")
  func bounded() throws {
    var many = ManagedJoin(at: Self.position)
    for _ in 0..<ManagedJoin.maxHeldEvents {
      #expect(try many.received(Self.response(6), at: self.now) == .hold)
    }
    #expect(try many.received(Self.response(6), at: self.now) == .apart)
    #expect(many.cause == .flood)
    #expect(many.heldEventCount == ManagedJoin.maxHeldEvents)

    let message = Eventbus_V1_ManagedFetchResponse.with {
      $0.events = [.with { $0.event.payload = Data(count: 1 << 20) }]
    }
    let large = try FetchResponseView(parsing: message.serializedBytes(), isManaged: true)
    var big = ManagedJoin(at: Self.position)
    let answers = (0..<8).map { _ in big.received(large, at: self.now) }
    #expect(answers == Array(repeating: .hold, count: 7) + [.apart])
    #expect(big.cause == .flood)
  }

  @Test("An event that may follow our position is awaited, and no Subscribe keepalive overtakes it")
  func mayFollow() throws {
    var join = ManagedJoin(at: Self.position)
    #expect(!join.awaitsEvent)
    #expect(join.receivedKeepalive(at: self.now) == .handOn)
    _ = try join.received(Self.response(4, 5), at: self.now)
    #expect(join.awaitsEvent)
    #expect(join.receivedKeepalive(at: self.now + .seconds(9)) == .ignore)
    #expect(!join.isApart)
    // Subscribe had time to bring it.
    #expect(join.receivedKeepalive(at: self.now + .seconds(10)) == .ignore)
    #expect(join.isApart)
    #expect(join.cause == .contradiction)
    #expect(join.awaitsEvent)
    #expect(join.receivedKeepalive(at: self.now + .seconds(99)) == .ignore)
  }

  @Test("Once Subscribe has delivered its event, no other event is awaited")
  func noLongerAwaited() throws {
    var join = ManagedJoin(at: Self.position)
    _ = try join.received(Self.response(5), at: self.now)
    join.expect(Self.event(5), at: self.now)
    #expect(!join.awaitsEvent)
  }

  @Test(
    "Events that cannot follow our position are not awaited",
    arguments: [(Self.position, 3), (Self.position, 4), (.latest, 5), (.managed, 5)])
  func cannotFollow(start: StartPoint, number: Int) throws {
    var join = ManagedJoin(at: start)
    _ = try join.received(Self.response(number), at: self.now)
    #expect(!join.awaitsEvent)
    if start == .managed { return }
    #expect(join.receivedKeepalive(at: self.now + .seconds(99)) == .handOn)
  }

  @Test("Events whose IDs cannot be compared with our position are awaited")
  func incomparablePlace() throws {
    for start in [StartPoint.after(ReplayID([9])), .earliest] {
      var join = ManagedJoin(at: start)
      _ = try join.received(Self.response(1), at: self.now)
      #expect(join.awaitsEvent)
    }
  }

  @Test("Events beyond the limit count as events that may follow our position")
  func floodIsAwaited() throws {
    var join = ManagedJoin(at: Self.position)
    #expect(try join.received(Self.response(Array(5...105)), at: self.now) == .apart)
    #expect(join.awaitsEvent)
    #expect(join.receivedKeepalive(at: self.now) == .ignore)
  }

  @Test(
    "In any order of events, all from the expected one on are passed on, or none are")
  func everyOrder() throws {
    var violations: [String] = []
    for order in Self.orders(of: [4, 5, 6, 7], upTo: 4) {
      let begin = order.firstIndex { $0 >= 5 }
      let joins = begin.map { order[$0] == 5 } ?? false
      let expected = begin.flatMap { joins ? Array(order[$0...]) : nil } ?? []
      for responses in Self.splits(of: order) {
        for probed in 0...responses.count {
          let (handedOn, join) = try self.play(responses, probedAfter: probed)
          if handedOn != expected || join.counts != joins
            || join.isApart != (begin != nil && !joins)
          {
            violations.append("\(responses), probed after \(probed): \(handedOn)")
          }
        }
      }
    }
    #expect(violations.isEmpty)
  }

  /// Does what the stream does with the answers.
  private func play(
    _ responses: [[Int]], probedAfter probed: Int
  ) throws -> (handedOn: [Int], join: ManagedJoin) {
    var join = ManagedJoin(at: Self.position)
    var handedOn: [Int] = []
    func judge(_ view: FetchResponseView) {
      guard case .handOn(let count) = join.received(view, at: self.now) else { return }
      handedOn += view.events.dropFirst(count).compactMap {
        Int(view.string($0.eventID).dropFirst(2))
      }
    }
    for index in 0...responses.count {
      if index == probed {
        join.expect(Self.event(5), at: self.now)
        for view in join.takeHeld() { judge(view) }
      }
      if index < responses.count { judge(try Self.response(responses[index])) }
    }
    return (handedOn, join)
  }

  /// All sequences of these numbers up to a length, with repetitions.
  private static func orders(of numbers: [Int], upTo length: Int) -> [[Int]] {
    var last: [[Int]] = [[]]
    var all: [[Int]] = []
    for _ in 0..<length {
      last = last.flatMap { order in numbers.map { order + [$0] } }
      all += last
    }
    return all
  }

  /// All ways to put the events into responses.
  private static func splits(of order: [Int]) -> [[[Int]]] {
    (0..<(1 << (order.count - 1))).map { bits in
      var responses = [[order[0]]]
      for index in order.indices.dropFirst() {
        if bits >> (index - 1) & 1 == 1 {
          responses.append([order[index]])
        } else {
          responses[responses.count - 1].append(order[index])
        }
      }
      return responses
    }
  }
}
