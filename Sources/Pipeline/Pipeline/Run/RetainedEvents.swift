/// The responses of the open commit and of the one in flight, kept so that an event that a store
/// refuses can be found again.
///
/// Holds the responses themselves, not copies. In the steady state an event costs nothing.
struct RetainedEvents<Response: SourceResponse> {
  private struct Run {
    var topic: Int
    var response: Int
    var firstEvent: Int
    var epoch: Int
    var firstOrdinal: Int64
    var count: Int
  }

  private struct Part {
    var responses: [Response] = []
    var runs: [Run] = []
  }

  private var open = Part()
  private var inFlight = Part()

  mutating func append(_ response: Response) { self.open.responses.append(response) }

  /// Notes the ordinals of consecutive events of the last response.
  ///
  /// - Parameters:
  ///   - event: the first of them.
  ///   - ordinal: that of the first.
  mutating func took(_ count: Int, from event: Int, topic: Int, epoch: Int, ordinal: Int64) {
    let response = self.open.responses.count - 1
    if let last = self.open.runs.last, last.response == response, last.topic == topic,
      last.epoch == epoch, last.firstEvent + last.count == event,
      last.firstOrdinal + Int64(last.count) == ordinal
    {
      self.open.runs[self.open.runs.count - 1].count += count
    } else {
      self.open.runs.append(
        Run(
          topic: topic, response: response, firstEvent: event, epoch: epoch,
          firstOrdinal: ordinal, count: count))
    }
  }

  func find(topic: Int, epoch: Int, ordinal: Int64) -> (response: Response, event: Int)? {
    for part in [self.inFlight, self.open] {
      for run in part.runs where run.topic == topic && run.epoch == epoch {
        let offset = ordinal - run.firstOrdinal
        if offset >= 0, offset < Int64(run.count) {
          return (part.responses[run.response], run.firstEvent + Int(offset))
        }
      }
    }
    return nil
  }

  /// Puts the open commit in flight and begins the next one.
  ///
  /// - Parameter keepingLast: the last response also belongs to the next commit.
  mutating func seal(keepingLast: Bool) {
    self.inFlight = self.open
    self.open = Part(responses: keepingLast ? self.inFlight.responses.suffix(1) : [])
  }

  /// The commit in flight is durable.
  mutating func committed() { self.inFlight = Part() }
}
