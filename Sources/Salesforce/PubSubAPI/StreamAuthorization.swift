/// What one stream knows about the tokens with which it opened calls, and what to do when one is
/// refused.
///
/// The `CredentialsSource` judges for all streams together whether a token was valid. Two things
/// are known only to a stream: a call that was answered and then refused had a valid token, so the
/// service may just have had a temporary fault; and a stream may be refused with tokens that work
/// elsewhere.
package struct StreamAuthorization {
  package enum Remedy {
    /// The token may still be valid.
    case sameToken
    case newToken
  }

  /// The number of consecutive refused calls, each with a different token, after which the refusal
  /// is final. More than for a token that has never worked, because others may have used up a
  /// short-lived one.
  package static let maxRefusals = 5
  /// A call that lasts this long after its answer had a valid token.
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

  /// - Returns: whether this proves the token; true once per call.
  package mutating func answered(at now: ContinuousClock.Instant) -> Bool {
    guard let answeredAt = self.answeredAt else {
      self.answeredAt = now
      return false
    }
    guard !self.isProven, now - answeredAt >= Self.proof else { return false }
    self.prove()
    return true
  }

  /// Call this when the call has ended other than by a refusal of its token.
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

  /// Call this when the call has ended with a refusal of its token.
  package mutating func refused(_ credentials: Credentials) -> Remedy {
    if self.answeredAt != nil, self.doubtedToken != credentials.accessToken {
      self.doubtedToken = credentials.accessToken
      return .sameToken
    }
    self.refusals += 1
    return .newToken
  }

  /// Whether this stream has been refused too often, even if the tokens of others work.
  package var isHopeless: Bool { self.refusals >= Self.maxRefusals }
}
