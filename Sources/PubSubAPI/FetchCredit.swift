/// How many more events a subscription asks for.
///
/// Credit is additive, and at most 100 events may be outstanding (TheService.md#flow-control).
/// What is open is known from our own books: asked for, less received. The service's
/// `pending_num_requested` lags behind them by the requests still on their way, so it corrects
/// the books only when nothing can be on its way any more.
public struct FetchCredit: Sendable {
  /// Most events that may be outstanding.
  public static let maxWindow = 100

  /// Events to keep outstanding, 1...100.
  public private(set) var window: Int
  /// Events that may still come: those open and those that may still be asked for; nil: any number.
  public private(set) var allowance: Int?
  /// Asked for and not received yet.
  public private(set) var open = 0
  /// After `stop`, nothing is asked for.
  public private(set) var isStopped = false
  private var lastRequest: ContinuousClock.Instant?

  /// A request is taken to have reached the service after this long.
  static let settleTime = Duration.seconds(10)

  /// - Parameters:
  ///   - window: clamped to 1...100.
  ///   - allowance: more than zero before `begin`: a first request has to ask for something.
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

  /// A response came in.
  ///
  /// - Parameters:
  ///   - eventCount: events in it.
  ///   - pending: its `pending_num_requested`.
  /// - Returns: the credit to give back now, 1...100; nil when there is none to give.
  public mutating func received(
    eventCount: Int, pending: Int, at now: ContinuousClock.Instant
  ) -> Int? {
    self.open = max(self.open - eventCount, 0)
    self.allowance = self.allowance.map { max($0 - eventCount, 0) }
    let isSettled = self.lastRequest.map { now - $0 >= Self.settleTime } ?? true
    // More open than asked for: never ask for more than the window on top of what the peer claims.
    if pending > self.open || isSettled { self.open = min(max(pending, 0), Self.maxWindow) }
    return self.topUp(at: now)
  }

  /// The service says that nothing is open and has sent nothing since: requests were lost.
  ///
  /// - Returns: the credit to give, as of `received`.
  public mutating func restart(at now: ContinuousClock.Instant) -> Int? {
    self.open = 0
    return self.topUp(at: now)
  }

  /// More events may be outstanding from now on.
  ///
  /// - Returns: the credit to give, as of `received`.
  public mutating func widen(to window: Int, at now: ContinuousClock.Instant) -> Int? {
    self.window = min(max(window, self.window), Self.maxWindow)
    return self.topUp(at: now)
  }

  /// `count` more events than the allowance may come.
  ///
  /// - Returns: the credit to give, as of `received`.
  public mutating func allow(_ count: Int, at now: ContinuousClock.Instant) -> Int? {
    guard let allowance = self.allowance else { return nil }
    self.allowance = allowance + count
    return self.topUp(at: now)
  }

  /// No credit is given from now on.
  public mutating func stop() { self.isStopped = true }

  private mutating func topUp(at now: ContinuousClock.Instant) -> Int? {
    let missing = self.target - self.open
    guard !self.isStopped, missing > 0 else { return nil }
    self.open += missing
    self.lastRequest = now
    return missing
  }
}
