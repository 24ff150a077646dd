/// When to send a PING and when to give a silent connection up (gRPC "Keepalive").
struct Keepalive {
  typealias Instant = ContinuousClock.Instant

  enum OnTimer: Equatable {
    case wait(until: Instant)
    case ping(nextCheck: Instant)
    /// The peer has sent nothing at all since the PING.
    case dead
  }

  private let interval: Duration
  private let timeout: Duration
  private var lastReceived: Instant
  private var pingSent: Instant?

  init(interval: Duration, timeout: Duration, now: Instant) {
    self.interval = interval
    self.timeout = timeout
    self.lastReceived = now
  }

  /// Any bytes: they prove the peer alive even when a PING's answer is queued behind them.
  mutating func received(now: Instant) {
    self.lastReceived = now
  }

  mutating func pingAcknowledged() { self.pingSent = nil }

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
