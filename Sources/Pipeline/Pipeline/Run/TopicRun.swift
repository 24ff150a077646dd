/// The state of one topic in a run.
struct TopicRun {
  typealias Instant = ContinuousClock.Instant

  enum State: Equatable {
    case running
    /// The service refuses the topic; nil if it is not requested again in this run.
    case refused(until: Instant?)
    case ended
  }

  let topic: SourceTopic
  /// The position in every store.
  var cursors: TopicCursors
  var caughtUp: CaughtUp
  var continuity = StreamContinuity()
  /// The memory of stages at each store's position when the run began.
  let storedMemory: [StageMemory]
  /// Events before this place have their dead letters already.
  let lettersDurable: RefusedPlace?
  /// Set by policy after an invalid replay ID.
  var startOverride: StartPoint?
  /// Nil while the stream is not open.
  var openedAt: Instant?
  /// A schema that a response needs could not be fetched yet.
  var lacksSchema = false
  var state = State.running
  /// Why the service has refused the topic; nil once it delivers again.
  var refusal: SourceFailure?
  /// When the open stream had last been silent long enough to be caught up, by the service's clock.
  var quietAt: Int64?
  /// It has been reported that the run waits for a keepalive of this topic.
  var awaitsPosition = false
  /// Events written, committed or not.
  var takenCount = 0

  /// - Parameters:
  ///   - stored: the topic's position in each store; nil if there is none.
  ///   - keeper: the number of the store that keeps dead letters.
  init(
    _ topic: SourceTopic, index: Int, stored: [TopicPosition?], keeper: Int,
    rules: CaughtUp.Configuration
  ) {
    self.topic = topic
    self.cursors = TopicCursors(isChannel: topic.isChannel, stored: stored)
    self.caughtUp = CaughtUp(rules)
    self.storedMemory = stored.map { $0?.memory ?? [:] }
    self.lettersDurable = stored[keeper].map {
      RefusedPlace(topic: index, epoch: $0.epoch, ordinal: $0.nextOrdinal)
    }
  }

  /// Whether the stream has a position, so that everything it does not deliver was committed before.
  var hasPosition: Bool {
    self.cursors.resume != nil || self.openedAt != nil && self.topic.start == .earliest
  }

  /// Whether the topic delivers nothing for now.
  var hasEnded: Bool { self.state != .running }

  /// The service refuses the topic.
  ///
  /// - Parameter until: when the topic is requested again; nil if not in this run.
  mutating func refused(_ failure: SourceFailure, until: Instant?) {
    self.closed()
    self.refusal = failure
    self.state = .refused(until: until)
  }

  /// Resumes a refused topic whose retry time has come.
  mutating func resumeIfDue(at now: Instant) -> Bool {
    guard case .refused(let until?) = self.state, now >= until else { return false }
    self.state = .running
    return true
  }

  /// The place at which to open the stream; nil if there is none.
  mutating func reopen() -> StartPoint? {
    let start = self.cursors.reopen(start: self.startOverride ?? self.topic.start)
    self.continuity.opening(at: start, exported: self.cursors.newestCommit)
    return start
  }

  /// - Parameter isConfirmed: see `CaughtUp.opened`.
  mutating func opened(at now: Instant, isConfirmed: Bool) {
    self.openedAt = now
    self.caughtUp.opened(at: now, isConfirmed: isConfirmed)
  }

  mutating func closed() {
    self.openedAt = nil
    self.caughtUp.closed()
  }
}
