import Clocks
import JSON
import Pipeline

/// What is done about things that fail for the moment (`retry`).
struct RetryConfiguration: KeyedObject, Sendable, Equatable {
  /// How long runs that end by themselves try again; those that follow do without end.
  var giveUpAfter = Duration.seconds(600)
  /// How long such runs wait for a managed subscription that another client has. Unless `giveUpAfter` is
  /// set, this is longer than the service keeps one for a run that was killed
  /// (TheService.md#managed-subscriptions).
  var subscriptionPatience = Duration.seconds(1200)
  var minDelay = Duration.seconds(1)
  var maxDelay = Duration.seconds(60)
  var refusedDelay = Duration.seconds(600)

  static var keys: [Key<Self>] {
    [
      // The service keeps events for 72 h.
      .key(
        "give_up_after", \.giveUpAfter, .duration(in: .zero ... .seconds(72 * 3600)),
        "A run that ends by itself stops retrying (exit code 69) when the service, the login or a database "
          + "has failed for this long; a run that follows never does. For a managed subscription that "
          + "another client has, it waits "
          + "\(Self().subscriptionPatience.components.seconds / 60) minutes unless this is set.",
        example: "1h"),
      .key(
        "min_delay", \.minDelay, .duration(in: .milliseconds(100) ... .seconds(3600)),
        "Pause after the first failure; it doubles each time.", example: "500ms"),
      .key(
        "max_delay", \.maxDelay, .duration(in: .milliseconds(100) ... .seconds(3600)),
        "Longest pause between two attempts.", example: "5m"),
      .key(
        "refused_delay", \.refusedDelay, .duration(in: .seconds(1) ... .seconds(24 * 3600)),
        "A run that follows asks again for a topic that the service refuses after this time.",
        example: "30m"),
    ]
  }

  mutating func check(_ reader: JSONReader) {
    if reader.has("give_up_after") { self.subscriptionPatience = self.giveUpAfter }
    if !reader.has("min_delay") { self.minDelay = min(self.minDelay, self.maxDelay) }
    if !reader.has("max_delay") { self.maxDelay = max(self.maxDelay, self.minDelay) }
    if self.minDelay > self.maxDelay {
      reader.report("min_delay", "must not be longer than max_delay")
    }
  }

  /// - Parameter follows: the run continues until it is stopped.
  func schedule(follows: Bool) -> RetrySchedule {
    RetrySchedule(
      giveUpAfter: follows ? nil : self.giveUpAfter, minDelay: self.minDelay,
      maxDelay: self.maxDelay)
  }
}
