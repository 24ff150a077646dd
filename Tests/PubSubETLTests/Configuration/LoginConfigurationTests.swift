import Cryptography
import Glibc
import TestSupport
import Testing

@testable import PubSubETL

@Suite("Logins in the pipeline file")
struct LoginConfigurationTests {
  private let sample: SamplePipeline
  private let keys: SigningKeyFiles
  init() throws {
    self.sample = try SamplePipeline()
    self.keys = try SigningKeyFiles()
  }

  /// The pipeline with this login.
  private func pipeline(_ auth: String) throws -> String {
    let start = try #require(SamplePipeline.minimal.firstRange(of: "{ \"type\": \"client_cred"))
    let end = try #require(SamplePipeline.minimal.firstRange(of: "${SECRET}\" }"))
    return SamplePipeline.minimal[..<start.lowerBound] + auth
      + SamplePipeline.minimal[end.upperBound...]
  }

  private func jwt(_ members: String, host: String = "acme.my.salesforce.com") -> String {
    #"{ "type": "jwt_bearer", "login_url": "https://\#(host)", "client_id": "id", "username": "u@e.x", \#(members) }"#
  }

  @Test("A key comes from a file next to the pipeline file or from a variable, with any line ends")
  func keyPlaces() throws {
    let pem = String(decoding: try SigningKeyFiles.content(self.keys.privateKey), as: UTF8.self)
    try self.sample.write(pem, to: "key.pem")
    for (auth, environment) in [
      (self.jwt(#""private_key_file": "key.pem""#), [:]),
      (self.jwt(#""private_key": "${file:key.pem}""#), [:]),
      (self.jwt(#""private_key": "${KEY}""#), ["KEY": pem]),
      (self.jwt(#""private_key": "${KEY}""#), ["KEY": pem.replacing("\n", with: "\\n")]),
    ] {
      let configuration = try self.sample.load(
        self.pipeline(auth), environment: environment)
      let login = try #require(configuration.source.org.auth as? JWTBearerLogin)
      #expect(login.username == "u@e.x")
      #expect(login.audience == "https://login.salesforce.com")
      #expect(login.key?.sign([1]).count == 256)
      // No output may hold a line of the key.
      let line = try #require(pem.split(separator: "\n").dropFirst(3).first)
      #expect(!configuration.secrets.redacted("damaged: \(line)").contains(line))
      var text = ""
      dump(configuration, to: &text)
      #expect(!text.contains(line))
      let summary = ConfigurationSummary.text(configuration)
      #expect(
        summary.contains(
          "JWT bearer as u@e.x at https://acme.my.salesforce.com, audience https://login"))
    }
  }

  @Test("The audience is that of the host, unless the file has another")
  func audience() throws {
    for (host, members, expected) in [
      ("acme--uat.sandbox.my.salesforce.com", "", "https://test.salesforce.com"),
      (
        "acme.my.site.com", #""audience": "https://acme.my.site.com","#, "https://acme.my.site.com"
      ),
      (
        "acme.my.salesforce.com", #""audience": "https://acme.my.site.com/portal","#,
        "https://acme.my.site.com/portal"
      ),
    ] {
      let auth = self.jwt(
        #"\#(members) "private_key_file": "\#(self.keys.privateKey)""#, host: host)
      let login = try #require(
        try self.sample.load(self.pipeline(auth)).source.org.auth as? JWTBearerLogin)
      #expect(login.audience == expected)
    }
  }

  @Test("A login URL copied from the browser is refused, and the My Domain URL is named")
  func copiedURLs() throws {
    let key = #""private_key_file": "\#(self.keys.privateKey)""#
    for host in [
      "acme.lightning.force.com", "acme.lightning.force.com/lightning/page/home",
      "acme.my.salesforce-setup.com/", "acme.my.site.com", "acme--c.vf.force.com",
    ] {
      let mistakes = try self.sample.mistakes(self.pipeline(self.jwt(key, host: host)))
      #expect(mistakes.count == 1)
      #expect(
        mistakes.first?.contains(
          "auth/login_url: \(host.prefix { $0 != "/" }) serves pages to browsers and takes no logins of "
            + "programs; use https://acme.my.salesforce.com") == true, "\(mistakes)")
    }
    let token = #"{ "type": "token", "access_token": "x", "instance_url": "https://HOST" }"#
    let mistakes = try self.sample.mistakes(
      self.pipeline(token.replacing("HOST", with: "acme.lightning.force.com")))
    #expect(
      mistakes.first?.contains("instance_url: acme.lightning.force.com") == true, "\(mistakes)")
    _ = try self.sample.load(self.pipeline(token.replacing("HOST", with: "na123.salesforce.com")))
  }

  @Test("Mistakes in a key are reported where the file names it")
  func mistakes() throws {
    try runProgram(
      "openssl", "pkcs8", "-topk8", "-in", self.keys.privateKey, "-passout", "pass:x", "-out",
      self.keys.path("enc.pem"))
    for (members, expected) in [
      (#""audience": "me", "private_key_file": "KEY""#, "auth/audience: expected a URL"),
      (#""x": 1"#, "private_key_file: either private_key_file or private_key is required"),
      (#""private_key": "a", "private_key_file": "KEY""#, "either private_key_file or"),
      (#""private_key": "sesame""#, "auth/private_key: the key is no PEM text"),
      (#""private_key_file": "gone.pem""#, "gone.pem cannot be read: No such file"),
      (#""private_key_file": "DIR/key.crt""#, "DIR/key.crt is a certificate"),
      (#""private_key_file": "DIR/enc.pem""#, "openssl pkey -in DIR/enc.pem"),
    ] {
      func filled(_ text: String) -> String {
        text.replacing("KEY", with: self.keys.privateKey)
          .replacing("DIR/", with: self.keys.path(""))
      }
      let mistakes = try self.sample.mistakes(self.pipeline(self.jwt(filled(members))))
      #expect(mistakes.contains { $0.contains(filled(expected)) }, "\(mistakes)")
      #expect(!"\(mistakes)".contains("sesame"))
    }
  }

  @Test(
    "Each login is described without its secrets, which no form of printing shows",
    arguments: [
      (
        #"{"type":"client_credentials","login_url":"https://a.my.salesforce.com","client_id":"i","client_secret":"s3cret"}"#,
        "client credentials at https://a.my.salesforce.com"
      ),
      (
        #"{"type":"refresh_token","login_url":"https://a.my.salesforce.com","client_id":"i","client_secret":"s3cret","refresh_token":"s3cret"}"#,
        "refresh token at https://a.my.salesforce.com"
      ),
      (
        #"{"type":"token","instance_url":"https://a.my.salesforce.com","access_token":"s3cret"}"#,
        "token for https://a.my.salesforce.com"
      ),
      (#"{"type":"sf_cli","target_org":"prod"}"#, "sf, for its org prod"),
    ])
  func summaries(auth: String, summary: String) throws {
    let login = try self.sample.load(self.pipeline(auth)).source.org.auth
    #expect(login.summary == summary)
    var text = ""
    dump(login, to: &text)
    #expect(!text.contains("s3cret") && !"\(login)".contains("s3cret"))
  }

  @Test("A warning names a key that others can read")
  func modes() throws {
    let auth = self.jwt(#""private_key_file": "\#(self.keys.privateKey)""#)
    #expect(chmod(self.keys.privateKey, 0o644) == 0)
    let warnings = try self.sample.load(self.pipeline(auth)).securityWarnings
    #expect(warnings.count == 1)
    #expect(warnings.first?.contains("chmod 6") == true)
    #expect(chmod(self.keys.privateKey, 0o600) == 0)
    #expect(try self.sample.load(self.pipeline(auth)).securityWarnings == [])
  }
}
