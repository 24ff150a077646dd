/// The state of reading one object's records in a run.
struct ReadRun {
  typealias Instant = ContinuousClock.Instant

  enum Phase {
    /// It is not known which stores need the records.
    case unknown
    /// The positions of the stream have to become durable first, together with the pass.
    case unbegun
    /// The positions and the pass become durable with this commit.
    case beginning(commit: Int)
    /// Until then, readers may not see all earlier commits.
    case waiting(until: Instant)
    case reading
    /// Everything has been read and becomes durable with this commit.
    case ending(commit: Int)
    case ended
  }

  var object: ReadObject
  /// The index of the object's topic.
  let topic: Int
  var phase = Phase.unknown
  /// The numbers of the stores that receive the records.
  var recipients: [Int] = []
  var pass: ReadPass
  /// The reason for an early end.
  var failure: SourceFailure?

  init(_ object: ReadObject, topic: Int) {
    self.object = object
    self.topic = topic
    self.pass = ReadPass(entity: object.entity, part: object.part, number: 1)
  }

  var hasEnded: Bool {
    if case .ended = self.phase { return true }
    return false
  }

  /// When there is work to do without a signal.
  var deadline: Instant? {
    if case .waiting(let until) = self.phase { return until }
    return nil
  }
}

/// The state of repairing an object's records in one store.
struct RepairRun {
  enum Phase {
    /// The store is queried from this time on.
    case idle(from: ContinuousClock.Instant)
    /// The reader has been asked for records.
    case asked
    case ended
  }

  /// The index among the objects that are read.
  let read: Int
  let store: Int
  var phase: Phase
  /// The last requested record.
  var last = ""

  var hasEnded: Bool {
    if case .ended = self.phase { return true }
    return false
  }

  var deadline: ContinuousClock.Instant? {
    if case .idle(let time) = self.phase { return time }
    return nil
  }
}
