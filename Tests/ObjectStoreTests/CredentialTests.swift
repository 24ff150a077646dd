import Clocks
import FoundationEssentials
import HTTPClient
import TestSupport
import Testing

@testable import ObjectStore

@Suite("Credentials of object stores")
struct CredentialTests {
  private let directory: TemporaryDirectory
  init() throws { self.directory = try TemporaryDirectory() }

  private func file(_ name: String, _ text: String) throws -> String {
    let path = "\(self.directory.path)/\(name)"
    try Data(text.utf8).write(to: URL(filePath: path))
    return path
  }

  private func provider(
    _ source: CredentialSource = .environment, _ environment: [String: String] = [:],
    http: HTTPClient = HTTPClient()
  ) -> CredentialProvider {
    CredentialProvider(
      source, region: "eu-central-1", http: http, environment: { environment[$0] })
  }

  private func error(
    _ source: CredentialSource = .environment, _ environment: [String: String] = [:]
  ) async throws -> ObjectStoreError {
    let provider = self.provider(source, environment)
    let error = try await #require(throws: ObjectStoreError.self) {
      _ = try await provider.credentials()
    }
    #expect(!error.message.contains("hidden"), "\(error)")
    return error
  }

  private static let keys = [
    "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "hidden", "AWS_SESSION_TOKEN": "token",
  ]

  // MARK: Environment and files

  @Test("The environment's keys come before everything else") func environmentKeys() async throws {
    let provider = self.provider(
      .environment, Self.keys.merging(["AWS_PROFILE": "none"]) { key, _ in key })
    let credentials = try await provider.credentials()
    #expect(
      credentials
        == StoreCredentials(
          accessKeyID: "AKID", secretAccessKey: "hidden", sessionToken: "token"))
  }

  @Test("An environment without credentials says what can be set") func nothing() async throws {
    let error = try await self.error(.environment, ["HOME": self.directory.path])
    #expect(error.disposition == .configuration)
    #expect(error.message.contains("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"))
  }

  @Test(
    "One variable of two is a mistake",
    arguments: [
      ["AWS_ACCESS_KEY_ID": "AKID"], ["AWS_WEB_IDENTITY_TOKEN_FILE": "/nonexistent"],
      ["AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "hidden\nX-Header: 1"],
    ])
  func incomplete(_ environment: [String: String]) async throws {
    #expect(try await self.error(.environment, environment).disposition == .configuration)
  }

  private static let shared = """
    # a comment
    stray = 1
    [default]
    aws_access_key_id = FIRST
    aws_secret_access_key=hidden-1=with+signs/
    ; another
    s3 =
      aws_access_key_id = NESTED
    [ other ]
    AWS_ACCESS_KEY_ID = SECOND
    aws_secret_access_key = hidden-2
    aws_session_token = token\t
    [sso]
    sso_session = corp
    [spoilt]
    aws_access_key_id = A B
    aws_secret_access_key = hidden

    """

  @Test("Profiles of the shared file") func sharedFile() async throws {
    let path = try self.file("credentials", Self.shared.replacing("\n", with: "\r\n"))
    let first = try await self.provider(.sharedFile(path: path, profile: nil)).credentials()
    #expect(
      first == StoreCredentials(accessKeyID: "FIRST", secretAccessKey: "hidden-1=with+signs/"))
    let second = try await self.provider(
      .environment, ["AWS_SHARED_CREDENTIALS_FILE": path, "AWS_PROFILE": "other"]
    ).credentials()
    #expect(
      second
        == StoreCredentials(
          accessKeyID: "SECOND", secretAccessKey: "hidden-2", sessionToken: "token"))
    let missing = try await self.error(.sharedFile(path: path, profile: "none"))
    #expect(missing.message.contains("\(path) has no profile [none]"))
    let other = try await self.error(.sharedFile(path: path, profile: "sso"))
    #expect(other.message.contains("lacks aws_access_key_id"))
    let spoilt = try await self.error(.sharedFile(path: path, profile: "spoilt"))
    #expect(spoilt.disposition == .configuration)
    let noFile = try await self.error(.sharedFile(path: "\(path).missing", profile: nil))
    #expect(noFile.message.contains("\(path).missing"))
  }

  @Test("The file of the home directory is found") func homeFile() async throws {
    try runProgram("mkdir", "\(self.directory.path)/.aws")
    _ = try self.file(".aws/credentials", Self.shared)
    let provider = self.provider(.environment, ["HOME": self.directory.path])
    #expect(try await provider.credentials().accessKeyID == "FIRST")
  }

  // MARK: Services

  @Test("What a container is offered is renewed before it expires") func container() async throws {
    let peer = try PythonServer("hostile_store.py")
    let token = try self.file("token", "container-token\n")
    let environment = [
      "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:\(peer.port)/credentials",
      "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": token, "HOME": self.directory.path,
    ]
    let provider = self.provider(.environment, environment)
    // It expires within five minutes, so the next call tries to renew it, but not each call.
    #expect(try await provider.credentials().accessKeyID == "CONTAINER1")
    #expect(try await provider.credentials().accessKeyID == "CONTAINER1")
    let second = try await self.provider(.container, environment).credentials()
    #expect(second.accessKeyID == "CONTAINER2")
    let refused = try await self.error(
      .container,
      [
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:\(peer.port)/credentials",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN": "hidden-token",
      ])
    #expect(refused.disposition == .denied)
    #expect(refused.message.contains("not <redacted>"))
  }

  @Test("Valid credentials outlive a renewal that fails; expired ones do not")
  func renewal() async throws {
    let peer = try PythonServer("hostile_store.py")
    let environment = [
      "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:\(peer.port)/credentials",
      "AWS_CONTAINER_AUTHORIZATION_TOKEN": "container-token",
    ]
    let time = MovableTime()
    var configuration = HTTPClient.Configuration()
    configuration.clock = ProcessClock(time)
    let provider = self.provider(.container, environment, http: HTTPClient(configuration))
    #expect(try await provider.credentials().accessKeyID == "CONTAINER1")
    time.move(31_000)
    #expect(try await provider.credentials().accessKeyID == "CONTAINER2")
    peer.kill()
    // Less than five minutes are left.
    time.move(3_500_000)
    #expect(try await provider.credentials().accessKeyID == "CONTAINER2")
    time.move(3_700_000)
    let error = try await #require(throws: ObjectStoreError.self) {
      _ = try await provider.credentials()
    }
    #expect(error.disposition == .retry)
  }

  @Test(
    "The token of a container goes to its own machine only",
    arguments: ["http://example.com/", "http://169.254.170.2.example.com/", "http://10.0.0.1/"])
  func plaintext(_ url: String) async throws {
    let error = try await self.error(
      .container,
      [
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": url,
        "AWS_CONTAINER_AUTHORIZATION_TOKEN": "hidden",
      ])
    #expect(error.disposition == .configuration)
    #expect(error.message.contains("plain http"))
  }

  @Test("A role is assumed with the token in the file, read each time") func webIdentity()
    async throws
  {
    let peer = try PythonServer("hostile_store.py")
    let file = try self.file("web", "web-token\n")
    let environment = [
      "AWS_WEB_IDENTITY_TOKEN_FILE": file, "AWS_ROLE_ARN": "arn:aws:iam::1:role/writer",
      "AWS_ROLE_SESSION_NAME": "session-1",
      "AWS_ENDPOINT_URL_STS": "http://127.0.0.1:\(peer.port)/sts",
    ]
    let provider = self.provider(.environment, environment)
    let credentials = try await provider.credentials()
    #expect(credentials.accessKeyID == "WEB-session-1")
    #expect(credentials.sessionToken == "session")
    #expect(credentials.expiresAt != nil)
    _ = try self.file("web", "hidden-web-token")
    #expect(try await provider.credentials() == credentials)
    #expect(await provider.refused(credentials))
    let error = try await #require(throws: ObjectStoreError.self) {
      _ = try await provider.credentials()
    }
    #expect(error.disposition == .credentials)
    #expect(error.message.contains("role arn:aws:iam::1:role/writer"))
    #expect(error.message.contains("ExpiredTokenException: <redacted>"))
  }

  @Test("moto, another implementation, accepts the request of a web identity") func motoSTS()
    async throws
  {
    let peer = try StorePeer("sts")
    let identity = WebIdentity(
      roleARN: "arn:aws:iam::123456789012:role/writer",
      tokenFile: try self.file("web", "any-token"), endpoint: peer.url)
    let credentials = try await self.provider(.webIdentity(identity)).credentials()
    #expect(credentials.isUsable)
    #expect(credentials.sessionToken != nil)
    #expect(credentials.expiresAt ?? 0 > ProcessClock().wallTime)
  }

  @Test("Given keys cannot be replaced") func givenKeys() async throws {
    let keys = StoreCredentials(accessKeyID: "AKID", secretAccessKey: "hidden")
    let provider = self.provider(.keys(keys))
    #expect(await !provider.refused(keys))
    var dumped = ""
    dump(provider, to: &dumped)
    #expect(!dumped.contains("hidden"))
  }
}
