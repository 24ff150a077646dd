import ArgumentParser
import FoundationEssentials
import Glibc
import JSON
import PostgresClient
import PostgresSink
import TestSupport
import Testing

@testable import PubSubETL

@Suite("New pipelines") struct InitCommandTests {
  private static let topic = "/data/OpportunityChangeEvent"
  private static let login = Environment([
    "SF_LOGIN_URL": "https://acme.my.salesforce.com", "SF_CLIENT_ID": "id",
    "SF_CLIENT_SECRET": "it's a $ecret",
  ])

  private static func command(_ arguments: String...) throws -> InitCommand {
    try InitCommand.parse(arguments)
  }

  private static func text(_ path: String) throws -> String {
    String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
  }

  // MARK: The files

  @Test("The file has what is required and nothing else")
  func text() throws {
    let plan = try Self.command("deals", "--topic", Self.topic, "--sink", "files")
      .plan(directory: "/srv", environment: Self.login, ask: nil)
    #expect(plan.files.map(\.path) == ["/srv/deals.json", "/srv/deals.env"])
    #expect(plan.files.map(\.mode) == [0o644, 0o600])
    #expect(
      plan.files[0].text == """
        {
          "version": 1,
          "name": "deals",
          "source": {
            "type": "salesforce",
            "topic": "/data/OpportunityChangeEvent",
            "start": "earliest",
            "org": {
              "auth": {
                "type": "client_credentials",
                "login_url": "${SF_LOGIN_URL}",
                "client_id": "${SF_CLIENT_ID}",
                "client_secret": "${SF_CLIENT_SECRET}"
              }
            }
          },
          "stages": [{"type": "flatten"}],
          "sinks": [{"type": "files", "directory": "out/deals"}],
          "checkpoint": {"type": "file", "directory": "state"}
        }

        """)
    #expect(
      plan.files[1].text == """
        SF_LOGIN_URL=https://acme.my.salesforce.com
        SF_CLIENT_ID=id
        SF_CLIENT_SECRET="it's a \\$ecret"

        """)
  }

  @Test("Each sink gives a file that loads, and only the stage could be left out")
  func shortest() throws {
    let sample = try SamplePipeline()
    let environment = [
      "SF_LOGIN_URL": "https://acme.my.salesforce.com", "SF_CLIENT_ID": "id",
      "SF_CLIENT_SECRET": "secret", "DATABASE_URL": "postgresql:///sales",
    ]
    for type in SinkRegistry.draftedTypes {
      let plan = try Self.command("deals", "--topic", Self.topic, "--sink", type.type)
        .plan(directory: sample.base, environment: Environment(environment), ask: nil)
      let document = try JSONValue(parsing: Array(plan.files[0].text.utf8))
      let loaded = try sample.load(plan.files[0].text, environment: environment)
      #expect(loaded.sinks.map { Swift.type(of: $0).type } == [type.type])
      for shorter in Self.shortened(document) {
        let loaded = try? sample.load(shorter.text(), environment: environment)
        #expect(
          loaded == nil || loaded?.stages.isEmpty == true || loaded?.source.topics[0].start == nil
            || (loaded?.sinks.first as? PostgresSettings)?.sink.connection.url == "",
          "\(shorter.text())")
      }
    }
  }

  /// The document without one member, in each possible way.
  private static func shortened(_ value: JSONValue) -> [JSONValue] {
    guard let members = value.members else {
      return (value.array ?? []).flatMap(Self.shortened).map { JSONValue(.array([$0])) }
    }
    return members.indices.flatMap { index in
      var without = members
      without.remove(at: index)
      return [JSONValue(.object(without))]
        + Self.shortened(members[index].value).map { shorter in
          var changed = members
          changed[index].value = shorter
          return JSONValue(.object(changed))
        }
    }
  }

  @Test("An org file is named, and its variables are among those to fill in")
  func orgFile() throws {
    let sample = try SamplePipeline()
    try sample.write(
      #"{"auth": {"type": "token", "token": "${TOKEN}"}, "endpoint": "${PLACE:-https://a.example}"}"#,
      to: "org.json")
    let file = "\(sample.base)/org.json"
    let plan = try Self.command(
      "crm", "--org", file, "--topic", "/data/ChangeEvents", "--sink", "postgres"
    ).plan(directory: sample.base, environment: Environment(["PLACE": ""]), ask: nil)
    let document = try JSONValue(parsing: Array(plan.files[0].text.utf8))
    #expect(document["source"]?["org"] == .string(file))
    #expect(plan.files[1].text == "DATABASE_URL=\nTOKEN=\n")
    #expect(plan.report[1] == "wrote \(sample.base)/crm.env; fill in DATABASE_URL, TOKEN")
    try sample.write("{}", to: "other.json")
    #expect(throws: ConfigurationError.self) {
      try Self.command(
        "crm", "--org", "\(sample.base)/other.json", "--topic", Self.topic, "--sink", "files"
      ).plan(directory: sample.base, environment: Environment([:]), ask: nil)
    }
  }

  @Test("Another service is named if the environment names one, and a line end is no value")
  func otherService() throws {
    let plan = try Self.command("deals", "--topic", Self.topic, "--sink", "files").plan(
      directory: "/srv",
      environment: Environment([
        "PUBSUB_ENDPOINT": "http://127.0.0.1:9", "SF_CLIENT_ID": "a\nrm -rf b",
      ]), ask: nil)
    let org = try JSONValue(parsing: Array(plan.files[0].text.utf8))["source"]?["org"]
    #expect(org?.members?.map(\.name) == ["endpoint", "auth"])
    #expect(
      plan.files[1].text
        == "PUBSUB_ENDPOINT=http://127.0.0.1:9\nSF_LOGIN_URL=\nSF_CLIENT_ID=\nSF_CLIENT_SECRET=\n"
    )
  }

  @Test("The crontab line has quoted paths, without a percent sign that cron would cut at")
  func crontab() throws {
    let plan = try Self.command("deals", "--topic", Self.topic, "--sink", "files").plan(
      directory: "/srv/50% $HOME", environment: Self.login, ask: nil)
    let line = try #require(plan.report.last)
    #expect(
      line.hasPrefix(
        #"  */10 * * * * set -a; . "/srv/50\% \$HOME/deals.env"; set +a; /"#))
    #expect(line.hasSuffix(#" run "/srv/50\% \$HOME/deals.json" --max-duration 9m"#))
    #expect(throws: RunFailure.self) {
      try Self.command("deals", "--topic", Self.topic, "--sink", "files").plan(
        directory: "/srv/a\n* * * * * b", environment: Self.login, ask: nil)
    }
  }

  // MARK: Answers

  @Test(
    "A name that is no file name of its own is refused",
    arguments: [
      "", "..", "../deals", "a/b", ".deals", "-deals", "a b", "a\nb", "$(id)", "a;b", "ä",
      String(repeating: "a", count: 65),
    ])
  func names(name: String) {
    #expect(throws: (any Error).self) {
      try InitCommand.parse(["--topic", Self.topic, "--sink", "files", "--", name])
    }
  }

  @Test(
    "Options that cannot be meant are refused",
    arguments: [
      ["--topic", "Opportunity"], ["--topic", "/data/Opportunity"], ["--topic", "/data/../x"],
      ["--sink", "kafka"], ["--org", "~/org.json"],
    ])
  func options(arguments: [String]) {
    #expect(throws: (any Error).self) { try InitCommand.parse(["deals"] + arguments) }
  }

  @Test("Without a terminal, what is missing is named, and nothing is asked")
  func missing() throws {
    let failure = #expect(throws: RunFailure.self) {
      try Self.command("--sink", "files").plan(
        directory: "/srv", environment: Self.login, ask: nil)
    }
    #expect(failure?.exitCode == .usage)
    #expect(
      failure?.message
        == "NAME, --topic: not given; for example: pubsub-etl init deals --topic "
        + "/data/OpportunityChangeEvent --sink files")
  }

  @Test("On a terminal, only what is missing is asked, and a wrong answer is not taken")
  func asks() throws {
    var questions: [String] = []
    var answers = ["/data/Opportunity", Self.topic, "kafka", "files"]
    let plan = try Self.command("deals").plan(directory: "/srv", environment: Self.login) {
      question, mistake in
      questions.append(question)
      while !answers.isEmpty {
        let answer = answers.removeFirst()
        if mistake(answer) == nil { return answer }
      }
      return nil
    }
    #expect(questions.map { $0.prefix(5) } == ["Topic", "Where"])
    #expect(plan.files[0].text.contains(#""name": "deals""#))
    #expect(throws: RunFailure.self) {
      try Self.command("deals").plan(directory: "/srv", environment: Self.login) { _, _ in nil }
    }
  }

  // MARK: Writing

  @Test("Files are made with their modes, and none is replaced")
  func writes() throws {
    let place = try TemporaryDirectory()
    let directory = place.path
    let plan = try Self.command("deals", "--topic", Self.topic, "--sink", "files").plan(
      directory: directory, environment: Self.login, ask: nil)
    try NewFiles.make(plan.files)
    var status = stat()
    #expect(stat("\(directory)/deals.env", &status) == 0)
    #expect(status.st_mode & 0o777 == 0o600)
    #expect(try Self.text("\(directory)/deals.json") == plan.files[0].text)
    let failure = #expect(throws: RunFailure.self) { try NewFiles.make(plan.files) }
    #expect(failure?.exitCode == .output)
    #expect(failure?.message.hasPrefix("\(directory)/deals.json is there already") == true)
    #expect(try Self.text("\(place.path)/deals.env") == plan.files[1].text)
  }

  @Test("If one file is there, also as a link to nowhere, no other is left behind")
  func leavesNothing() throws {
    let place = try TemporaryDirectory()
    let directory = place.path
    let plan = try Self.command("deals", "--topic", Self.topic, "--sink", "files").plan(
      directory: directory, environment: Self.login, ask: nil)
    #expect(symlink("\(directory)/elsewhere", "\(directory)/deals.env") == 0)
    #expect(throws: RunFailure.self) { try NewFiles.make(plan.files) }
    #expect(!FilePath.exists("\(directory)/deals.json"))
    #expect(!FilePath.exists("\(place.path)/elsewhere"))
  }
}
