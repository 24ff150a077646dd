import HTTPClient
import JSON

/// An org, and how to connect to it.
struct OrgConfiguration: KeyedObject, Sendable {
  var endpoint = ServiceAddress(isSecure: true, host: "api.pubsub.salesforce.com", port: 7443)
  var tls = TLSConfiguration()
  var proxy = ProxySettings.none
  /// Organization ID of 15 or 18 characters; nil to take it from the login.
  var orgID: String?
  var auth: any Login = SalesforceCLILogin()

  /// Everything that is sent stays on this machine.
  var isLocal: Bool { self.endpoint.isLoopback && self.auth.server?.isLoopback ?? true }

  static var keys: [Key<Self>] {
    [
      .schemaPlace,
      .key(
        "endpoint", \.endpoint, .address(), "URL of the Pub/Sub API.",
        example: "https://api.deu.pubsub.salesforce.com:7443", secrecy: .address),
      .key("tls", \.tls, .object, "How the two ends of a connection are authenticated."),
      .key(
        "proxy", \.proxy, .proxy,
        "How the service and the login are reached. environment: https_proxy, all_proxy and "
          + "no_proxy, never for loopback.", default: "environment",
        example: ["url": "http://proxy.example.com:3128"], secrecy: .address),
      .key(
        "org_id", \.orgID, .orgID,
        "ID of the org, 15 or 18 characters; by default taken from the login.",
        example: "00D000000000001AAA"),
      .required("auth", \.auth, .login, "How an access token is obtained."),
    ]
  }

  mutating func check(_ reader: JSONReader) {
    if !reader.has("proxy") { self.proxy = reader.configuration.environmentProxy(reader) }
  }
}

extension Key where Object: KeyedObject {
  /// Editors take the schema from there.
  static var schemaPlace: Self {
    .noted(
      "$schema", .string(), "Where this schema is, for editors.",
      example: "pipeline.schema.json")
  }
}

extension Kind<String> {
  fileprivate static var orgID: Self {
    Self.string(.text(pattern: #"^(00D([A-Za-z0-9]{12}|[A-Za-z0-9]{15})|.*\$\{.*)$"#)).checked {
      if $0.isEmpty { return "must not be empty" }
      return [15, 18].contains($0.utf8.count) && $0.hasPrefix("00D")
        ? nil : "expected an organization ID: 15 or 18 characters, 00D first"
    }
  }
}

extension Kind<OrgConfiguration> {
  /// An object, or the path of a file with one.
  static var org: Self {
    Self(
      .oneOf([.reference("path"), .reference("org")]), objects: [OrgConfiguration.declarations],
      example: { _ in "org.json" },
      read: { reader, name, isRequired in
        guard let value = reader.any(name, required: isRequired) else { return nil }
        switch value.content {
        case .object: return reader.object(name)?.read()
        case .string:
          let configuration = reader.configuration
          guard let file = configuration.configurationPath(reader, name) else { return nil }
          if value.holdsSubstitution, !FilePath.isReadable(file) {
            reader.report(name, FilePath.unreadable(file))
            return nil
          }
          guard let shared = configuration.otherDocument(file) else { return nil }
          let org = shared.read(OrgConfiguration.keys)
          configuration.addMistakes(of: shared, file: file)
          return org
        default:
          reader.report(
            name, "expected an object or the path of a file with one, found \(value.kind)")
          return nil
        }
      })
  }
}
