/// Whether there is a connection for new streams, and when to make one. No I/O, no clock.
///
/// A connection is made when a stream asks for one. After a failure the next attempt waits, longer
/// from failure to failure, until a connection has carried an answer.
struct ConnectionStateMachine {
  typealias Instant = ContinuousClock.Instant

  private enum State {
    /// `connect()` has not been called; streams wait. Next: idle.
    case notRunning
    /// No connection and no need for one. Next: connecting.
    case idle
    /// Next: ready, backingOff.
    case connecting
    /// Next: idle (connection lost or draining), backingOff (lost before it was of any use).
    case ready(hasAnswered: Bool)
    /// Next: connecting.
    case backingOff(until: Instant)
  }

  enum OnStreamWanted: Equatable {
    /// Call `streamWanted` again after the next change of state.
    case wait
    /// Call `streamWanted` again at this time.
    case waitUntil(Instant)
    /// Make a connection.
    case connect
    /// Use the connection there is.
    case use
  }

  private let backoff: HTTP2ClientTransport.Configuration.Backoff
  private var state = State.notRunning
  private var failures = 0

  init(backoff: HTTP2ClientTransport.Configuration.Backoff) { self.backoff = backoff }

  mutating func run() {
    guard case .notRunning = self.state else { preconditionFailure("connect() was called twice") }
    self.state = .idle
  }

  mutating func streamWanted(now: Instant) -> OnStreamWanted {
    switch self.state {
    case .notRunning, .connecting: return .wait
    case .ready: return .use
    case .backingOff(let until) where now < until: return .waitUntil(until)
    case .idle, .backingOff:
      self.state = .connecting
      return .connect
    }
  }

  mutating func connected() {
    guard case .connecting = self.state else { preconditionFailure("connected in \(self.state)") }
    self.state = .ready(hasAnswered: false)
  }

  /// The first answer on a connection came in, be it the one for new streams or one that finishes
  /// what it has: the server works, so the next attempt need not wait.
  mutating func answered() {
    self.failures = 0
    switch self.state {
    case .ready: self.state = .ready(hasAnswered: true)
    case .backingOff: self.state = .idle
    case .notRunning, .idle, .connecting: break
    }
  }

  /// - Parameter jitter: random, in -1...1.
  mutating func connectFailed(now: Instant, jitter: Double) {
    guard case .connecting = self.state else { preconditionFailure("failed in \(self.state)") }
    self.backOff(now: now, jitter: jitter)
  }

  /// The connection takes no more streams: it is lost, or the peer asked to leave.
  mutating func connectionGone(now: Instant, jitter: Double) {
    guard case .ready(let hasAnswered) = self.state else {
      preconditionFailure("gone in \(self.state)")
    }
    if hasAnswered {
      self.state = .idle
    } else {
      self.backOff(now: now, jitter: jitter)
    }
  }

  private mutating func backOff(now: Instant, jitter: Double) {
    self.failures += 1
    let pause = self.backoff.pause(afterFailures: self.failures, jitter: jitter)
    self.state = .backingOff(until: now + pause)
  }
}
