internal import HTTPClient

/// A login that gave no access token. Its text never holds a secret.
package struct AuthError: Error, Sendable, CustomStringConvertible {
  package struct Code: Hashable, Sendable {
    private enum Value { case refused, unavailable, exhausted, untrusted, configuration }
    private var value: Value
    private init(_ value: Value) { self.value = value }
    /// The login service said no; asking again gives the same answer and may lock the user out.
    package static var refused: Self { Self(.refused) }
    /// No answer, or one that says nothing about the login: ask again later, with back-off.
    package static var unavailable: Self { Self(.unavailable) }
    /// Threads or descriptors have run out: ask again later.
    package static var exhausted: Self { Self(.exhausted) }
    /// The login host could not prove who it is.
    package static var untrusted: Self { Self(.untrusted) }
    /// The settings cannot be used as they are.
    package static var configuration: Self { Self(.configuration) }
  }

  package var code: Code
  /// What happened, on which host, what to do.
  package var message: String
  /// This machine's clock may be the reason.
  var concernsClock = false
  package var description: String { self.message }

  /// The same login may succeed later.
  package var isTransient: Bool { [.unavailable, .exhausted].contains(self.code) }

  package init(_ code: Code, _ message: String) {
    (self.code, self.message) = (code, message)
  }

  init(_ error: HTTPError) {
    let code: Code =
      switch error.code {
      case .untrusted: .untrusted
      case .invalidRequest, .trustStore, .certificate, .proxyRefused: .configuration
      case .system: .exhausted
      default: .unavailable
      }
    self.init(code, "login: \(error.message)")
  }
}
