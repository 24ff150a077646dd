/// The reads of a run in addition to its stream: passes over objects, and after them the records that
/// are wrong in a store, many at a time. A value without I/O.
struct ReadCycle {
  typealias Instant = ContinuousClock.Instant

  /// The state of repairing an object's records in one store.
  struct Repair {
    enum Phase: Equatable {
      /// The store is queried from this time on.
      case idle(from: Instant)
      /// The reader has been asked for records.
      case asked
      case ended
    }

    /// The index among the objects that are read.
    let read: Int
    let store: Int
    fileprivate(set) var phase: Phase
    /// The last requested record.
    fileprivate(set) var last = ""
  }

  /// The interval at which a run that follows checks again for wrong records.
  static var repairInterval: Duration { .seconds(60) }

  var runs: [ReadRun]
  private(set) var repairs: [Repair]
  /// Whether wrong records are looked for until the run is stopped.
  private let follows: Bool
  private var isReadersTurn = false
  /// Whether the reader had something last time, so that the run does not wait for the stream.
  var hasMore = false

  /// - Parameters:
  ///   - topics: the names of the run's topics.
  ///   - stores: the numbers of the stores whose wrong records are read again.
  ///   - repeatsPolls: objects and fields without change events are read whenever that is due, not
  ///     only once.
  init(
    _ objects: [ReadObject], topics: [String], repairing stores: [Int], follows: Bool,
    repeatsPolls: Bool = false, at now: Instant
  ) {
    self.runs = objects.map { object in
      guard object.poll == nil else {
        return ReadRun(object, topic: nil, isRepeated: repeatsPolls)
      }
      guard let topic = topics.firstIndex(of: object.topic) else {
        preconditionFailure("\(object.entity): no topic \(object.topic)")
      }
      return ReadRun(
        object, topic: topic, isRepeated: repeatsPolls && object.refresh != nil)
    }
    self.repairs = objects.indices.filter { objects[$0].isRepaired }.flatMap { read in
      stores.map { Repair(read: read, store: $0, phase: .idle(from: now)) }
    }
    self.follows = follows
  }

  /// The reader and the stream take turns.
  mutating func takesTurn() -> Bool {
    self.isReadersTurn.toggle()
    return self.isReadersTurn
  }

  /// Why records could not be read.
  var failure: SourceFailure? { self.runs.lazy.compactMap(\.failure).first }

  /// When a pass has work to do without a signal.
  var deadline: Instant? { self.runs.lazy.compactMap(\.deadline).min() }

  /// Whether a pass begins only once its topic is caught up.
  var awaitsEvents: Bool { self.runs.contains(where: \.awaitsEvents) }

  /// Whether the records of an object are being read, or are about to be, apart from passes that begin
  /// only once its topic is caught up.
  func isReading(_ entity: String) -> Bool {
    self.runs.contains { $0.object.entity == entity && !$0.hasEnded && !$0.awaitsEvents }
  }

  /// As `hasReadAll`, apart from passes that begin only once their topics are caught up.
  func hasReadUntilCaughtUp(_ hasEnded: (_ topic: Int) -> Bool) -> Bool {
    self.runs.allSatisfy { $0.hasEnded || $0.awaitsEvents || Self.isOutOfReach($0, hasEnded) }
  }

  /// Whether every pass that this run has to make is durable or has failed. One that has not begun
  /// cannot begin once its topic has ended, because the start of the stream stays unknown.
  ///
  /// - Parameter hasEnded: whether a topic has ended.
  func hasReadAll(_ hasEnded: (_ topic: Int) -> Bool) -> Bool {
    self.runs.allSatisfy { $0.hasEnded || Self.isOutOfReach($0, hasEnded) }
  }

  /// Whether everything that could be read again has been.
  func hasRepaired(_ hasEnded: (_ topic: Int) -> Bool) -> Bool {
    self.repairs.allSatisfy {
      $0.phase == .ended || Self.isOutOfReach(self.runs[$0.read], hasEnded)
    }
  }

  private static func isOutOfReach(_ run: ReadRun, _ hasEnded: (Int) -> Bool) -> Bool {
    (run.phase == .unknown || run.phase == .unbegun) && run.topic.map(hasEnded) ?? false
  }

  /// The objects whose records the reader may deliver now, and the stores they are for.
  var expected: [(read: Int, store: Int)] {
    self.runs.enumerated().filter { $0.element.phase == .reading }.flatMap { read, run in
      run.recipients.map { (read, $0) }
    } + self.repairs.filter { $0.phase == .asked }.map { ($0.read, $0.store) }
  }

  /// Whether a store can be asked for wrong records; those of an object wait for its pass.
  func isDue(repair: Int, at now: Instant) -> Bool {
    guard case .idle(let time) = self.repairs[repair].phase else { return false }
    return now >= time && self.runs[self.repairs[repair].read].hasEnded
  }

  /// Notes that the next wrong records of a store are requested; without any, all have been.
  mutating func asked(_ repair: Int, for ids: [String], at now: Instant) {
    guard let last = ids.last else { return self.endSweep(repair, at: now) }
    self.repairs[repair].last = last
    self.repairs[repair].phase = .asked
  }

  /// Notes that a store takes no records of an object.
  mutating func end(repair: Int) { self.repairs[repair].phase = .ended }

  /// Notes the reader's answer to a request; a failed one ends the sweep.
  mutating func answered(read: Int, store: Int, isFailure: Bool, at now: Instant) {
    for index in self.repairs.indices
    where self.repairs[index].read == read && self.repairs[index].store == store {
      if isFailure {
        self.endSweep(index, at: now)
      } else {
        self.repairs[index].phase = .idle(from: now)
      }
    }
  }

  private mutating func endSweep(_ repair: Int, at now: Instant) {
    self.repairs[repair].last = ""
    self.repairs[repair].phase = self.follows ? .idle(from: now + Self.repairInterval) : .ended
  }
}
