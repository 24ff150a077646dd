internal import EventLoop

/// The refresh token of the org's one app: which one is valid now.
package final class RefreshTokenRegistry: Sendable {
  private struct State {
    var current: String
    var random: RandomStream
  }

  private let isRotating: Bool
  private let state: Lock<State>

  /// - Parameter isRotating: every use replaces the token, and the old one is refused from then on.
  package init(token: String, isRotating: Bool) {
    self.isRotating = isRotating
    self.state = Lock(
      State(current: token, random: RandomStream(seed: UInt64.random(in: 0 ... .max))))
  }

  package enum Use: Equatable {
    case refused
    case accepted
    /// Accepted, with the token that is valid from now on.
    case replaced(String)
  }

  package func use(_ token: String) -> Use {
    self.state.withLock { state in
      guard token == state.current, !token.isEmpty else { return .refused }
      guard self.isRotating else { return .accepted }
      state.current =
        "5Aep861" + String(state.random.next(), radix: 36)
        + String(state.random.next(), radix: 36) + ".rotated"
      return .replaced(state.current)
    }
  }

  /// Lets tests look for what a client has stored.
  package var current: String { self.state.withLock { $0.current } }
}
