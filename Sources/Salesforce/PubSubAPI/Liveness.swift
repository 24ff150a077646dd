/// Whether a subscription is still alive, from the times of its messages.
///
/// With open credit, the service sends something at least every 270 s. Without credit, it sends
/// nothing and ends the call after 60 s (TheService.md#keepalives-and-liveness).
public struct Liveness: Sendable {
  /// 270 s plus a margin.
  public static let idleLimit = Duration.seconds(300)
  /// Less than the service's 60 s, so that a request still arrives in time.
  public static let creditLimit = Duration.seconds(45)

  /// A call that answers for this long is useful even if its responses bring nothing new. Reopening
  /// such calls costs at most one call a minute, as the longest default pause does.
  public static let usefulLife = Duration.seconds(60)

  /// When the last message came; before the first, when the call was opened.
  public private(set) var lastMessage: ContinuousClock.Instant
  private var isPendingZero = false
  /// The consumer has a response, and later ones wait unread, so silence means nothing.
  private var isConsumerBusy = false

  /// Call this when the first request is sent.
  public init(openedAt now: ContinuousClock.Instant) { self.lastMessage = now }

  /// Call this when a response is passed on, and `resumed` afterwards.
  ///
  /// - Parameter pending: `pending_num_requested` of the response.
  public mutating func received(pending: Int, at now: ContinuousClock.Instant) {
    self.lastMessage = now
    self.isConsumerBusy = true
    self.isPendingZero = pending <= 0
  }

  /// Call this when the consumer has taken the response. Silence counts from here.
  public mutating func resumed(at now: ContinuousClock.Instant) {
    self.lastMessage = now
    self.isConsumerBusy = false
  }

  /// Call this when a message arrives that says nothing about credit.
  public mutating func heard(at now: ContinuousClock.Instant) { self.lastMessage = now }

  /// Call this when credit was given because `check` asked for it.
  public mutating func creditGiven() { self.isPendingZero = false }

  /// What is due.
  public enum OnCheck: Equatable, Sendable {
    /// Nothing is due before `until`.
    case alive(until: ContinuousClock.Instant)
    /// According to the service, no credit is open; give some now, or the service ends the call.
    case giveCredit
    /// Silent for too long: close the stream and reopen it.
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
