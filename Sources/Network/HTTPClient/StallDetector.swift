/// Decides when a transfer has stalled: less than a number of bytes per second for as long as
/// `limit`.
///
/// Bytes are counted from the start, or from the moment when the last bytes that were enough for a
/// whole `limit` had arrived: so a fast start does not make up for a stall later.
struct StallDetector {
  let limit: Duration
  private let neededBytes: Int
  private var start: SuspendingClock.Instant
  private var startByteCount = 0

  init(limit: Duration, bytesPerSecond: Int, start: SuspendingClock.Instant) {
    self.limit = limit
    self.neededBytes = max(1, Int(limit / .milliseconds(1)) * bytesPerSecond / 1000)
    self.start = start
  }

  /// - Parameter byteCount: of the whole transfer so far.
  mutating func isStalled(byteCount: Int, at now: SuspendingClock.Instant) -> Bool {
    if byteCount - self.startByteCount >= self.neededBytes {
      self.startByteCount = byteCount
      self.start = now
      return false
    }
    return now - self.start >= self.limit
  }

  /// The transfer waited for its consumer, not for the server.
  mutating func paused(for duration: Duration) { self.start += duration }
}
