import ArgumentParser
import Bytes
import Clocks
import EventLoop
import Glibc
import JSON
import Pipeline
import PubSubAPI
import SalesforceAuth

/// `pubsub-etl publish`: publishes platform events from lines of JSON.
struct PublishCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "publish",
    abstract: "Publishes platform events from lines of JSON, and prints the result of each.",
    discussion: """
      Each line of the input is a JSON object with the fields of one event. CreatedDate and \
      CreatedById are filled in if they are missing. The schema comes from the service; a member that \
      it does not have is a mistake.
      Prints one line per event, in the order of the input: {"line": 1, "id": "...", "status": \
      "published", "replay_id": "..."}. Other statuses: "refused" (not published; "error" says why), \
      "unknown" (sent, but no answer came: published or not), "not_sent", and "valid" with --dry-run.
      Publishing is not idempotent. Events that certainly were not published are sent again: the \
      connection failed, the service refused the call, or the schema changed. An event that may have \
      been published is reported as "unknown" and is not sent again. With --repeat-unknown it is sent \
      again with the same event ID, so that consumers can drop the repetition. Events that are sent again \
      may arrive after later ones.
      The first SIGINT, SIGTERM or SIGHUP shuts down cleanly: it sends nothing more and waits up to \
      30 s for pending answers. Lines after the last result were not read.
      Exit codes: 0 every event was published; 64 command line, or the input cannot be read; 65 lines \
      were refused; 69 the service or the login was unavailable, or events have no answer; 70 a defect \
      of this program; 74 results cannot be written; 75 try again: an allowance is used up, or a signal; \
      77 login, permission or topic refused; 78 mistakes in the org file, or a TLS identity.

      EXAMPLES:
        pubsub-etl publish --org org.json --topic /event/Order__e < events.ndjson
      """)

  @Option(help: "Topic of a platform event, for example /event/Order_Event__e.")
  var topic: String

  @OptionGroup var orgOptions: OrgOptions

  @Argument(help: "File with one event per line; default: standard input.", completion: .file())
  var file: String?

  @Flag(
    help:
      "Publish by one PublishStream call with several requests under way, instead of a Publish call for each request."
  )
  var stream = false

  @Flag(help: "Log in, read the schema and check every line, but publish nothing.")
  var dryRun = false

  @Flag(
    help: "Print the topic's Avro schema, by which lines are checked, and read and publish nothing."
  )
  var showSchema = false

  @Flag(help: "Send events again that may have been published, with the same event ID.")
  var repeatUnknown = false

  @Option(help: "Publish at most this many events per second, evenly spread.")
  var rate: Double?

  @Option(
    help: ArgumentHelp(
      "Member that holds the event's ID; every line must have it. Default: EventUuid, or a new UUID "
        + "for a line without it.", valueName: "name"))
  var idField: String?

  @Option(
    help: ArgumentHelp(
      "User ID for CreatedById where a line has none; default: the user that logs in, if the login "
        + "names it.", valueName: "id"))
  var createdBy: String?

  @Option(
    help: ArgumentHelp(
      "Retry for this long while the service or the login is unavailable; default: 10m.",
      valueName: "time"),
    transform: {
      guard let duration = JSONReader.duration($0) else {
        throw ValidationError("expected a time such as 90s, 10m or 1h30m")
      }
      return duration
    })
  var giveUpAfter: Duration?

  func validate() throws {
    if TopicName.hasChanges(self.topic) {
      throw ValidationError(
        "\(self.topic) cannot be published to: Salesforce alone publishes change events; "
          + "--topic takes platform events, such as /event/Order_Event__e")
    }
    guard TopicName.isValid(self.topic) else {
      throw ValidationError("--topic: expected a platform event, such as /event/Order_Event__e")
    }
    if let rate, !(rate.isFinite && (0.001...1_000_000).contains(rate)) {
      throw ValidationError("--rate must be 0.001 to 1000000 events per second")
    }
    if let createdBy, !Self.isUserID(createdBy) {
      throw ValidationError("--created-by: expected a user ID of 15 or 18 characters, 005 first")
    }
    if let idField, idField.isEmpty || idField.utf8.count > 255 {
      throw ValidationError("--id-field: expected the name of a member")
    }
  }

  private static func isUserID(_ text: String) -> Bool {
    text.hasPrefix("005") && [15, 18].contains(text.utf8.count)
      && text.utf8.allSatisfy(\.isAlphanumeric)
  }

  func run() async throws {
    let (org, secrets) = try self.orgOptions.loadOrExit()
    let code: ExitCode
    do {
      code = try await self.publish(org, secrets)
    } catch {
      throw RunFailure(error).reported(hiding: secrets)
    }
    if code != .success { throw code.error }
  }

  private func publish(_ org: OrgConfiguration, _ secrets: SecretMask) async throws -> ExitCode {
    let clock = ProcessClock()
    let input = try InputBytes(try self.openInput())
    let interruption = Interruption(deadline: nil, clock: clock)
    let watcher = try await SignalWatcher(clock: clock) { interruption.ask() }
    defer { withExtendedLifetime(watcher) {} }
    let report = PublishReport(
      secrets: secrets, isDryRun: self.dryRun,
      inputName: self.file ?? "standard input")
    let run = try await OrgConnection.open(org, secrets: secrets, clock: clock) { connection in
      let run = PublishRun(
        self.options, client: connection.service, credentials: connection.credentials,
        input: input, interruption: interruption,
        userID: { try? await connection.credentials.provider.token().userID },
        output: { report.write($0) }, onRetry: { report.tell($0) },
        onProgress: { report.show($0) })
      await run.run()
      return run
    }
    if self.showSchema, await run.failure == nil, let schema = await run.schema {
      let text = PrintableText(json: try JSONValue(parsing: schema), hiding: secrets)
      try StandardStream.print(text)
      return .success
    }
    report.finish(
      await run.summary, failure: await run.failure, lastLine: await run.lastLine)
    return await run.exitCode
  }

  private var options: PublishOptions {
    var options = PublishOptions(topic: self.topic)
    options.isStream = self.stream
    options.isDryRun = self.dryRun
    options.repeatsUnknown = self.repeatUnknown
    options.showsSchema = self.showSchema
    options.rate = self.rate
    options.encoding = PublishEncoder.Options(idField: self.idField, createdBy: self.createdBy)
    options.retry.giveUpAfter = self.giveUpAfter ?? options.retry.giveUpAfter
    return options
  }

  private func openInput() throws -> Int32 {
    guard let file, file != "-" else { return STDIN_FILENO }
    let descriptor = open(file, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw RunFailure(
        .input, "\(file) cannot be read: \(SystemCallError("open"))")
    }
    return descriptor
  }
}
