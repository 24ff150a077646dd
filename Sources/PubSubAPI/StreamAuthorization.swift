/// What one stream has seen of the tokens that it opened calls with, and what to do when one is
/// refused.
///
/// Whether a token was any good is judged for all streams together, by the `CredentialsSource`. Two
/// things only a stream knows: a call that was answered and refused afterwards had a good token, so
/// the service may just have stumbled; and a stream may be refused with tokens that work elsewhere.
package struct StreamAuthorization {
  package enum Remedy {
    /// The token may be good still.
    case sameToken
    case newToken
  }

  /// Calls in a row that were refused, each with another token; the last is refused for good. More
  /// than for a token that has never worked, since others may have used up a short-lived one.
  package static let maxRefusals = 5
  /// A call that has gone on for so long after its answer had a good token.
  static let proof = Duration.seconds(60)

  private var answeredAt: ContinuousClock.Instant?
  private var isProven = false
  /// The token of a call that was refused after its answer.
  private var doubtedToken: String?
  private var refusals = 0

  package init() {}

  package mutating func opened() {
    self.answeredAt = nil
    self.isProven = false
  }

  /// - Returns: whether this proves the token, which is said once a call.
  package mutating func answered(at now: ContinuousClock.Instant) -> Bool {
    guard let answeredAt = self.answeredAt else {
      self.answeredAt = now
      return false
    }
    guard !self.isProven, now - answeredAt >= Self.proof else { return false }
    self.prove()
    return true
  }

  /// The call has ended, and not with a refusal of its token.
  ///
  /// - Returns: whether this proves the token.
  package mutating func ended() -> Bool {
    guard self.answeredAt != nil, !self.isProven else { return false }
    self.prove()
    return true
  }

  private mutating func prove() {
    self.isProven = true
    self.refusals = 0
    self.doubtedToken = nil
  }

  /// The call has ended with a refusal of its token.
  package mutating func refused(_ credentials: Credentials) -> Remedy {
    if self.answeredAt != nil, self.doubtedToken != credentials.accessToken {
      self.doubtedToken = credentials.accessToken
      return .sameToken
    }
    self.refusals += 1
    return .newToken
  }

  /// Whether this stream has been refused too often, whatever others do with their tokens.
  package var isHopeless: Bool { self.refusals >= Self.maxRefusals }
}
