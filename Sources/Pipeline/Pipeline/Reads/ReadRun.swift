/// The state of reading one object's records in a run. A value without I/O, as `CommitInFlight`: it
/// returns the steps of a pass, which the runner performs.
struct ReadRun {
  typealias Instant = ContinuousClock.Instant

  enum Phase: Equatable {
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
    /// Everything was read; an object without change events, or fields, are read again then.
    case idle(until: Instant)
  }

  enum Step: Equatable {
    /// Ask the stores which of them need the records, and call `plan`.
    case plan
    /// Store the pass in the open commit.
    case store
    /// The pass now waits.
    case wait(until: Instant)
    /// Request the records.
    case read
    /// Every record is durable; call `end`.
    case end
  }

  /// The state of the run that a pass depends on.
  struct Moment {
    let now: Instant
    /// The number of durable commits.
    let commits: Int
    let isCommitting: Bool
    /// How long it may take until readers see everything that was committed before.
    let visibilityWait: Duration

    /// The number of commits once the open one is durable.
    var openCommit: Int { self.commits + (self.isCommitting ? 2 : 1) }
  }

  /// A store that the object's records are for, and the passes that it knows.
  struct Candidate {
    let store: Int
    let pass: ReadPass?
    var lastNumber: Int
    /// It gets all records again, whatever it has.
    let isAnew: Bool
    /// The pass over changed records.
    var changes: ReadPass?
    /// The pass over all columns, for an object whose pass reads only some.
    var whole: ReadPass?
    var lastReads = PollSchedule.LastReads()

    /// The pass that began last.
    var newest: ReadPass? {
      guard let changes, let pass else { return self.changes ?? self.pass }
      return changes.number > pass.number ? changes : pass
    }
  }

  private(set) var object: ReadObject
  /// Whether an object or fields without change events are read again in this run.
  private let isRepeated: Bool
  /// The index of the object's topic; nil if no topic of the run delivers its changes.
  let topic: Int?
  private(set) var phase = Phase.unknown
  /// The numbers of the stores that receive the records.
  private(set) var recipients: [Int] = []
  var pass: ReadPass
  /// The reason for an early end.
  private(set) var failure: SourceFailure?
  /// When the pass that is being read was stored.
  private var begunAt: Instant?

  init(_ object: ReadObject, topic: Int?, isRepeated: Bool = false) {
    self.object = object
    self.topic = topic
    self.isRepeated = isRepeated
    self.pass = ReadPass(entity: object.entity, part: object.part, number: 1)
  }

  var hasEnded: Bool {
    switch self.phase {
    case .ended, .idle: true
    default: false
    }
  }

  /// Whether the pass begins only once its topic is caught up.
  var awaitsEvents: Bool {
    self.object.refresh != nil && (self.phase == .unknown || self.phase == .unbegun)
  }

  /// When there is work to do without a signal.
  var deadline: Instant? {
    switch self.phase {
    case .waiting(let until), .idle(let until): until
    default: nil
    }
  }

  /// - Parameter mayBegin: whether the topic has a position, and for fields that change without
  ///   events also whether it is caught up: an event that arrives later than a read keeps its values.
  /// - Returns: what is to be done now; nil while the pass waits.
  mutating func advance(_ moment: Moment, mayBegin: @autoclosure () -> Bool) -> Step? {
    switch self.phase {
    case .unknown:
      // Passes over all columns come before one over some, and get earlier numbers.
      guard !moment.isCommitting, self.object.refresh == nil || mayBegin() else { return nil }
      return .plan
    case .unbegun:
      guard mayBegin() else { return nil }
      self.phase = .beginning(commit: moment.openCommit)
      self.begunAt = moment.now
      return .store
    case .beginning(let commit):
      return moment.commits >= commit ? self.wait(from: moment.now, moment) : nil
    case .idle(let until):
      guard moment.now >= until else { return nil }
      self.phase = .unknown
      return self.advance(moment, mayBegin: mayBegin())
    case .waiting(let until):
      guard moment.now >= until else { return nil }
      self.phase = .reading
      return .read
    case .ending(let commit): return moment.commits >= commit ? .end : nil
    case .reading, .ended: return nil
    }
  }

  /// Chooses the stores that get the records, and the place to begin or continue.
  ///
  /// - Parameter limit: the age at which a pass is begun again.
  /// - Returns: what is to be done now; nil if the pass waits or is not needed.
  mutating func plan(
    _ candidates: [Candidate], limit: Duration, _ moment: Moment
  ) -> Step? {
    if let poll = self.object.poll {
      return self.plan(poll, candidates, limit: limit, moment)
    }
    if let refresh = self.object.refresh {
      return self.plan(refresh, candidates, limit: limit, moment)
    }
    let chosen = candidates.filter { $0.isAnew || $0.pass?.state != .complete }
    self.recipients = chosen.map(\.store)
    self.phase = chosen.isEmpty ? .ended : .unbegun
    if chosen.isEmpty { return nil }
    guard self.object.condition == nil else {
      self.pass = ReadPass(entity: self.object.entity, number: 0)
      return nil
    }
    guard let behind = Self.behind(chosen.map(\.pass), limit: limit, moment) else {
      self.pass = ReadPass(
        entity: self.object.entity, part: self.object.part,
        number: (chosen.map(\.lastNumber).max() ?? 0) + 1)
      return nil
    }
    return self.resume(behind, moment)
  }

  /// The passes over an object without change events: of all records, and of changed ones. They share
  /// their numbers, and all stores get the same.
  private mutating func plan(
    _ poll: PollSchedule, _ candidates: [Candidate], limit: Duration, _ moment: Moment
  ) -> Step? {
    self.recipients = candidates.map(\.store)
    guard !candidates.isEmpty else {
      self.phase = .ended
      return nil
    }
    let reads = candidates.map(\.lastReads)
    let number = (candidates.map(\.lastNumber).max() ?? 0) + 1
    let unfinished = candidates.filter { $0.newest.map { $0.state != .complete } ?? false }
    if let behind = Self.behind(unfinished.map(\.newest), limit: limit, moment) {
      let since = reads.compactMap(\.any).min()
      if !behind.isOfChanges || since != nil && reads.allSatisfy({ $0.full != nil }) {
        self.recipients = unfinished.map(\.store)
        self.begunAt = behind.begunAt
        var pass = behind
        pass.since = behind.isOfChanges ? since : nil
        return self.resume(pass, moment)
      }
    }
    self.phase = .unbegun
    // A pass that cannot continue is replaced at once.
    let next = poll.next(
      after: reads, at: unfinished.isEmpty ? moment.now : moment.now + poll.every)
    switch next {
    case _ where candidates.contains(where: \.isAnew):
      self.pass = ReadPass(entity: self.object.entity, number: number)
    case .wait(let until): self.phase = self.isRepeated ? .idle(until: until) : .ended
    case .all: self.pass = ReadPass(entity: self.object.entity, number: number)
    case .changes(let since):
      self.pass = ReadPass(entity: self.object.entity, part: ReadPass.changes, number: number)
      self.pass.since = since
    }
    return nil
  }

  /// The pass over fields that change without events, into the stores whose values are old enough.
  private mutating func plan(
    _ refresh: Refresh, _ candidates: [Candidate], limit: Duration, _ moment: Moment
  ) -> Step? {
    let times = candidates.map {
      refresh.dueAt(after: $0.pass, whole: $0.whole, now: moment.now)
    }
    let due = zip(candidates, times).filter { $0.1 <= moment.now }.map(\.0)
    self.recipients = due.map(\.store)
    guard !due.isEmpty else {
      let next = self.isRepeated ? times.min() : nil
      self.phase = next.map { .idle(until: $0) } ?? .ended
      return nil
    }
    self.phase = .unbegun
    // Events may have come since a pass began that has requested nothing.
    if let behind = Self.behind(due.map(\.pass), limit: limit, moment), behind.state == .reading {
      self.begunAt = behind.begunAt
      return self.resume(behind, moment)
    }
    self.pass = ReadPass(
      entity: self.object.entity, part: self.object.part,
      number: (candidates.map(\.lastNumber).max() ?? 0) + 1)
    return nil
  }

  /// The place from which all stores can continue: that of the one furthest behind. Nil if they know
  /// different passes, or none that is young enough.
  private static func behind(
    _ passes: [ReadPass?], limit: Duration, _ moment: Moment
  ) -> ReadPass? {
    var behind: ReadPass?
    for case let pass? in passes where pass.state != .complete {
      if let begun = pass.begunAt, moment.now - begun > limit { continue }
      behind = behind.map { pass.isAtLeast($0) ? $0 : pass } ?? pass
    }
    guard let behind,
      passes.allSatisfy({
        $0?.number == behind.number && $0?.part == behind.part && $0?.state != .complete
      })
    else { return nil }
    return behind
  }

  private mutating func resume(_ pass: ReadPass, _ moment: Moment) -> Step {
    self.pass = pass
    if pass.state == .begun {
      // The positions have been durable since then, even while no run was active.
      return self.wait(from: min(pass.begunAt ?? moment.now, moment.now), moment)
    }
    self.phase = .reading
    return .read
  }

  /// Without a stream, no event has to become visible first.
  private mutating func wait(from start: Instant, _ moment: Moment) -> Step {
    guard self.topic != nil else {
      self.phase = .reading
      return .read
    }
    let until = start + moment.visibilityWait
    self.phase = .waiting(until: until)
    return .wait(until: until)
  }

  /// Stores that were further ahead when the run began take nothing until the reader has reached
  /// their place.
  ///
  /// - Parameter known: the pass that a store knows.
  func recipients(at pass: ReadPass, known: (Int) -> ReadPass?) -> [Int] {
    if self.object.condition != nil { return self.recipients }
    return self.recipients.filter { store in
      guard var known = known(store), known.number == pass.number else { return true }
      (known.since, known.fields) = (pass.since, pass.fields)
      return pass.state != .reading || !known.isAtLeast(pass) || known == pass
    }
  }

  /// Every record has been read.
  mutating func readAll(_ moment: Moment) { self.phase = .ending(commit: moment.openCommit) }

  /// - Parameter now: the time from which a failed read is repeated.
  mutating func end(_ failure: SourceFailure?, at now: Instant) {
    self.failure = failure
    self.phase = .ended
    guard let every = self.object.poll?.every ?? self.object.refresh?.every, self.isRepeated else {
      return
    }
    let start = failure == nil ? self.begunAt ?? now : now
    self.phase = .idle(until: start + every)
    if failure == nil { self.object.anew = [] }
  }

  /// Reads all records again, into one store.
  mutating func beginAgain(in store: String) {
    self.object.anew = [store]
    self.object.condition = nil
    self.failure = nil
    self.phase = .unknown
  }
}
