import FoundationEssentials
import Glibc
import TestSupport
import Testing

@testable import SalesforceAuth

@Suite("Logins by the Salesforce CLI")
struct SalesforceCLIFlowTests {
  let directory: TemporaryDirectory
  let program: String
  init() throws {
    self.directory = try TemporaryDirectory()
    self.program = "\(self.directory.path)/sf"
  }

  /// Makes a program that prints something for each of the two commands.
  private func script(display: String, token: String = "echo '{}'; exit 2") throws {
    let text = """
      #!/bin/sh
      printf '%s\\n' "$*" >> '\(self.directory.path)/calls'
      echo 'warning: a secret on standard error' >&2
      case "$1 $2" in
        "org display") \(display) ;;
        "org auth") \(token) ;;
      esac
      """
    try Data(text.utf8).write(to: URL(filePath: self.program))
    chmod(self.program, 0o700)
  }

  private var calls: [String] {
    get throws {
      try String(
        decoding: Data(contentsOf: URL(filePath: "\(self.directory.path)/calls")), as: UTF8.self
      ).split(separator: "\n").map(String.init)
    }
  }

  private func flow(_ org: String = "prod", limit: Duration = .seconds(60)) -> SalesforceCLIFlow {
    SalesforceCLIFlow(
      program: self.program, targetOrg: org, organizationID: nil, timeLimit: limit)
  }

  private func error(_ flow: SalesforceCLIFlow) async throws -> AuthError {
    try await #require(throws: AuthError.self) { _ = try await flow.obtain() }
  }

  private static func answer(_ token: String?) -> String {
    let member = token.map { #""accessToken":"\#($0)","# } ?? ""
    return
      #"echo '{"status":0,"result":{"id":"00DXX0000000001AAA",\#(member)"instanceUrl":"https://a.example"},"warnings":[]}'"#
  }

  @Test("The CLI's output gives token, URL and org, and no shell sees the org")
  func obtains() async throws {
    try self.script(display: Self.answer("00DXX0000000001!abc"))
    let (token, date) = try await self.flow("prod;$(touch x)").obtain()
    #expect(token.value == "00DXX0000000001!abc")
    #expect(token.instanceURL == "https://a.example")
    #expect(token.organizationID == "00DXX0000000001AAA")
    #expect(date == nil)
    #expect(try self.calls == ["org display --json --target-org prod;$(touch x)"])
  }

  @Test(
    "A redacted token is requested with the command that shows it",
    arguments: ["[REDACTED] Use 'sf org auth show-access-token' to view", nil])
  func redacted(text: String?) async throws {
    let shown = text?.replacing("'", with: #"'\''"#)
    try self.script(
      display: Self.answer(shown),
      token: #"echo '{"status":0,"result":{"accessToken":"00DXX0000000001!abc"}}'"#)
    #expect(try await self.flow().obtain().token.value == "00DXX0000000001!abc")
    #expect(
      try self.calls == [
        "org display --json --target-org prod",
        "org auth show-access-token --no-prompt --json --target-org prod",
      ])
  }

  @Test("A token that stays redacted is explained")
  func staysRedacted() async throws {
    try self.script(
      display: Self.answer("REDACTED"),
      token: #"echo '{"status":0,"result":{"accessToken":"REDACTED"}}'"#)
    let error = try await self.error(self.flow())
    #expect(error.code == .refused)
    #expect(error.message.contains("SF_TEMP_SHOW_SECRETS"))
  }

  @Test(
    "The CLI's message is passed on with advice",
    arguments: [
      ("NamedOrgNotFoundError", "No authorization information found for prod.", "sf org login web"),
      ("RefreshTokenAuthError", "expired access/refresh token", "no longer valid"),
      ("SomethingNew", "a\\u001b[31mb\\nc", "in a terminal of the same user"),
    ])
  func failures(name: String, message: String, advice: String) async throws {
    try self.script(
      display: #"printf '%s' '{"status":1,"name":"\#(name)","message":"\#(message)"}'; exit 1"#)
    let error = try await self.error(self.flow())
    #expect(error.code == .refused)
    #expect(error.message.contains(name))
    #expect(error.message.contains(advice), "\(error)")
    #expect(error.message.utf8.allSatisfy { (0x20...0x7e).contains($0) })
    #expect(!error.message.contains("standard error"))
  }

  @Test("Text that may be a token is not passed on", arguments: ["name", "message"])
  func tokenInRefusal(member: String) async throws {
    for token in ["00DXX0000000001!AQ.x_y-z", "eyJhbGciOiJSUzI1NiJ9.eyJhIjoxfQ.c2lnbg"] {
      try self.script(
        display: #"echo '{"status":1,"\#(member)":"refused with \#(token), sorry"}'; exit 1"#)
      let error = try await self.error(self.flow())
      #expect(error.message.contains("(redacted)") && !error.message.contains(token))
    }
  }

  @Test(
    "The reason of a failure decides, not the name that the CLI gives it",
    arguments: [
      ("Error", "getaddrinfo ENOTFOUND a.example", AuthError.Code.unavailable),
      (
        "RefreshTokenAuthError",
        "Error refreshing auth: request to https://expired.my.salesforce.com failed, reason: "
          + "getaddrinfo EAI_AGAIN expired.my.salesforce.com", .unavailable
      ),
      ("JwtAuthError", "socket hang up", .unavailable),
      ("RefreshTokenAuthError", "connect ECONNREFUSED 10.0.0.1:443", .unavailable),
      (
        "RefreshTokenAuthError", "invalid_grant: token request is already being processed",
        .unavailable
      ),
      ("RefreshTokenAuthError", "unknown_error: retry your request", .unavailable),
      ("RefreshTokenAuthError", "login rate exceeded", .unavailable),
      ("RefreshTokenAuthError", "expired access/refresh token (after socket hang up)", .refused),
      (
        "JwtAuthError", "invalid_grant: user hasn't approved this consumer; ETIMEDOUT before",
        .refused
      ),
      ("NamedOrgNotFoundError", "No authorization information found for ECONNRESET.", .refused),
      ("RefreshTokenAuthError", "self-signed certificate in certificate chain", .untrusted),
    ])
  func reasons(name: String, message: String, code: AuthError.Code) async throws {
    try self.script(
      display: """
        cat <<'END'
        {"status":1,"name":"\(name)","message":"\(message)"}
        END
        exit 1
        """)
    let error = try await self.error(self.flow())
    #expect(error.code == code, "\(error)")
  }

  @Test(
    "An org that is displayed with a token that could not be renewed is refused, for its reason",
    arguments: [
      (
        #""connectedStatus":"RefreshTokenAuthError""#, "unable to refresh auth for org",
        AuthError.Code.refused
      ),
      (
        #""connectedStatus":"Unable to refresh session: expired access/refresh token""#, "",
        .refused
      ),
      (#""connectedStatus":"DomainNotFoundError""#, "", .refused),
      (#""username":"me@example.com""#, "unable to refresh auth for org", .refused),
      (#""connectedStatus":"ENOTFOUND""#, "unable to refresh auth for org", .unavailable),
      (#""connectedStatus":"Connected""#, "unable to refresh auth for org", nil),
      (#""connectedStatus":"Unknown""#, "", nil),
      (#""connectedStatus":"Unknown""#, "Could not refresh the authorization", .refused),
      (#""connectedStatus":"""#, "secrets are shown", nil),
    ] as [(String, String, AuthError.Code?)])
  func staleTokens(member: String, warning: String, code: AuthError.Code?) async throws {
    try self.script(
      display: """
        cat <<'END'
        {"status":0,"result":{"id":"00DXX0000000001AAA","accessToken":"00DXX0000000001!abc",\(member),
         "instanceUrl":"https://a.example"},"warnings":["\(warning)"]}
        END
        :
        """)
    guard let code else {
      #expect(try await self.flow().obtain().token.value == "00DXX0000000001!abc")
      return
    }
    let error = try await self.error(self.flow())
    #expect(error.code == code, "\(error)")
    #expect(warning.isEmpty || error.message.contains(warning), "\(error)")
    #expect(code != .refused || error.message.contains("sf org login web"), "\(error)")
  }

  @Test("Colours in the JSON do not break the reading")
  func colours() async throws {
    let plain =
      #"{"status":0,"result":{"accessToken":"00DXX0000000001!abc","instanceUrl":"https://a.example"}}"#
    let coloured = plain.replacing(":", with: #"\033[1;97m:\033[0m"#)
      .replacing(#"https\033[1;97m:\033[0m"#, with: "https:")
    try self.script(display: "printf '\(coloured)'")
    #expect(try await self.flow().obtain().token.value == "00DXX0000000001!abc")
  }

  @Test("Lines before and after the JSON do not break the reading")
  func notices() async throws {
    for (before, after) in [
      (" ›   Warning: @salesforce/cli update available from 2.1.0 to 2.2.0.", ""),
      ("(node:123) [DEP0040] DeprecationWarning: {punycode}", "Done {in} 1 s."),
      (#"{"level":"warn","message":"a log line"}"#, ""),
      ("{", "}"),
    ] {
      try self.script(
        display: """
          cat <<'END'
          \(before)
          {
            "status": 0,
            "result": {
              "id": "00DXX0000000001AAA", "accessToken": "00DXX0000000001!abc",
              "instanceUrl": "https://a.example"
            },
            "warnings": []
          }
          \(after)
          END
          :
          """)
      #expect(try await self.flow().obtain().token.value == "00DXX0000000001!abc", "\(before)")
    }
  }

  @Test(
    "Other outputs give no token",
    arguments: [
      ("echo 'command not found'; exit 127", AuthError.Code.refused),
      ("true", .unavailable), ("echo '[]'", .unavailable), ("kill -9 $$", .refused),
      (#"echo '{"status":0,"result":{"accessToken":"a!b"}}'"#, .unavailable),
      (#"echo '{"status":0}'"#, .refused),
    ])
  func outputs(script: String, code: AuthError.Code) async throws {
    try self.script(display: script)
    #expect(try await self.error(self.flow()).code == code)
  }

  @Test("A CLI that hangs is ended together with its child processes")
  func hangs() async throws {
    let pid = "\(self.directory.path)/pid"
    try self.script(display: "sleep 1000 & echo $! > '\(pid)'; wait")
    // The limit is met whatever the machine's load: it is all that can end this.
    let error = try await self.error(self.flow(limit: .milliseconds(500)))
    #expect(error.code == .unavailable)
    #expect(error.message.contains("was ended"))
    if let text = try? String(decoding: Data(contentsOf: URL(filePath: pid)), as: UTF8.self),
      let child = pid_t(text.filter(\.isNumber))
    {
      // Nobody's child any more: it is gone as soon as its new parent has looked.
      while kill(child, 0) == 0, !Self.isZombie(child) { await Task.yield() }
    }
  }

  private static func isZombie(_ process: pid_t) -> Bool {
    let status = try? Data(contentsOf: URL(filePath: "/proc/\(process)/stat"))
    return status.map { String(decoding: $0, as: UTF8.self).contains(") Z ") } ?? true
  }

  @Test("A CLI that never stops printing is ended")
  func floods() async throws {
    try self.script(display: "while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done")
    let error = try await self.error(self.flow())
    #expect(error.code == .configuration)
    #expect(error.message.contains("1 MiB"))
  }

  @Test("A background process that keeps the output open delays nothing")
  func lingers() async throws {
    try self.script(display: "sleep 1000 & \(Self.answer("00DXX0000000001!abc"))")
    #expect(try await self.flow().obtain().token.value == "00DXX0000000001!abc")
  }

  @Test("A missing or unexecutable CLI is explained")
  func missing() async throws {
    let absent = try await self.error(
      SalesforceCLIFlow(program: "no-such-sf", targetOrg: "a", organizationID: nil))
    #expect(absent.code == .configuration)
    #expect(absent.message.contains("npm install --global @salesforce/cli"))
    let file = "\(self.directory.path)/data"
    try Data("x".utf8).write(to: URL(filePath: file))
    let unusable = try await self.error(
      SalesforceCLIFlow(program: file, targetOrg: "a", organizationID: nil))
    #expect(unusable.code == .configuration)
  }

  @Test(
    "Only a valid alias or username is accepted as an org",
    arguments: [
      ("prod", true), ("me@example.com.uat", true), ("zoë", true), ("", false), ("-h", false),
      ("--json", false), ("a b", false), ("a\n", false),
    ])
  func targets(text: String, isTarget: Bool) {
    #expect(SalesforceCLIFlow.isTargetOrg(text) == isTarget)
  }
}
