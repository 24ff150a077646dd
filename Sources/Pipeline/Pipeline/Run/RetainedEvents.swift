/// The responses of a commit, kept so that an event that a store refuses can be found again.
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

  private var responses: [Response] = []
  private var runs: [Run] = []

  mutating func append(_ response: Response) { self.responses.append(response) }

  /// Notes the ordinal of an event of the last response.
  mutating func took(event: Int, topic: Int, epoch: Int, ordinal: Int64) {
    let response = self.responses.count - 1
    if let last = self.runs.last, last.response == response, last.topic == topic,
      last.epoch == epoch, last.firstEvent + last.count == event,
      last.firstOrdinal + Int64(last.count) == ordinal
    {
      self.runs[self.runs.count - 1].count += 1
    } else {
      self.runs.append(
        Run(
          topic: topic, response: response, firstEvent: event, epoch: epoch,
          firstOrdinal: ordinal, count: 1))
    }
  }

  func find(topic: Int, epoch: Int, ordinal: Int64) -> (response: Response, event: Int)? {
    for run in self.runs where run.topic == topic && run.epoch == epoch {
      let offset = ordinal - run.firstOrdinal
      if offset >= 0, offset < Int64(run.count) {
        return (self.responses[run.response], run.firstEvent + Int(offset))
      }
    }
    return nil
  }

  /// Returns the responses of the sealed commit.
  ///
  /// - Parameter keepingLast: the last response also belongs to the next commit.
  mutating func seal(keepingLast: Bool) -> Self {
    let sealed = self
    self.runs = []
    self.responses = keepingLast ? self.responses.suffix(1) : []
    return sealed
  }
}
