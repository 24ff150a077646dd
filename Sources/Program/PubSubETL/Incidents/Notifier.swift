internal import Clocks
internal import EventLoop
internal import Glibc
import HTTPClient
import JSON

/// Calls the command or the webhook of `notify`. What is called gets no more time than `timeLimit`, and what
/// it answers is not read.
struct Notifier: Sendable {
  struct Failure: Error, CustomStringConvertible {
    var description: String
  }

  /// For all calls of a run, before the time of what is stopped.
  static let timeLimit = Duration.seconds(9)

  let configuration: NotifyConfiguration
  let secrets: SecretMask
  let clock: ProcessClock
  /// The names and values of this process's environment.
  var environment: [String] = Self.ownEnvironment

  /// - Throws: `Failure`, also if `timeLimit` has passed; the call may have had its effect then.
  func call(_ notice: Notice, within timeLimit: Duration) async throws(Failure) {
    let body = Array(
      PrintableText(json: notice.json(hiding: self.secrets), .compact, hiding: self.secrets).text
        .utf8)
    if let webhook = self.configuration.webhook {
      try await self.post(body, to: webhook, within: timeLimit)
    } else {
      try await self.run(body, notice, within: timeLimit)
    }
  }

  // MARK: Command

  private func run(
    _ body: [UInt8], _ notice: Notice, within timeLimit: Duration
  ) async throws(Failure) {
    guard let words = self.configuration.command, let program = words.first else { return }
    var process = ChildProcess(program: program, arguments: Array(words.dropFirst()))
    process.input = body
    // The command gets no secrets of the pipeline.
    process.environment =
      self.environment.filter(Self.isPassedOn) + notice.variables(hiding: self.secrets)
    process.byteLimit = nil
    (process.timeLimit, process.clock) = (timeLimit, self.clock)
    let result: ChildProcess.Result
    do throws(ChildProcess.Failure) {
      result = try await process.run()
    } catch {
      throw Failure(description: Self.text(error, program))
    }
    switch result.exitCode {
    case 0: return
    case let code?: throw Failure(description: "\(program) ended with exit code \(code)")
    case nil: throw Failure(description: "a signal ended \(program)")
    }
  }

  private static func text(_ failure: ChildProcess.Failure, _ program: String) -> String {
    switch failure {
    case .notStarted(let code):
      "\(program) did not start: \(SystemCallError.text(of: code))"
    case .noThread: "\(program) did not start: no thread is left"
    // Without a limit of bytes nothing can be too much.
    case .tookTooLong, .wroteTooMuch: "\(program) did not end in time"
    }
  }

  private static func isPassedOn(_ variable: String) -> Bool {
    let name = variable.prefix { $0 != "=" }
    return name.hasPrefix("LC_") || Self.passedOn.contains(String(name))
  }

  private static let passedOn: Set<String> = [
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR",
  ]

  private static var ownEnvironment: [String] {
    var variables: [String] = []
    var next = environ
    while let variable = next.pointee {
      variables.append(String(cString: variable))
      next += 1
    }
    return variables
  }

  // MARK: Webhook

  private func post(
    _ body: [UInt8], to webhook: String, within timeLimit: Duration
  ) async throws(Failure) {
    var configuration = HTTPClient.Configuration(
      caFile: self.configuration.caFile,
      // The limit of the call comes first.
      connectTimeout: timeLimit * 2, stallTimeout: timeLimit * 2)
    configuration.clock = self.clock
    var headers = [("Content-Type", "application/json")]
    if let secret = self.configuration.secret {
      headers.append((self.configuration.header, secret.value))
    }
    let request = HTTPRequest(.post, webhook, headers: headers, body: body)
    let status: Int
    do {
      status = try await self.status(of: request, HTTPClient(configuration), within: timeLimit)
    } catch let error as HTTPError {
      // Those who know the path of a webhook can often post to it.
      let shown = webhook.prefix { $0 != "?" }
      throw Failure(
        description: error.message.replacing(shown, with: Self.place(of: webhook)))
    } catch {
      throw Failure(description: "the server did not answer in time")
    }
    guard !(200..<300).contains(status) else { return }
    throw Failure(
      description: (300..<400).contains(status)
        ? "the server answered with HTTP \(status), and redirects are not followed"
        : "the server answered with HTTP \(status)")
  }

  /// `https://alerts.example.com`
  private static func place(of webhook: String) -> Substring {
    guard let start = webhook.firstRange(of: "://")?.upperBound else { return "" }
    return webhook[..<(webhook[start...].firstIndex { "/?#".contains($0) } ?? webhook.endIndex)]
  }

  /// The status decides. The body, which may be endless, is not read.
  ///
  /// - Throws: `HTTPError`; `CancellationError` when the time is over.
  private func status(
    of request: HTTPRequest, _ client: HTTPClient, within timeLimit: Duration
  ) async throws -> Int {
    try await withThrowingTaskGroup(of: Int.self) { group in
      group.addTask { try await client.stream(request).response.status }
      group.addTask { [clock] in
        try await clock.sleep(for: timeLimit)
        throw CancellationError()
      }
      defer { group.cancelAll() }
      guard let status = try await group.next() else { throw CancellationError() }
      return status
    }
  }
}
