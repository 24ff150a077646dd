/// The open commit, which fills, and the one before it, until that is durable. At most one commit is
/// in flight. Both have the limits of `CommitPolicy`; beyond them, nothing more is taken.
struct CommitCycle {
  /// The number of the store that keeps the dead letters.
  let keeper: Int
  var policy: CommitPolicy
  /// A batch had to be written early, and the sinks have enough for a commit.
  var isOverweight = false
  /// Events of the open commit that could not be decoded or that a stage could not process, and the
  /// stores to be told.
  private var letters: [(recipients: StoreSet, letter: DeadLetter)] = []
  /// The size of the payloads in `letters`.
  private(set) var letterByteCount = 0
  /// The commit before the open one, until it is durable.
  var inFlight: CommitInFlight?

  init(keeper: Int, _ limits: CommitPolicy.Limits) {
    self.keeper = keeper
    self.policy = CommitPolicy(limits)
  }

  mutating func add(_ letter: DeadLetter, for recipients: StoreSet) {
    self.letters.append((recipients, letter))
    self.letterByteCount += letter.payload.count
  }

  /// Puts the open commit in flight and begins the next one.
  ///
  /// - Parameters:
  ///   - positions: of each store, by topic name.
  ///   - now: when the stores began to seal it.
  mutating func seal(
    at positions: [[String: TopicPosition]], now: ContinuousClock.Instant, isLast: Bool,
    tallies: [RunStatistics.Tally],
    resumes: [ReplayID?]
  ) {
    self.inFlight = CommitInFlight(
      commits: positions.enumerated().map { number, positions in
        Commit(
          positions: positions,
          letters: self.letters.filter { $0.recipients.contains(number) }.map(\.letter),
          isLast: isLast)
      },
      keeper: self.keeper, tallies: tallies, resumes: resumes)
    self.letters.removeAll()
    self.letterByteCount = 0
    self.policy.sealed(at: now)
    self.isOverweight = false
  }

  /// Ends the commit in flight once it is durable.
  mutating func finish(at now: ContinuousClock.Instant) -> CommitInFlight? {
    defer { self.inFlight = nil }
    self.policy.committed(at: now)
    return self.inFlight
  }
}
