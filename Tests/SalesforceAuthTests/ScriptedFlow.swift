@testable import SalesforceAuth

/// A login that gives its answers in turn, each only when the gate is open.
actor ScriptedFlow: AccessTokenFlow {
  private var answers: [Result<String, any Error>]
  private var isOpen: Bool
  private var blocked: [CheckedContinuation<Void, Never>] = []
  private var onArrival: CheckedContinuation<Void, Never>?
  private(set) var callCount = 0

  let replacesSecrets: Bool

  init(
    _ answers: [Result<String, any Error>], isOpen: Bool = true, replacesSecrets: Bool = false
  ) {
    self.replacesSecrets = replacesSecrets
    self.answers = answers
    self.isOpen = isOpen
  }

  func obtain() async throws -> (token: AccessToken, serverDate: Int64?) {
    self.callCount += 1
    self.onArrival?.resume()
    self.onArrival = nil
    if !self.isOpen { await withCheckedContinuation { self.blocked.append($0) } }
    let value = try self.answers.removeFirst().get()
    return (try .sample(value), Int64(self.callCount))
  }

  func open() {
    self.isOpen = true
    for continuation in self.blocked { continuation.resume() }
    self.blocked = []
  }

  /// Returns when the first login has begun.
  func arrival() async {
    if self.callCount == 0 { await withCheckedContinuation { self.onArrival = $0 } }
  }
}

extension AccessToken {
  static func sample(_ value: String) throws -> AccessToken {
    let id = try OrganizationID.choose(
      configured: "001Dp00000JJkkH", identityURL: nil, accessToken: value)
    return try AccessToken(value: value, instanceURL: "https://a.example", organizationID: id)
  }
}
