import HTTPClient
import JSON

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

extension Kind<ProxySettings> {
  private enum Word: String, CaseIterable { case environment, none }

  private struct Server: KeyedObject {
    var url = ""
    var exceptions = ""

    static var keys: [Key<Self>] {
      [
        .required(
          "url", \.url, .string(),
          "http://[USER[:PASSWORD]@]HOST[:PORT]; empty means that the environment decides.",
          example: "http://proxy.example.com:3128", secrecy: .addressWithPassword),
        .key(
          "no_proxy", \.exceptions, .string(),
          "Hosts reached without it, separated by commas: host names (including subdomains), "
            + "addresses, networks.", default: "", example: "internal.example.com,10.0.0.0/8"),
      ]
    }
  }

  /// Without the member, the environment decides.
  static var proxy: Self {
    Self(
      .oneOf([.choice(of: Word.self), .reference("variable"), .object(Server.declarations)]),
      objects: [Server.declarations]
    ) { reader, name, _ in
      guard let value = reader.any(name) else { return nil }
      let configuration = reader.configuration
      switch value.content {
      case .string(let word):
        switch Word(rawValue: word) {
        case .environment: return configuration.environmentProxy(reader)
        case .some(.none): return ProxySettings.none
        case nil:
          // Not quoted: it may well be an address with a password.
          reader.report(
            name,
            "expected a word, \"environment\" or \"none\"; the address of a proxy is written as "
              + "{\"url\": \"http://HOST:PORT\"}")
          return nil
        }
      case .object:
        guard let object = reader.object(name), let server = object.read(Server.keys) else {
          return nil
        }
        // As with files of TLS, so that `${PROXY:-}` can be used in every pipeline.
        if server.url.isEmpty { return configuration.environmentProxy(reader) }
        do throws(ProxyAddress.ParseError) {
          return ProxySettings(
            try ProxyAddress(parsing: server.url),
            exceptions: ProxyExceptions(parsing: server.exceptions))
        } catch {
          object.report("url", error.description)
          return nil
        }
      default:
        reader.report(
          name,
          "expected \"environment\", \"none\" or {\"url\": \"http://HOST:PORT\"}, found "
            + value.kind)
        return nil
      }
    }
  }
}

extension ConfigurationReader {
  /// - Parameter reader: of the org.
  func environmentProxy(_ reader: JSONReader) -> ProxySettings {
    do throws(ProxySettings.EnvironmentError) {
      return try ProxySettings(self.environment)
    } catch {
      reader.report(
        "proxy",
        "the environment variable \(error.variable): \(error.reason); correct it, or set \"proxy\" "
          + "to \"none\" or a proxy of its own")
      return .none
    }
  }
}
