internal import HTTPClient

/// A login that gave no access token. Its text never holds a secret.
public struct AuthError: Error, Sendable, CustomStringConvertible {
  public struct Code: Hashable, Sendable {
    private enum Value { case refused, unavailable, exhausted, untrusted, configuration }
    private var value: Value
    private init(_ value: Value) { self.value = value }
    /// The login service said no; asking again gives the same answer and may lock the user out.
    public static var refused: Self { Self(.refused) }
    /// No answer, or one that says nothing about the login: ask again later, with back-off.
    public static var unavailable: Self { Self(.unavailable) }
    /// Threads or descriptors have run out: ask again later.
    public static var exhausted: Self { Self(.exhausted) }
    /// The login host could not prove who it is.
    public static var untrusted: Self { Self(.untrusted) }
    /// The settings cannot be used as they are.
    public static var configuration: Self { Self(.configuration) }
  }

  public var code: Code
  /// What happened, on which host, what to do.
  public var message: String
  /// This machine's clock may be the reason.
  var concernsClock = false
  public var description: String { self.message }

  /// The same login may succeed later.
  public var isTransient: Bool { [.unavailable, .exhausted].contains(self.code) }

  public init(_ code: Code, _ message: String) {
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
