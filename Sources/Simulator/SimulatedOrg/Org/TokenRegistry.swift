internal import EventLoop

/// The org's identity, and the access tokens that are valid now. Shared by login and gRPC.
package final class TokenRegistry: Sendable {
  private struct State {
    var random: RandomStream
    var tokens: [String: Int64] = [:]
    var logins = 0
    var refusals = 0
    var allowance = PeriodicAllowance(period: 3_600_000)
  }

  package let organizationID: String
  package let userID: String
  package let clientID: String
  package let clientSecret: String
  /// Milliseconds for which a token works; nil: until it is revoked.
  package let lifetime: Int64?
  private let state: Lock<State>

  package init(seed: UInt64, clientID: String, clientSecret: String, lifetime: Int64?) {
    var random = RandomStream(seed: RandomStream.mix(seed &+ 77))
    let id = RecordID.bytes(prefix: "00D", number: random.next() % 3_000_000_000)
    self.organizationID = String(decoding: id, as: UTF8.self)
    self.userID = String(
      decoding: RecordID.bytes(prefix: "005", number: 2000), as: UTF8.self)
    self.clientID = clientID
    self.clientSecret = clientSecret
    self.lifetime = lifetime
    // tokens differ from run to run, so that one of an earlier run is not accepted
    self.state = Lock(State(random: RandomStream(seed: UInt64.random(in: 0 ... .max))))
  }

  /// `CORE/prod/00D…`: how the service names a tenant.
  package var tenantGUID: String { "CORE/prod/\(self.organizationID)" }

  /// A new token, `<15-character org ID>!<rest>`.
  package func issue(at now: Int64) -> String {
    self.state.withLock { state in
      let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._".utf8)
      var token = Array(self.organizationID.utf8.prefix(15)) + [UInt8(ascii: "!")]
      for _ in 0..<96 { token.append(alphabet[state.random.below(alphabet.count)]) }
      let text = String(decoding: token, as: UTF8.self)
      state.tokens[text] = now
      state.logins += 1
      return text
    }
  }

  package func isValid(_ token: String, at now: Int64) -> Bool {
    self.state.withLock { state in
      guard let issuedAt = state.tokens[token] else { return false }
      guard let lifetime = self.lifetime else { return true }
      return now - issuedAt < lifetime
    }
  }

  /// Whether the org takes one more login in this hour.
  package func mayLogIn(limit: Int?, at now: Int64) -> Bool {
    self.state.withLock { state in
      guard let limit else { return true }
      guard state.allowance.used(at: now) < limit else { return false }
      state.allowance.use(1, at: now)
      return true
    }
  }

  /// All tokens stop working.
  package func revokeAll() {
    self.state.withLock { $0.tokens.removeAll() }
  }

  package func refused() {
    self.state.withLock { $0.refusals += 1 }
  }

  package var counts: (logins: Int, refusals: Int) {
    self.state.withLock { ($0.logins, $0.refusals) }
  }

  /// Checks the metadata of a call (TheService.md#connecting).
  package func authenticate(
    token: String?, instanceURL: String?, tenantID: String?, at now: Int64
  ) throws(ServiceFault) {
    guard let token, let instanceURL, let tenantID, !token.isEmpty, !instanceURL.isEmpty,
      !tenantID.isEmpty
    else { throw .headersInvalid }
    guard Self.isOrigin(instanceURL), self.isThisTenant(tenantID), self.isValid(token, at: now)
    else { throw .authentication }
  }

  /// Scheme and host, perhaps a port, nothing behind.
  private static func isOrigin(_ url: String) -> Bool {
    for scheme in ["https://", "http://"] where url.hasPrefix(scheme) {
      let rest = url.dropFirst(scheme.count)
      return !rest.isEmpty && !rest.contains("/")
    }
    return false
  }

  private func isThisTenant(_ id: String) -> Bool {
    let last = id.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
    if id.contains("/"), !id.lowercased().hasPrefix("core/") { return false }
    return last == self.organizationID || last == self.organizationID.prefix(15)
  }
}
