/// Decides how many more events a subscription requests.
///
/// Credit is additive, and at most 100 events may be outstanding (TheService.md#flow-control). Open
/// credit is what we have requested minus what we have received. The service's
/// `pending_num_requested` lags behind by the requests in flight, so it corrects our count only
/// when nothing can be in flight any longer.
public struct FetchCredit: Sendable {
  /// The maximum number of outstanding events.
  public static let maxWindow = 100

  /// Events to keep outstanding, 1...100.
  public private(set) var window: Int
  /// The number of events that may still come: open ones and those that may still be requested; nil
  /// for any number.
  public private(set) var allowance: Int?
  /// Requested and not received yet.
  public private(set) var open = 0
  /// After `stop`, nothing is requested.
  public private(set) var isStopped = false
  private var lastRequest: ContinuousClock.Instant?

  /// The time after which a request is assumed to have reached the service.
  static let settleTime = Duration.seconds(10)

  /// - Parameters:
  ///   - window: clamped to 1...100.
  ///   - allowance: more than zero before `begin`, because a first request has to ask for
  ///     something.
  public init(window: Int, allowance: Int? = nil) {
    self.window = min(max(window, 1), Self.maxWindow)
    self.allowance = allowance
  }

  /// The number for the first request of the stream.
  public mutating func begin(at now: ContinuousClock.Instant) -> Int {
    precondition(self.target > 0, "a stream is opened although no event may come")
    self.open = self.target
    self.lastRequest = now
    return self.open
  }

  private var target: Int { min(self.window, self.allowance ?? self.window) }

  /// Call this for each response.
  ///
  /// - Parameters:
  ///   - eventCount: events in it.
  ///   - pending: the response's `pending_num_requested`.
  /// - Returns: the credit to give back now, 1...100; nil if there is none to give.
  public mutating func received(
    eventCount: Int, pending: Int, at now: ContinuousClock.Instant
  ) -> Int? {
    self.open = max(self.open - eventCount, 0)
    self.allowance = self.allowance.map { max($0 - eventCount, 0) }
    let isSettled = self.lastRequest.map { now - $0 >= Self.settleTime } ?? true
    // If the server claims more open credit than requested, accept that, so as never to request
    // more than the window.
    if pending > self.open || isSettled { self.open = min(max(pending, 0), Self.maxWindow) }
    return self.topUp(at: now)
  }

  /// Call this if the service says that nothing is open and has sent nothing since, so that
  /// requests must have been lost.
  ///
  /// - Returns: the credit to give, as of `received`.
  public mutating func restart(at now: ContinuousClock.Instant) -> Int? {
    self.open = 0
    return self.topUp(at: now)
  }

  /// Lets more events be outstanding from now on.
  ///
  /// - Returns: the credit to give, as of `received`.
  public mutating func widen(to window: Int, at now: ContinuousClock.Instant) -> Int? {
    self.window = min(max(window, self.window), Self.maxWindow)
    return self.topUp(at: now)
  }

  /// Allows `count` more events than the allowance.
  ///
  /// - Returns: the credit to give, as of `received`.
  public mutating func allow(_ count: Int, at now: ContinuousClock.Instant) -> Int? {
    guard let allowance = self.allowance else { return nil }
    self.allowance = allowance + count
    return self.topUp(at: now)
  }

  /// Gives no more credit from now on.
  public mutating func stop() { self.isStopped = true }

  private mutating func topUp(at now: ContinuousClock.Instant) -> Int? {
    let missing = self.target - self.open
    guard !self.isStopped, missing > 0 else { return nil }
    self.open += missing
    self.lastRequest = now
    return missing
  }
}
