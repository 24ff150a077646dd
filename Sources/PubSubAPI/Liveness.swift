/// Whether a subscription is still alive, from the times of its messages.
///
/// With credit open the service sends something at least every 270 s; without credit it sends
/// nothing and ends the call after 60 s (TheService.md#keepalives-and-liveness).
public struct Liveness: Sendable {
  /// 270 s and slack.
  public static let idleLimit = Duration.seconds(300)
  /// Less than the 60 s of the service, so that a request in time arrives in time.
  public static let creditLimit = Duration.seconds(45)

  private var lastMessage: ContinuousClock.Instant
  private var isPendingZero = false
  /// The consumer has a response; what came after it waits unread, so silence means nothing.
  private var isConsumerBusy = false

  /// The first request is on its way.
  public init(openedAt now: ContinuousClock.Instant) { self.lastMessage = now }

  /// A response came and is handed on; `resumed` has to follow.
  ///
  /// - Parameter pending: `pending_num_requested` of the response.
  public mutating func received(pending: Int, at now: ContinuousClock.Instant) {
    self.lastMessage = now
    self.isConsumerBusy = true
    self.isPendingZero = pending <= 0
  }

  /// The consumer has taken the response: silence counts from here.
  public mutating func resumed(at now: ContinuousClock.Instant) {
    self.lastMessage = now
    self.isConsumerBusy = false
  }

  /// Something came that says nothing of the credit.
  public mutating func heard(at now: ContinuousClock.Instant) { self.lastMessage = now }

  /// Credit was given because `check` asked for it.
  public mutating func creditGiven() { self.isPendingZero = false }

  /// What is due.
  public enum OnCheck: Equatable, Sendable {
    /// Nothing is due before `until`.
    case alive(until: ContinuousClock.Instant)
    /// By the service's books no credit is open; it must be given now or the service ends the call.
    case giveCredit
    /// Silent for too long: tear down and open again.
    case idle
  }

  /// What is due at this time.
  public func check(at now: ContinuousClock.Instant) -> OnCheck {
    if self.isConsumerBusy { return .alive(until: now + Self.creditLimit) }
    let idle = self.lastMessage + Self.idleLimit
    if now >= idle { return .idle }
    let credit = self.lastMessage + Self.creditLimit
    if self.isPendingZero {
      return now >= credit ? .giveCredit : .alive(until: credit)
    }
    return .alive(until: idle)
  }
}
