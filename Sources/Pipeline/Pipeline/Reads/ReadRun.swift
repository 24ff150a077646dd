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
    let lastNumber: Int
    /// It gets all records again, whatever it has.
    let isAnew: Bool
  }

  private(set) var object: ReadObject
  /// The index of the object's topic.
  let topic: Int
  private(set) var phase = Phase.unknown
  /// The numbers of the stores that receive the records.
  private(set) var recipients: [Int] = []
  var pass: ReadPass
  /// The reason for an early end.
  private(set) var failure: SourceFailure?

  init(_ object: ReadObject, topic: Int) {
    self.object = object
    self.topic = topic
    self.pass = ReadPass(entity: object.entity, part: object.part, number: 1)
  }

  var hasEnded: Bool { self.phase == .ended }

  /// When there is work to do without a signal.
  var deadline: Instant? {
    if case .waiting(let until) = self.phase { return until }
    return nil
  }

  /// - Parameter hasPosition: see `TopicRun`.
  /// - Returns: what is to be done now; nil while the pass waits.
  mutating func advance(_ moment: Moment, hasPosition: @autoclosure () -> Bool) -> Step? {
    switch self.phase {
    case .unknown: return moment.isCommitting ? nil : .plan
    case .unbegun:
      guard hasPosition() else { return nil }
      self.phase = .beginning(commit: moment.openCommit)
      return .store
    case .beginning(let commit):
      return moment.commits >= commit ? self.wait(from: moment.now, moment) : nil
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
    let chosen = candidates.filter { $0.isAnew || $0.pass?.state != .complete }
    self.recipients = chosen.map(\.store)
    self.phase = chosen.isEmpty ? .ended : .unbegun
    if chosen.isEmpty { return nil }
    guard self.object.condition == nil else {
      self.pass = ReadPass(entity: self.object.entity, number: 0)
      return nil
    }
    // All stores continue from the one furthest behind.
    var behind: ReadPass?
    for case let pass? in chosen.map(\.pass) where pass.state != .complete {
      if let begun = pass.begunAt, moment.now - begun > limit { continue }
      behind = behind.map { pass.isAtLeast($0) ? $0 : pass } ?? pass
    }
    guard let behind,
      chosen.allSatisfy({ $0.pass?.number == behind.number && $0.pass?.state != .complete })
    else {
      self.pass = ReadPass(
        entity: self.object.entity, part: self.object.part,
        number: (chosen.map(\.lastNumber).max() ?? 0) + 1)
      return nil
    }
    self.pass = behind
    if behind.state == .begun {
      // The positions have been durable since then, even while no run was active.
      return self.wait(from: min(behind.begunAt ?? moment.now, moment.now), moment)
    }
    self.phase = .reading
    return .read
  }

  private mutating func wait(from start: Instant, _ moment: Moment) -> Step {
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
      guard let known = known(store), known.number == pass.number else { return true }
      return pass.state != .reading || !known.isAtLeast(pass) || known == pass
    }
  }

  /// Every record has been read.
  mutating func readAll(_ moment: Moment) { self.phase = .ending(commit: moment.openCommit) }

  mutating func end(_ failure: SourceFailure?) {
    self.phase = .ended
    self.failure = failure
  }

  /// Reads all records again, into one store.
  mutating func beginAgain(in store: String) {
    self.object.anew = [store]
    self.object.condition = nil
    self.failure = nil
    self.phase = .unknown
  }
}
