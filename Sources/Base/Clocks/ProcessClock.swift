internal import Synchronization

/// The time of this process: the machine's clocks, or those clocks with idle waits left out.
///
/// Everything that takes time asks here, so that a rehearsal can skip the waits (see `ServedClock`). Without
/// one nothing is skipped, and the instants are those of `ContinuousClock`.
public struct ProcessClock: Sendable {
  /// Nanoseconds that were skipped.
  private static let skipped = Atomic<Int64>(0)
  /// Milliseconds between the served wall clock and the machine's at the start.
  private static let wallShift = Atomic<Int64>(0)
  private static let served = Atomic<Bool>(false)
  private static let externalWaits = Atomic<Int>(0)

  public init() {}

  public var now: ContinuousClock.Instant { Self.now }

  public static var now: ContinuousClock.Instant {
    let skipped = Self.skipped.load(ordering: .relaxed)
    return skipped == 0 ? ContinuousClock.now : ContinuousClock.now + .nanoseconds(skipped)
  }

  /// What was skipped, for clocks that measure time passing.
  public static var skippedTime: Duration {
    .nanoseconds(Self.skipped.load(ordering: .relaxed))
  }

  /// Milliseconds to be added to the machine's wall clock.
  public static var wallOffset: Int64 {
    Self.wallShift.load(ordering: .relaxed)
      + Self.skipped.load(ordering: .relaxed) / 1_000_000
  }

  /// Whether idle waits may be skipped.
  public static var isServed: Bool { Self.served.load(ordering: .relaxed) }

  /// When to look again for something that nobody announces, such as a stop. With a served clock every look
  /// costs a skip, so all look together, at whole seconds: a stop is noticed up to a second later.
  public static func nextLook(
    from now: ContinuousClock.Instant, after usual: Duration
  ) -> ContinuousClock.Instant {
    guard Self.isServed, usual <= .seconds(1) else { return now + usual }
    let sinceStart = (now - Self.start).components
    return now + (.seconds(sinceStart.seconds + 1) - (now - Self.start))
  }

  private static let start = ContinuousClock.now

  /// - Parameter wallShift: milliseconds from the machine's wall clock to the served one.
  public static func beServed(wallShift: Int64) {
    Self.wallShift.store(wallShift, ordering: .relaxed)
    Self.served.store(true, ordering: .relaxed)
  }

  /// Moves both clocks on.
  public static func skip(milliseconds: Int64) {
    Self.skipped.wrappingAdd(milliseconds * 1_000_000, ordering: .relaxed)
  }

  /// Runs `body`, during which something that has no part in the served time may be at work: a database, a
  /// web server, a child process. No time is skipped until it returns.
  @inlinable
  public static func waitingForOthers<Result, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    Self.beginWait()
    defer { Self.endWait() }
    return try body()
  }

  /// Runs `body`, which waits for this process itself, in the middle of `waitingForOthers`.
  @inlinable
  public static func waitingForOurselves<Result, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    Self.endWait()
    defer { Self.beginWait() }
    return try body()
  }

  @usableFromInline static func beginWait() {
    Self.externalWaits.wrappingAdd(1, ordering: .sequentiallyConsistent)
  }

  @usableFromInline static func endWait() {
    Self.externalWaits.wrappingSubtract(1, ordering: .sequentiallyConsistent)
  }

  public static var waitsForOthers: Bool {
    Self.externalWaits.load(ordering: .sequentiallyConsistent) > 0
  }
}
