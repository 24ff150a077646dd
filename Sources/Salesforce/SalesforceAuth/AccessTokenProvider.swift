package import Clocks
internal import EventLoop

/// The access token shared by all streams: obtained once, kept until it is invalidated.
///
/// However many ask at once, one login runs. After three refusals in a row none is tried any more,
/// since the service locks users out; nor is one when new tokens are refused again and again.
package actor AccessTokenProvider {
  private static let maxRefusals = 3

  private let flow: any AccessTokenFlow
  private let clock: ProcessClock
  private var cached: AccessToken?
  private var rejected: AccessToken?
  private var refusals = 0
  private var lastRefusal = ""
  private var trials = TokenTrials()

  private var login: Task<Void, Never>?
  private var waiters: [Int: CheckedContinuation<AccessToken, any Error>] = [:]
  private var nextWaiter = 0

  /// The server's clock at the latest login, in seconds since 1970; nil before it, or when the flow
  /// asks no server.
  package private(set) var serverDate: Int64?
  /// When `serverDate` was read.
  package private(set) var serverDateReadAt: ContinuousClock.Instant?

  package init(_ flow: any AccessTokenFlow) { self.init(flow, clock: ProcessClock()) }

  package init(_ flow: any AccessTokenFlow, clock: ProcessClock) {
    self.flow = flow
    self.clock = clock
  }

  /// The token of the latest login, or of a new one.
  ///
  /// Throws `AuthError`, `CancellationError` when the calling task is cancelled, and what a given
  /// token's reader throws. Does not retry: the caller backs off on `unavailable`.
  package func token() async throws -> AccessToken {
    if let cached = self.cached { return cached }
    guard self.refusals < Self.maxRefusals else {
      throw AuthError(
        .refused,
        "\(Self.maxRefusals) logins in a row were refused, so no more are attempted; the last one: "
          + self.lastRefusal)
    }
    if let verdict = self.trials.verdict {
      throw AuthError(
        .refused,
        "\(verdict); no new token will be requested. Check org_id, that the app has the scope api, and that "
          + "the user has API Enabled. Neither app, profile nor session settings may restrict this "
          + "machine's address")
    }
    self.startLogin()
    return try await self.result()
  }

  /// Waits for a login that is under way and may replace what the next one needs: the process would end
  /// before the new refresh token is stored, and nobody could log in again. For the end of a process, whether
  /// or not the calling task is cancelled.
  ///
  /// - Parameter limit: how long.
  package func settle(within limit: Duration) async {
    guard self.login != nil, self.flow.replacesSecrets else { return }
    let waiting = Task { try await self.result() }
    let timer = Task { [clock] in
      try await clock.sleep(for: limit)
      waiting.cancel()
    }
    _ = await waiting.result
    timer.cancel()
  }

  /// The result of the login that is under way.
  private func result() async throws -> AccessToken {
    let waiter = self.nextWaiter
    self.nextWaiter += 1
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        // The handler may have come and gone before this, and so may the login.
        guard !Task.isCancelled, self.login != nil else {
          return continuation.resume(throwing: CancellationError())
        }
        self.waiters[waiter] = continuation
      }
    } onCancel: {
      Task { await self.abandon(waiter) }
    }
  }

  /// The service has accepted a token. Does nothing when it has been replaced meanwhile.
  package func worked(_ value: String) {
    if self.cached?.value == value { self.trials.worked() }
  }

  /// The service has rejected a token, so that the next `token()` obtains another. However many
  /// callers say so of one token, it counts once.
  ///
  /// - Returns: whether another will be asked for.
  @discardableResult
  package func refused(_ value: String) -> Bool {
    if let cached = self.cached, cached.value == value {
      self.trials.refused(at: self.clock.now)
      self.rejected = cached
      self.cached = nil
    }
    return self.trials.verdict == nil
  }

  private func startLogin() {
    guard self.login == nil else { return }
    self.login = Task {
      do {
        let (token, serverDate) = try await self.flow.obtain()
        self.finishLogin(try self.checked(token), serverDate: serverDate)
      } catch {
        self.failLogin(error)
      }
    }
  }

  private func checked(_ token: AccessToken) throws(AuthError) -> AccessToken {
    guard self.flow.isRenewedElsewhere, token.value == self.rejected?.value else { return token }
    throw AuthError(
      .refused,
      "the service rejected the access_token, and it has not been replaced since; renew it")
  }

  private func finishLogin(_ token: AccessToken, serverDate: Int64?) {
    self.cached = token
    self.refusals = 0
    self.trials.issued(at: self.clock.now)
    if let serverDate {
      self.serverDate = serverDate
      self.serverDateReadAt = self.clock.now
    }
    self.endLogin(.success(token))
  }

  private func failLogin(_ error: any Error) {
    if let error = error as? AuthError, error.code == .refused {
      self.refusals += 1
      self.lastRefusal = error.message
    }
    self.endLogin(.failure(error))
  }

  private func endLogin(_ result: Result<AccessToken, any Error>) {
    self.login = nil
    let waiters = self.waiters
    self.waiters = [:]
    for continuation in waiters.values { continuation.resume(with: result) }
  }

  /// A caller was cancelled. The login continues: others may join it, and its answer is kept.
  private func abandon(_ waiter: Int) {
    self.waiters.removeValue(forKey: waiter)?.resume(throwing: CancellationError())
  }
}

extension AccessTokenProvider: CustomReflectable {
  package nonisolated var customMirror: Mirror { Mirror(self, children: []) }
}
