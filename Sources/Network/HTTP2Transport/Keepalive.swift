/// How often to send a PING over the life of a transport. Servers that find it too often say so by
/// leaving with ENHANCE_YOUR_CALM; then half as often will do (gRPC proposal A8).
struct KeepalivePace {
  private static let slowest = Duration.seconds(3600)

  private(set) var interval: Duration

  mutating func peerLeft(errorCode: HTTP2ErrorCode) {
    guard errorCode == .enhanceYourCalm else { return }
    self.interval = max(self.interval, min(self.interval * 2, Self.slowest))
  }
}

/// When to send a PING and when to give a silent connection up (gRPC "Keepalive").
struct Keepalive {
  typealias Instant = ContinuousClock.Instant

  enum OnTimer: Equatable {
    case wait(until: Instant)
    case ping(nextCheck: Instant)
    /// The peer has sent nothing at all since the PING.
    case dead
  }

  /// Share by which a pause may be longer than asked for, so that clients that began together do
  /// not continue together. Never shorter: servers count PINGs that come too early.
  private static let jitterShare = 0.1

  private let configured: Duration
  private var interval: Duration
  private let timeout: Duration
  private var lastReceived: Instant
  private var pingSent: Instant?

  /// - Parameter jitter: random, in 0...1.
  init(interval: Duration, timeout: Duration, now: Instant, jitter: Double) {
    self.configured = interval
    self.interval = interval * (1 + Self.jitterShare * jitter)
    self.timeout = timeout
    self.lastReceived = now
  }

  var firstCheck: Instant { self.lastReceived + self.interval }

  /// Any bytes: they prove the peer alive even when a PING's answer is queued behind them.
  mutating func received(now: Instant) {
    self.lastReceived = now
  }

  /// - Parameter jitter: random, in 0...1.
  mutating func pingAcknowledged(jitter: Double) {
    self.pingSent = nil
    self.interval = self.configured * (1 + Self.jitterShare * jitter)
  }

  /// Without open streams no PING is sent: servers count those as abuse.
  mutating func timerFired(now: Instant, hasStreams: Bool) -> OnTimer {
    if let pingSent = self.pingSent {
      let deadline = max(pingSent, self.lastReceived) + self.timeout
      return now < deadline ? .wait(until: deadline) : .dead
    }
    guard hasStreams else { return .wait(until: now + self.interval) }
    let due = self.lastReceived + self.interval
    if now < due { return .wait(until: due) }
    self.pingSent = now
    return .ping(nextCheck: now + self.timeout)
  }
}
