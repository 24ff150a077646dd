/// Selects the calls that a fault hits, among those that it could hit.
package enum FaultMoment: Sendable, Equatable {
  /// The next ones.
  case next
  /// Subscribe: whichever call is about to deliver this event of the topic, counted from 1.
  case event(Int)
  /// The n-th call and those after it, counted from 1.
  case call(Int)
  /// Each call with this probability, by random numbers of their own.
  case probability(Double, seed: UInt64)
  /// Calls that begin in this part of each day, in minutes since midnight UTC of the org's clock. `to` is
  /// excluded; a part that ends before it begins lasts over midnight.
  case timeOfDay(from: Int, to: Int)
  /// Calls that begin in this range of the org's time, epoch milliseconds.
  case during(Range<Int64>)
}

/// Decides call by call whether a fault happens.
struct FaultTrigger {
  private let moment: FaultMoment
  private var calls = 0
  private var random: RandomStream

  init(_ moment: FaultMoment) {
    self.moment = moment
    if case .probability(_, let seed) = moment {
      self.random = RandomStream(seed: RandomStream.mix(seed))
    } else {
      self.random = RandomStream(seed: 0)
    }
  }

  /// Call it once for each call that the fault could hit.
  mutating func fires(at now: Int64) -> Bool {
    self.calls += 1
    switch self.moment {
    case .next: return true
    // Events are counted by the topic.
    case .event: return false
    case .call(let number): return self.calls >= number
    case .probability(let share, _): return self.random.chance(share)
    case .timeOfDay(let from, let to):
      let minute = Int(now / 60_000 % 1440)
      return from <= to ? (from..<to).contains(minute) : minute >= from || minute < to
    case .during(let range): return range.contains(now)
    }
  }
}
