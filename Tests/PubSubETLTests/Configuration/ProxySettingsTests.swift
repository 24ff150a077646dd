import HTTPClient
import TestSupport
import Testing

@testable import PubSubETL

@Suite("Proxy")
struct ProxySettingsTests {
  func address(_ url: String) throws -> ServiceAddress { try ServiceAddress(parsing: url) }

  @Test(
    "A proxy's URL is read",
    arguments: [
      ("http://proxy.example:3128", "proxy.example:3128", nil, nil),
      ("proxy.example:3128/", "proxy.example:3128", nil, nil),
      ("HTTP://Proxy.Example", "proxy.example:80", nil, nil),
      ("http://proxy.example:443", "proxy.example:443", nil, nil),
      ("http://[::1]:8080", "[::1]:8080", nil, nil),
      ("http://me@10.0.0.1:8080", "10.0.0.1:8080", "me", ""),
      ("http://me:pass:word@p", "p:80", "me", "pass:word"),
      ("http://d%40x:%3a%2F%C3%BC@p:1", "p:1", "d@x", ":/ü"),
      ("http://me:a@b@p:1", "p:1", "me", "a@b"),
    ] as [(String, String, String?, String?)])
  func url(text: String, endpoint: String, user: String?, password: String?) throws {
    let proxy = try ProxyAddress(parsing: text)
    #expect(proxy.endpoint == endpoint)
    #expect(proxy.authorization?.user == user)
    #expect(proxy.authorization?.password.value == password)
  }

  @Test(
    "A value that is not a proxy is refused, and the error does not quote it",
    arguments: [
      "https://me:s3cret@proxy:1", "socks5://proxy:1", "http://", "http://me:s3cret@", "proxy:0",
      "proxy:65536", "http://proxy/s3cret", "http://me:%s3cret@proxy", "http://a%3Ab:s3cret@proxy",
      "http://me:%FF@proxy", "http://pro xy",
    ])
  func noURL(text: String) throws {
    let error = #expect(throws: ProxyAddress.ParseError.self) { try ProxyAddress(parsing: text) }
    #expect(error?.description.contains("s3cret") == false)
  }

  @Test(
    "Excepted hosts bypass the proxy",
    arguments: [
      ("example.com", "example.com", true), ("example.com", "a.example.com", true),
      ("example.com", "badexample.com", false), (".example.com", "a.example.com", true),
      (".example.com", "example.com", true), ("*.example.com", "a.b.example.com", true),
      ("EXAMPLE.com.", "A.example.COM.", true), ("a, b\tc", "c", true), ("*", "any", true),
      ("*", "::1", true), ("", "any", false), ("example", "any", false),
      ("10.0.0.1", "10.0.0.1", true), ("10.0.0.1", "10.0.0.2", false),
      ("0.0.1", "10.0.0.1", false), ("10.0.0.0/8", "10.9.8.7", true),
      ("10.0.0.0/8", "11.0.0.1", false), ("10.1.0.0/17", "10.1.127.1", true),
      ("10.1.0.0/17", "10.1.128.1", false), ("0.0.0.0/0", "1.2.3.4", true),
      ("0.0.0.0/0", "::1", false), ("10.0.0.0/33", "10.0.0.0", false),
      ("fd00::/8", "fd12::1", true), ("fd00::/8", "fe80::1", false), ("[::1]", "::1", true),
      ("a:7443", "a", true), ("a:443", "a", false), ("[::1]:7443", "::1", true),
      ("[::1]:1", "::1", false), ("10.0.0.1:7443", "10.0.0.1", true),
    ])
  func exceptions(list: String, host: String, isExcepted: Bool) {
    #expect(ProxyExceptions(parsing: list).contains(host: host, port: 7443) == isExcepted)
  }

  @Test("The environment is read as curl reads it")
  func environment() throws {
    func endpoint(
      _ variables: [String: String], _ url: String = "https://a.example"
    ) throws
      -> String?
    {
      try ProxySettings(Environment(variables)).proxy(for: self.address(url))?.endpoint
    }
    #expect(try endpoint([:]) == nil)
    #expect(try endpoint(["https_proxy": "p:1", "HTTPS_PROXY": "q:1"]) == "p:1")
    #expect(try endpoint(["https_proxy": "", "HTTPS_PROXY": "q:1"]) == "q:1")
    #expect(try endpoint(["ALL_PROXY": "q:1", "all_proxy": "p:1"]) == "p:1")
    #expect(try endpoint(["all_proxy": "q:1", "HTTPS_PROXY": "p:1"]) == "p:1")
    #expect(try endpoint(["http_proxy": "p:1"]) == nil)
    #expect(try endpoint(["https_proxy": "p:1", "no_proxy": "ample"]) == "p:1")
    #expect(try endpoint(["https_proxy": "p:1", "NO_PROXY": "a.example"]) == nil)
    #expect(
      try endpoint(["https_proxy": "p:1", "no_proxy": "b", "NO_PROXY": "a.example"]) == "p:1")
    for url in ["https://localhost:1", "https://127.0.0.2", "https://[::1]", "http://127.0.0.1"] {
      #expect(try endpoint(["https_proxy": "p:1"], url) == nil)
    }
  }

  func settings(_ proxy: String?, _ environment: [String: String] = [:]) throws -> ProxySettings {
    let sample = try SamplePipeline()
    let sets = proxy.map { ["source.org.proxy=\($0)"] } ?? []
    return try sample.load(sets: sets, environment: environment).source.org.proxy
  }

  @Test("The pipeline file takes precedence over the environment")
  func pipelineFile() throws {
    let sample = try SamplePipeline()
    let environment = [
      "https_proxy": "http://me:s3cret@env:1", "no_proxy": "acme.my.salesforce.com",
    ]
    let service = try self.address("https://api.pubsub.salesforce.com:7443")
    let login = try self.address("https://acme.my.salesforce.com")
    for proxy in [nil, "environment"] {
      let settings = try self.settings(proxy, environment)
      #expect(settings.proxy(for: service)?.endpoint == "env:1")
      #expect(settings.proxy(for: login) == nil)
    }
    #expect(try self.settings("none", environment).proxy(for: service) == nil)

    let text = SamplePipeline.minimal.replacing(
      "\"org\": {",
      with: "\"org\": { \"proxy\": { \"url\": \"${P:-}\", \"no_proxy\": \"salesforce.com:7443\" },")
    let own = try sample.load(
      text, environment: environment.merging(["P": "http://own:1"]) { $1 }
    ).source.org.proxy
    #expect(own.proxy(for: service) == nil)
    #expect(own.proxy(for: login)?.endpoint == "own:1")
    #expect(own.proxy(for: try self.address("https://localhost:1"))?.endpoint == "own:1")
    #expect(own.proxy(for: try self.address("http://localhost:1")) == nil)
    let unset = try sample.load(text, environment: environment).source.org.proxy
    #expect(unset.proxy(for: service)?.endpoint == "env:1")
  }

  @Test("check shows the proxy and never a password")
  func summary() throws {
    let sample = try SamplePipeline()
    let configuration = try sample.load(
      environment: [
        "https_proxy": "http://me:s3cret@env:1", "no_proxy": "api.pubsub.salesforce.com",
      ]
    )
    let text = ConfigurationSummary.text(configuration)
    #expect(text.contains("https://api.pubsub.salesforce.com:7443\n"))
    #expect(text.contains("client credentials at https://acme.my.salesforce.com by proxy env:1\n"))
    var dumped = ""
    dump(configuration, to: &dumped)
    #expect(!(text + dumped).contains("s3cret"))
  }

  @Test("A mistake names its place")
  func mistakes() throws {
    let sample = try SamplePipeline()
    func mistake(_ proxy: String, _ environment: [String: String] = [:]) throws -> String? {
      let text = SamplePipeline.minimal.replacing(
        "\"org\": {", with: "\"org\": { \"proxy\": \(proxy),")
      let mistakes = try sample.mistakes(text, environment: environment)
      #expect(mistakes.count == 1)
      return mistakes.first.map { String($0.drop { $0 != "/" }) }
    }
    #expect(
      try mistake("\"off\"")
        == "/source/org/proxy: expected a word, \"environment\" or \"none\"; the address of a proxy is "
        + "written as {\"url\": \"http://HOST:PORT\"}")
    #expect(
      try mistake("7")
        == "/source/org/proxy: expected \"environment\", \"none\" or {\"url\": \"http://HOST:PORT\"}, found a number"
    )
    #expect(try mistake("{}") == "/source/org/proxy/url: is required")
    #expect(
      try mistake("{ \"url\": \"socks5://me:s3cret@p\" }")
        == "/source/org/proxy/url: only http:// proxies are supported, not https:// or SOCKS"
    )
    #expect(
      try mistake("\"environment\"", ["all_proxy": "socks5h://me:s3cret@p"])
        == "/source/org/proxy: the environment variable all_proxy: only http:// proxies are "
        + "supported, not https:// or SOCKS; correct it, or set \"proxy\" to \"none\" or a "
        + "proxy of its own"
    )
  }

  @Test("A proxy's URL is refused on the command line")
  func commandLine() {
    #expect(throws: ConfigurationOverride.ParseError.self) {
      try ConfigurationOverride("source.org.proxy={\"url\":\"http://me:s3cret@p\"}")
    }
  }

  @Test("A client certificate is checked with its key")
  func clientCertificate() throws {
    let (sample, authority) = (try SamplePipeline(), try TestAuthority())
    let (one, other) = (try authority.issue(), try authority.issue())
    func sets(_ certificate: String, _ key: String?) -> [String] {
      ["source.org.tls.certificate_file=\(certificate)"]
        + (key.map { ["source.org.tls.key_file=\($0)"] } ?? [])
    }
    let configuration = try sample.load(sets: sets(one.certificateFile, one.keyFile))
    #expect(configuration.source.org.tls.identity?.certificateFile == one.certificateFile)
    let text = ConfigurationSummary.text(configuration)
    #expect(text.contains("shows         \(one.certificateFile)\n"))
    for (sets, expected) in [
      (
        sets(one.certificateFile, other.keyFile),
        "certificate_file: private key '\(other.keyFile)': the private key does not"
      ),
      (sets(one.certificateFile, nil), "certificate_file: private key '\(one.certificateFile)'"),
      (sets("/no/own.pem", one.keyFile), "certificate_file: the file /no/own.pem does not exist"),
      (sets("", one.keyFile), "key_file: also needs certificate_file"),
    ] {
      let mistakes = try sample.mistakes(sets: sets)
      #expect(mistakes.count == 1)
      #expect(mistakes.first?.contains(expected) == true, "\(mistakes)")
    }
  }
}
