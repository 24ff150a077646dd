package import Clocks
internal import EventLoop
internal import Glibc
internal import JSON

/// The access token of an org that a user has logged in to with the Salesforce CLI, which keeps and
/// renews it.
///
/// Source: ServiceLogins.md#salesforce-cli. Versions since May 2026 redact the token in `sf org display` and
/// print it with `sf org auth show-access-token` only; earlier ones know the former only.
package struct SalesforceCLIFlow: AccessTokenFlow {
  private let program: String
  private let targetOrg: String
  private let organizationID: String?
  private let timeLimit: Duration
  private let clock: ProcessClock

  /// - Parameters:
  ///   - program: name or path of the program.
  ///   - targetOrg: alias or username, as the CLI knows it; no option (`isTargetOrg`).
  ///   - organizationID: 15 or 18 characters; nil to take it from the answer.
  ///   - timeLimit: of each call of the program.
  package init(
    program: String, targetOrg: String, organizationID: String?,
    timeLimit: Duration = .seconds(60)
  ) {
    self.init(
      program: program, targetOrg: targetOrg, organizationID: organizationID, timeLimit: timeLimit,
      clock: ProcessClock())
  }

  package init(
    program: String, targetOrg: String, organizationID: String?,
    timeLimit: Duration = .seconds(60), clock: ProcessClock
  ) {
    self.program = program
    self.targetOrg = targetOrg
    self.organizationID = organizationID
    self.timeLimit = timeLimit
    self.clock = clock
  }

  /// Whether a text can be an alias or a username, and is not read as an option.
  package static func isTargetOrg(_ text: String) -> Bool {
    (1...255).contains(text.utf8.count) && !text.hasPrefix("-")
      && text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7f }
  }

  package func obtain() async throws -> (token: AccessToken, serverDate: Int64?) {
    let (org, warnings) = try await self.ask(["org", "display"])
    if let refusal = self.staleness(of: org, warnings: warnings) { throw refusal }
    guard let instanceURL = org["instanceUrl"]?.string, !instanceURL.isEmpty else {
      throw AuthError(.unavailable, "\(self.program) org display named no instanceUrl")
    }
    var token = org["accessToken"]?.string
    if !Self.isToken(token) {
      token = try await self.ask(["org", "auth", "show-access-token", "--no-prompt"])
        .result["accessToken"]?.string
    }
    guard let token, Self.isToken(token) else {
      throw AuthError(
        .refused,
        "\(self.program) redacts the access token of \(self.targetOrg); update the Salesforce CLI "
          + "(sf update) so that it has the command sf org auth show-access-token, or set the "
          + "environment variable SF_TEMP_SHOW_SECRETS=true for the run")
    }
    let organizationID = try OrganizationID.choose(
      configured: self.organizationID ?? org["id"]?.string, identityURL: nil, accessToken: token)
    return (
      try AccessToken(value: token, instanceURL: instanceURL, organizationID: organizationID), nil
    )
  }

  /// `<15-character org ID>!<rest>`. A redacted token is replaced by words.
  private static func isToken(_ text: String?) -> Bool {
    guard let text else { return false }
    return text.contains("!") && AccessToken.isUsable(text)
  }

  /// The members `result` and `warnings` of what a command prints.
  private func ask(
    _ command: [String]
  ) async throws -> (result: JSONValue, warnings: [String]) {
    let name = ([self.program] + command.prefix { !$0.hasPrefix("-") }).joined(separator: " ")
    var process = ChildProcess(
      program: self.program, arguments: command + ["--json", "--target-org", self.targetOrg])
    (process.timeLimit, process.clock) = (self.timeLimit, self.clock)
    let result: ChildProcess.Result
    do throws(ChildProcess.Failure) {
      result = try await process.run()
    } catch {
      throw self.error(error, name)
    }
    guard let json = CLIOutput.object(in: result.output) else {
      let end = result.exitCode.map { "exit code \($0)" } ?? "ended by a signal"
      throw AuthError(
        result.exitCode == 0 ? .unavailable : .refused,
        "\(name) printed no JSON (\(end)); run it in a terminal of the same user: "
          + "\(name) --target-org \(self.targetOrg)")
    }
    guard result.exitCode == 0, json["status"]?.integer ?? 0 == 0, let value = json["result"] else {
      throw self.refusal(
        name: json["name"]?.string ?? "", message: json["message"]?.string ?? "", of: name)
    }
    return (value, json["warnings"]?.array?.compactMap(\.string) ?? [])
  }

  /// The CLI displays an org whose token it could not renew, with exit code 0: `connectedStatus` is then the
  /// name of an error, or a warning says so. A scratch org has no status.
  private func staleness(of org: JSONValue, warnings: [String]) -> AuthError? {
    let status = org["connectedStatus"]?.string ?? ""
    guard status != "Connected" else { return nil }
    let warning = warnings.first { warning in
      let words = ["unable", "could not", "couldn't", "can't", "cannot", "fail", "expired"]
      let text = warning.lowercased()
      return text.contains("refresh") && words.contains { text.contains($0) }
    }
    guard !["", "Unknown"].contains(status) || warning != nil else { return nil }
    return self.refusal(
      name: status, message: warning ?? "", of: "\(self.program) org display", isStale: true)
  }

  private func error(_ failure: ChildProcess.Failure, _ name: String) -> AuthError {
    switch failure {
    case .notStarted(ENOENT):
      AuthError(
        .configuration,
        "the program '\(self.program)' was not found; install the Salesforce CLI "
          + "(npm install --global @salesforce/cli), or set program to its path: cron and systemd "
          + "search fewer directories than a terminal")
    case .notStarted(EACCES), .notStarted(ENOEXEC):
      AuthError(.configuration, "\(self.program) cannot be executed by this user")
    case .notStarted(let code):
      AuthError(.exhausted, "\(self.program) did not start: \(String(cString: strerror(code)))")
    case .noThread: AuthError(.exhausted, "\(self.program) did not start: no thread left")
    case .tookTooLong:
      AuthError(
        .unavailable,
        "\(name) gave no answer within \(self.timeLimit.components.seconds) s and was ended")
    case .wroteTooMuch:
      AuthError(
        .configuration,
        "\(name) printed more than 1 MiB and was ended; check that program is the Salesforce CLI")
    }
  }

  /// What the CLI says about a failure: its name for it, `RefreshTokenAuthError` and the like, and a text, which
  /// may quote the login service or the network.
  ///
  /// - Parameter isStale: whether nothing but a token that could not be renewed is known.
  private func refusal(
    name kind: String, message: String, of command: String, isStale: Bool = false
  ) -> AuthError {
    let said = [kind, message].map {
      LoginRefusal.printable($0, without: AccessToken.resemblances(in: $0))
    }.filter { !$0.isEmpty }.joined(separator: ": ")
    let text = "\(command) failed\(said.isEmpty ? "" : ": \(said)")"
    let login = "sf org login web --alias \(self.targetOrg)"
    switch CLIFailure(name: kind, message: message) {
    case .unknownOrg:
      return AuthError(.refused, "\(text); log in as the user whom the run belongs to: \(login)")
    case .momentary(let rule):
      return AuthError(.unavailable, "\(text); \(rule.advice)")
    case .network: return AuthError(.unavailable, "\(text); try again later")
    case .certificate:
      return AuthError(
        .untrusted,
        "\(text); the CLI trusts other certificates than this program: name the CA of the proxy in "
          + "NODE_EXTRA_CA_CERTS")
    case .authorization:
      return AuthError(
        .refused, "\(text); the CLI's own authorization is no longer valid: run \(login) again")
    case .other where isStale:
      return AuthError(
        .refused,
        "\(text); the CLI could not renew its access token: run \(command) --target-org "
          + "\(self.targetOrg) in a terminal of the same user, or \(login) again")
    case .other: return AuthError(.refused, "\(text); run it in a terminal of the same user")
    }
  }
}

extension SalesforceCLIFlow: CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  package var description: String { "Salesforce CLI for \(self.targetOrg)" }
  package var debugDescription: String { self.description }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
