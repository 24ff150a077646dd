import HTTPClient

/// Which connections of an org go through a proxy. One decision for gRPC and HTTP alike.
struct ProxySettings: Sendable, Equatable {
  private var proxy: ProxyAddress?
  private var exceptions = ProxyExceptions(parsing: "")
  /// Loopback needs no exception when nobody thought of this program in particular.
  private var isFromEnvironment = false

  /// No connection goes through a proxy.
  static let none = ProxySettings()

  private init() {}

  /// For connections that are not excepted.
  init(_ proxy: ProxyAddress, exceptions: ProxyExceptions) {
    (self.proxy, self.exceptions) = (proxy, exceptions)
  }

  struct EnvironmentError: Error {
    var variable: String
    var reason: String
  }

  /// The settings as curl reads the environment: `https_proxy` or `HTTPS_PROXY`, else `all_proxy` or
  /// `ALL_PROXY`; with `no_proxy` or `NO_PROXY`. An empty variable counts as unset.
  init(_ environment: Environment) throws(EnvironmentError) {
    func first(_ names: [String]) -> (name: String, value: String)? {
      names.lazy.compactMap { name in environment.variable(name).map { (name, $0) } }
        .first { !$0.1.isEmpty }
    }
    let names = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    guard let (name, value) = first(names) else { return }
    do throws(ProxyAddress.ParseError) {
      self.proxy = try ProxyAddress(parsing: value)
    } catch {
      throw EnvironmentError(variable: name, reason: error.description)
    }
    self.exceptions = ProxyExceptions(parsing: first(["no_proxy", "NO_PROXY"])?.value ?? "")
    self.isFromEnvironment = true
  }

  /// The proxy for connections to `address`; nil for straight to it. What is not encrypted goes
  /// through none: a proxy would read what was to stay on this machine.
  func proxy(for address: ServiceAddress) -> ProxyAddress? {
    guard address.isSecure, !(self.isFromEnvironment && address.isLoopback),
      !self.exceptions.contains(host: address.host, port: address.port)
    else { return nil }
    return self.proxy
  }
}
