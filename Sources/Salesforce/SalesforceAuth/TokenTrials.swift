/// Whether refused tokens have aged or were never any good.
///
/// A token that has worked and is refused later has expired or was revoked: it is renewed, however
/// often. One that is refused before it has done anything counts, and three of these in a row are
/// definite, whatever was answered meanwhile. Logins are limited, too, so tokens that last for
/// moments only are not renewed for ever.
struct TokenTrials {
  /// Tokens in a row that were refused before they had worked.
  static let maxUseless = 3
  /// Tokens in a row that were refused within `shortLife`. The service lets a user log in some
  /// thousand times an hour; the shortest session an org can set lasts 15 minutes.
  static let maxShortLived = 300
  static let shortLife = Duration.seconds(60)

  private var useless = 0
  private var shortLived = 0
  private var issuedAt: ContinuousClock.Instant?
  private var hasWorked = false

  /// Why no other token may be asked for; nil when one may.
  var verdict: String? {
    if self.useless >= Self.maxUseless {
      return "\(Self.maxUseless) new tokens in a row were rejected before they had worked once"
    }
    if self.shortLived >= Self.maxShortLived {
      return "\(Self.maxShortLived) tokens in a row were rejected within a minute of their logins"
    }
    return nil
  }

  /// A login has given a token.
  mutating func issued(at now: ContinuousClock.Instant) {
    self.issuedAt = now
    self.hasWorked = false
  }

  /// The service has accepted the token.
  mutating func worked() { self.hasWorked = true }

  /// The service has rejected the token; to be called once for each.
  mutating func refused(at now: ContinuousClock.Instant) {
    self.useless = self.hasWorked ? 0 : self.useless + 1
    let life = self.issuedAt.map { now - $0 } ?? .zero
    self.shortLived = self.hasWorked && life >= Self.shortLife ? 0 : self.shortLived + 1
  }
}
