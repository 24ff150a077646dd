internal import Pipeline
internal import PubSubAPI

/// Which position the service is asked to store for a managed subscription, and which it has
/// stored.
///
/// Only positions that every store has made durable are committed, at most once a second. The same
/// position is committed again after some time, because the service ends a call that commits
/// nothing for 1800 s (TheService.md#managed-subscriptions). A value type without I/O.
struct ManagedCommits: Sendable {
  typealias Instant = ContinuousClock.Instant

  enum OnAnswer: Equatable {
    case confirmed(ReplayID)
    case failed(ReplayID)
    /// The service has stored a position other than the requested one.
    case misplaced(ReplayID, asked: ReplayID)
    /// An answer to no commit of this stream.
    case unknown
  }

  /// The minimum time between commits.
  static let pause = Duration.seconds(1)
  /// After this long, the same position is committed again.
  static let renewal = Duration.seconds(600)
  /// A position that the service has refused is committed again after this long, unless a newer one
  /// comes first.
  static let retryPause = Duration.seconds(60)
  /// The maximum number of unanswered commits; then no more are sent until an answer arrives.
  static let maxUnanswered = 16

  /// Where a run would resume.
  private(set) var durable: ReplayID?
  /// The position that the service has stored, according to its last answer.
  private(set) var stored: ReplayID?
  private(set) var confirmedCount = 0
  private(set) var failedCount = 0
  private var last: (replayID: ReplayID, sentAt: Instant, hasFailed: Bool)?
  private var unanswered: [(id: String, replayID: ReplayID)] = []
  private var number = 0

  /// Call this for a new stream, on which nothing has been committed.
  mutating func opened() {
    self.last = nil
    self.unanswered.removeAll()
  }

  mutating func becameDurable(_ replayID: ReplayID) { self.durable = replayID }

  /// - Parameter isLast: the call is about to be closed, so a new position does not wait.
  /// - Returns: the commit to send now.
  mutating func due(at now: Instant, isLast: Bool = false) -> ManagedCommit? {
    guard let durable, self.unanswered.count < Self.maxUnanswered else { return nil }
    if let last {
      let pause =
        if last.replayID != durable {
          isLast ? Duration.zero : Self.pause
        } else {
          last.hasFailed ? Self.retryPause : Self.renewal
        }
      guard now - last.sentAt >= pause else { return nil }
    }
    self.number += 1
    let id = "c\(self.number)"
    self.last = (durable, now, false)
    self.unanswered.append((id, durable))
    return ManagedCommit(id: id, replayID: durable.bytes)
  }

  /// Handles an answer to a commit, which also answers earlier ones unless it is a refusal.
  ///
  /// - Parameter stored: the position in the answer; nil if it has none and so means the requested
  ///   one.
  mutating func answered(id: String, hasFailed: Bool, stored: ReplayID? = nil) -> OnAnswer {
    guard let index = self.unanswered.firstIndex(where: { $0.id == id }) else { return .unknown }
    let replayID = self.unanswered[index].replayID
    if hasFailed {
      self.unanswered.remove(at: index)
      self.failedCount += 1
      self.willRetry(replayID)
      return .failed(replayID)
    }
    self.unanswered.removeFirst(index + 1)
    self.stored = stored ?? replayID
    if let stored, stored != replayID {
      self.failedCount += index + 1
      self.willRetry(replayID)
      return .misplaced(stored, asked: replayID)
    }
    self.confirmedCount += index + 1
    return .confirmed(replayID)
  }

  private mutating func willRetry(_ replayID: ReplayID) {
    if self.last?.replayID == replayID { self.last?.hasFailed = true }
  }

  /// Whether there is nothing to send and nothing to wait for.
  var isSettled: Bool {
    self.unanswered.isEmpty && (self.durable == nil || self.last?.replayID == self.durable)
  }
}
