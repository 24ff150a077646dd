import Clocks
import JSON
import Pipeline

/// What is done about things that fail for the moment (`retry`).
struct RetryConfiguration: Sendable, Equatable {
  /// How long runs that end by themselves try again; those that follow do without end.
  var giveUpAfter = Duration.seconds(600)
  /// How long such runs wait for a managed subscription that another client has. Unless `giveUpAfter` is
  /// set, this is longer than the service keeps one for a run that was killed
  /// (TheService.md#managed-subscriptions).
  var subscriptionPatience = Duration.seconds(1200)
  var minDelay = Duration.seconds(1)
  var maxDelay = Duration.seconds(60)
  /// When following, a topic that the service refuses is asked for again after this time.
  var refusedDelay = Duration.seconds(600)

  /// - Parameter follows: the run continues until it is stopped.
  func schedule(follows: Bool) -> RetrySchedule {
    RetrySchedule(
      giveUpAfter: follows ? nil : self.giveUpAfter, minDelay: self.minDelay,
      maxDelay: self.maxDelay)
  }
}

extension ConfigurationReader {
  func retry(_ reader: JSONReader) -> RetryConfiguration {
    var retry = RetryConfiguration()
    // The service keeps events for 72 h.
    if let limit = reader.duration("give_up_after", in: .zero ... .seconds(72 * 3600)) {
      (retry.giveUpAfter, retry.subscriptionPatience) = (limit, limit)
    }
    let minDelay = reader.duration("min_delay", in: .milliseconds(100) ... .seconds(3600))
    let maxDelay = reader.duration("max_delay", in: .milliseconds(100) ... .seconds(3600))
    retry.minDelay = minDelay ?? min(retry.minDelay, maxDelay ?? retry.minDelay)
    retry.maxDelay = maxDelay ?? max(retry.maxDelay, retry.minDelay)
    if retry.minDelay > retry.maxDelay {
      reader.report("min_delay", "must not be longer than max_delay")
    }
    retry.refusedDelay =
      reader.duration("refused_delay", in: .seconds(1) ... .seconds(24 * 3600))
      ?? retry.refusedDelay
    reader.finish()
    return retry
  }
}
