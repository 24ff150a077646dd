import Avro

/// Schedules requests so that events are sent at a given rate. A value without I/O; time is an
/// argument.
struct PublishPace {
  /// Events per second; nil for no limit.
  let rate: Double?
  private var next: ContinuousClock.Instant?

  init(rate: Double?) { self.rate = rate }

  /// The maximum number of events per request: those of a tenth of a second, so that the rate is
  /// smooth.
  var maxEventsOfRequest: Int {
    guard let rate = self.rate else { return PublishLimits.events }
    return min(PublishLimits.events, max(1, Int(rate / 10)))
  }

  /// When a request with this many events may be sent.
  mutating func due(events count: Int, now: ContinuousClock.Instant) -> ContinuousClock.Instant {
    guard let rate = self.rate else { return now }
    let due = max(self.next ?? now, now)
    self.next = due + .seconds(Double(count) / rate)
    return due
  }
}

/// The limits of the service (TheService.md#publishing).
enum PublishLimits {
  static let events = 200
  static let requestBytes = 3_000_000
  static let eventBytes = 1 << 20
  /// The maximum size of one line. JSON is several times as large as the event only with many
  /// escapes.
  static let lineBytes = 4 << 20
  /// Far above the service's limit, so that the error for that limit can name the event's size.
  static let encoding = EncodeLimits(byteCount: 8 << 20, values: 500_000, mistakes: 20)
}
