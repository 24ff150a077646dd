import ArgumentParser
import Clocks
import JSON
import Logging
import OrgTestSupport
import PubSubSimulator
import SimulatedOrg
import TestSupport
import Testing

@testable import PubSubETL

@Suite("Runs without a pipeline file") struct RunWithoutFileTests {
  private static let topic = "/data/OpportunityChangeEvent"

  private static func options(_ arguments: String...) throws -> RunPipelineOptions {
    try RunPipelineOptions.parse(arguments)
  }

  private static let variables = [
    "SF_LOGIN_URL": "https://acme.my.salesforce.com", "SF_CLIENT_ID": "id",
    "SF_CLIENT_SECRET": "secret", "HOME": "/home/etl",
  ]
  private static let login = Environment(Self.variables)

  @Test(
    "Options that need each other, or a file, are refused",
    arguments: [
      ([], "expected a pipeline file, or --topic and --to"),
      (["--topic", Self.topic], "--topic needs --to"),
      (["--to", "out"], "--to needs --topic"),
      (["--print"], "--print needs --topic and --to"),
      (["p.json", "--topic", Self.topic], "--topic belongs to a run without a pipeline file"),
      (["p.json", "--print"], "--print belongs to a run without a pipeline file"),
      (["--topic", "/data/Opportunity", "--to", "out"], "did you mean"),
      (["--topic", Self.topic, "--to", "kafka://a"], "expected a directory or postgresql://"),
      (
        ["--topic", Self.topic, "--to", "postgresql:/etl:x@db/a"],
        "expected a directory or postgresql://"
      ),
      (
        ["--topic", Self.topic, "--to", "host=db password=x"],
        "expected a directory or postgresql://"
      ),
      (["--topic", Self.topic, "--to", "~/out"], "only a shell replaces"),
      (["--topic", Self.topic, "--to", "/"], "a directory below"),
      (["--topic", Self.topic, "--to", "out", "--root", "/srv"], "--root belongs to"),
    ])
  func refused(arguments: [String], message: String) {
    #expect {
      try RunPipelineOptions.parse(arguments)
    } throws: { RunPipelineOptions.message(for: $0).contains(message) }
  }

  @Test("A password on the command line is refused, and the message does not quote it")
  func password() {
    #expect {
      try Self.options("--topic", Self.topic, "--to", "postgresql://etl:hunter22@db/sales")
    } throws: {
      let message = RunPipelineOptions.message(for: $0)
      return message.contains("password on the command line") && !message.contains("hunter22")
    }
  }

  @Test("The state of files is beside them")
  func files() throws {
    let options = try Self.options("--topic", Self.topic, "--to", "/srv/${x}/deals")
    let document = try #require(try options.document(environment: Self.login))
    #expect(document["sinks"] == [["type": "files", "directory": "/srv/$${x}/deals"]])
    let configuration = try options.loadOrExit(environment: Self.login)
    #expect(configuration.name == "Opportunity")
    #expect(configuration.checkpoint.directory == "/srv/${x}/deals.state")
    #expect(configuration.sinks.map(\.place) == ["/srv/${x}/deals"])
    #expect(configuration.command("status") == "pubsub-etl status FILE")
  }

  @Test("The state of a database is in the user's directory for states, one for each database")
  func database() throws {
    func directory(_ url: String, _ environment: Environment) throws -> String {
      try Self.options("--topic", Self.topic, "--to", url).loadOrExit(environment: environment)
        .checkpoint.directory
    }
    let first = try directory("postgresql://etl@db/sales", Self.login)
    #expect(first.hasPrefix("/home/etl/.local/state/pubsub-etl/"))
    #expect(try directory("postgresql://etl@db/sales", Self.login) == first)
    #expect(try directory("postgresql://etl@db/other", Self.login) != first)
    let moved = Environment(Self.variables.merging(["XDG_STATE_HOME": "/state"]) { $1 })
    #expect(try directory("postgres://db/sales", moved).hasPrefix("/state/pubsub-etl/"))
    let homeless = Environment(Self.variables.filter { $0.key != "HOME" })
    let options = try Self.options("--topic", Self.topic, "--to", "postgres://db/sales")
    #expect(throws: RunFailure.self) { try options.draft(environment: homeless) }
  }

  @Test("The file that is printed means the same pipeline")
  func printed() throws {
    let sample = try SamplePipeline()
    for place in ["/srv/deals", "postgresql://etl@db/sales"] {
      let options = try Self.options(
        "--topic", Self.topic, "--topic", "/data/AccountChangeEvent", "--to", place, "--set",
        "run.quiet=5s")
      let text = try #require(try options.document(environment: Self.login)).text(.folded)
      let printed = try sample.load(text, environment: Self.variables)
      let meant = try options.loadOrExit(environment: Self.login)
      #expect(printed.run.quiet == .seconds(5))
      func lines(_ configuration: PipelineConfiguration) -> [Substring] {
        ConfigurationSummary.text(configuration).split(separator: "\n")
      }
      // The first line names the file.
      #expect(lines(printed).dropFirst() == lines(meant).dropFirst())
      #expect(printed.sinks.map(\.place) == meant.sinks.map(\.place))
    }
  }

  @Test("A variable that is not set is named, and no file is")
  func missingVariable() throws {
    let options = try Self.options("--topic", Self.topic, "--to", "/srv/deals")
    let empty = Environment(["HOME": "/home/etl"])
    let draft = try #require(try options.draft(environment: empty))
    let error = #expect(throws: ConfigurationError.self) {
      try PipelineConfiguration.load(draft, overrides: [], environment: empty)
    }
    #expect(
      error?.mistakes.first?.description
        == "without a pipeline file: /source/org/auth/login_url: environment variable SF_LOGIN_URL "
        + "is not set")
  }

  @Test("Events are exported into the directory, and the next run continues")
  func runs() async throws {
    let org = try await OrgServer {
      $0.isPlaintext = true
      $0.org.topics = [Self.topic]
      $0.org.events = 30
      $0.org.existing = nil
      $0.org.keepaliveInterval = 50
    }
    let place = try TemporaryDirectory()
    let directory = "\(place.path)/deals"
    let environment = Environment(org.environment.merging(["HOME": place.path]) { $1 })
    let options = try Self.options("--topic", Self.topic, "--to", directory)
    for expected: Int64 in [30, 0] {
      var configuration = try options.loadOrExit(environment: environment)
      // Less than a pipeline file may have.
      configuration.run.quiet = .milliseconds(100)
      let run = PipelineRun(
        configuration, options: try RunOptions.parse([]), purpose: .export,
        interruption: Interruption(deadline: nil, clock: ProcessClock()), clock: ProcessClock(),
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, progress: nil)
      await run.execute()
      #expect(run.report.exitCode == .success)
      #expect(run.report.topics.map(\.events) == [expected])
    }
    #expect(FilePath.exists("\(directory)/_manifest.ndjson"))
    #expect(FilePath.exists("\(directory).state"))
    await org.stop()
  }
}
