internal import HTTPClient

/// A setting that cannot be used. Names the setting and the cause; holds no secret.
public struct ConfigurationError: Error, Sendable, CustomStringConvertible {
  /// Which setting, and what is wrong with it.
  public let message: String
  public var description: String { self.message }

  init(_ message: String) { self.message = message }

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
