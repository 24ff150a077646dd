internal import HTTPClient
internal import SalesforceAuth

/// A setting that cannot be used. Names the setting and the cause; holds no secret.
public struct ConfigurationError: Error, Sendable, CustomStringConvertible {
  /// Which setting, and what is wrong with it.
  public let message: String
  public var description: String { self.message }

  init(_ message: String) { self.message = message }

  /// The address of a login host.
  ///
  /// - Parameter audience: of a login by JWT.
  static func loginAddress(
    _ url: String, audience: String? = nil
  ) throws(ConfigurationError) -> ServiceAddress {
    // Whoever sets the audience logs in a user of the site.
    if audience == nil || !SalesforceHost.isSite(url),
      let advice = SalesforceHost.loginAdvice(for: url)
    {
      throw ConfigurationError("loginURL: \(advice)")
    }
    return try Self.address(url, "loginURL")
  }

  /// - Parameter setting: the name of the setting that holds the URL.
  static func address(_ url: String, _ setting: String) throws(ConfigurationError) -> ServiceAddress
  {
    do throws(ServiceAddress.ParseError) {
      return try ServiceAddress(parsing: url)
    } catch {
      throw ConfigurationError("\(setting): \(error)")
    }
  }
}
