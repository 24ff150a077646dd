import Checkpoint
import Glibc
import JSON
import Pipeline
import TestSupport
import Testing

@testable import PubSubETL

@Suite("Checks without a connection")
struct LocalCheckTests {
  private func sample(
    _ change: (String) -> String = { $0 }
  ) throws -> (
    SamplePipeline, PipelineConfiguration
  ) {
    let sample = try SamplePipeline()
    let text = SamplePipeline.minimal.replacing(
      "\"topic\":", with: "\"start\": \"earliest\", \"topic\":")
    return (sample, try sample.load(change(text)))
  }

  @Test("A pipeline whose directories can be created passes, and nothing is created")
  func inOrder() throws {
    let (sample, configuration) = try self.sample()
    #expect(LocalCheck.failures(configuration).isEmpty)
    #expect(LocalCheck.warnings(configuration).isEmpty)
    #expect(!FilePath.exists("\(sample.base)/state"))
    #expect(!FilePath.exists("\(sample.base)/out"))
  }

  @Test("A warning names a refresh token file that cannot be replaced")
  func refreshTokenPlace() throws {
    let sample = try SamplePipeline()
    try sample.write("token", to: "token")
    let auth =
      #"{"type":"refresh_token","login_url":"https://a.my.salesforce.com","client_id":"i","refresh_token_file":"FILE"}"#
    for (file, count) in [("token", 0), ("/proc/self/comm", 1)] {
      let configuration = try sample.load(
        sets: ["source.start=earliest", "source.org.auth=\(auth.replacing("FILE", with: file))"])
      let warnings = LocalCheck.warnings(configuration)
      // Not even root can make files in the process table.
      #expect(warnings.count == count, "\(warnings)")
    }
  }

  @Test(
    "A lock or identity that is not a file is reported, with the remedy",
    arguments: ["lock", "identity"], ["directory", "pipe", "link"])
  func notAFile(name: String, kind: String) throws {
    let (sample, configuration) = try self.sample()
    let paths = configuration.statePaths
    let path = name == "lock" ? paths.lock : paths.identity
    #expect(mkdir(paths.directory, 0o700) == 0)
    switch kind {
    case "directory": #expect(mkdir(path, 0o700) == 0)
    case "pipe": #expect(mkfifo(path, 0o600) == 0)
    default: #expect(symlink("/dev/null", path) == 0)
    }
    let failures = LocalCheck.failures(configuration)
    let warnings = LocalCheck.warnings(configuration)
    // Runs follow a link to an identity, so it is no failure.
    let isTolerated = name == "identity" && kind == "link"
    #expect(failures.map(\.exitCode) == (isTolerated ? [] : [.output]), "\(failures)")
    #expect(warnings.count == (isTolerated ? 1 : 0), "\(warnings)")
    #expect((failures.map(\.message) + warnings).allSatisfy { $0.contains("remove it") })
    withExtendedLifetime(sample) {}
  }

  @Test("A directory that cannot be created is reported", arguments: ["out", "state"])
  func fileInTheWay(name: String) throws {
    let (sample, configuration) = try self.sample {
      $0.replacing("\"\(name)\"", with: "\"\(name)/deeper/still\"")
    }
    try sample.write("", to: name)
    let failures = LocalCheck.failures(configuration)
    #expect(failures.map(\.exitCode) == [.output])
    #expect(failures.first?.message.hasSuffix("\(sample.base)/\(name) is not a directory") == true)
    if name == "state" {
      #expect(throws: CheckpointError.self) {
        try FileCheckpointStore(
          directory: configuration.checkpoint.directory, pipeline: configuration.name)
      }
    }
  }

  @Test("An unusable dead-letter directory is a warning, not a failure")
  func deadLetters() throws {
    let (sample, configuration) = try self.sample {
      $0.replacing(
        "\"checkpoint\":", with: "\"dead_letter\": { \"directory\": \"letters\" }, \"checkpoint\":")
    }
    try sample.write("", to: "letters")
    #expect(LocalCheck.failures(configuration).isEmpty)
    #expect(LocalCheck.warnings(configuration).count == 1)
  }

  @Test("A topic without a position and a start is reported; a topic with a position is accepted")
  func start() throws {
    let sample = try SamplePipeline()
    let configuration = try sample.load()
    #expect(LocalCheck.failures(configuration).map(\.exitCode) == [.configuration])
    let store = try FileCheckpointStore(
      directory: configuration.checkpoint.directory, pipeline: "opps")
    try store.save(
      CheckpointDocument(
        pipeline: "opps", org: "00D",
        topics: [
          "/data/OpportunityChangeEvent": TopicPosition(beginningEpoch: 1, start: .latest)
        ], sinks: ["files": SinkState(directory: "\(sample.base)/out")]))
    #expect(LocalCheck.failures(configuration).isEmpty)
  }

  @Test("A damaged checkpoint and a sink that it does not know are reported")
  func checkpoint() throws {
    let (sample, configuration) = try self.sample()
    #expect(mkdir("\(sample.base)/state", 0o700) == 0)
    try sample.write("{", to: "state/opps.checkpoint.json")
    #expect(LocalCheck.failures(configuration).map(\.exitCode) == [.data])
    let store = try FileCheckpointStore(directory: "\(sample.base)/state", pipeline: "opps")
    try store.save(
      CheckpointDocument(pipeline: "opps", org: "00D", sinks: ["other": SinkState(["files": []])]))
    #expect(LocalCheck.failures(configuration).map(\.reason) == [.newSink])
  }

  @Test(
    "A state that no run stores is reported, as by a run",
    arguments: [
      ("gap_events", #"{"Opportunity":{"open":9223372036854775807}}"#),
      ("passes", #"[{"entity":"Opportunity","number":-1}]"#), ("files", #"[{"from":"x"}]"#),
      ("files", "7"),
    ])
  func damagedState(member: String, value: String) throws {
    for isOfLetters in [false, true] where !isOfLetters || member == "files" {
      let (sample, configuration) = try self.sample()
      let store = try FileCheckpointStore(directory: "\(sample.base)/state", pipeline: "opps")
      let sound = [JSONMember("directory", .string("\(sample.base)/out")), JSONMember("files", [])]
      let damaged = JSONValue(
        .object(
          sound.filter { $0.name != member }
            + [JSONMember(member, try JSONValue(parsing: value))]))
      try store.save(
        CheckpointDocument(
          pipeline: "opps", org: "00D",
          sinks: ["files": SinkState(isOfLetters ? JSONValue(.object(sound)) : damaged)],
          deadLetters: isOfLetters ? SinkState(damaged) : nil))
      let failures = LocalCheck.failures(configuration)
      #expect(failures.map(\.reason) == [.inconsistentOutput])
      #expect(failures.map(\.exitCode) == [.data])
    }
  }

  @Test("A changed directory that lacks the files of the last run is reported")
  func otherDirectory() throws {
    let (sample, configuration) = try self.sample()
    let name =
      "Opportunity/commit_date=2026-02-17/opps-OpportunityChangeEvent-e1-000000000000.ndjson.zst"
    let store = try FileCheckpointStore(directory: "\(sample.base)/state", pipeline: "opps")
    let state: JSONValue = [
      "directory": .string("\(sample.base)/old"), "files": [], "last_finished": .string(name),
    ]
    try store.save(
      CheckpointDocument(pipeline: "opps", org: "00D", sinks: ["files": SinkState(state)]))
    let failures = LocalCheck.failures(configuration)
    #expect(failures.map(\.reason) == [.otherDirectory])
    #expect(failures.map(\.exitCode) == [.data])
    #expect(failures.first?.message.contains("\(sample.base)/old") == true)
    mkdir("\(sample.base)/out", 0o750)
    try sample.write("{\"name\":\"\(name)\"}\n", to: "out/_manifest.ndjson")
    #expect(LocalCheck.failures(configuration).isEmpty)
  }

  @Test("A CA file without certificates is a mistake in the file")
  func caFile() throws {
    let sample = try SamplePipeline()
    try sample.write("not PEM", to: "ca.pem")
    let mistakes = try sample.mistakes(
      SamplePipeline.minimal.replacing(
        "\"auth\"", with: "\"tls\": { \"ca_file\": \"ca.pem\" }, \"auth\""))
    #expect(mistakes.count == 1)
    #expect(mistakes.first?.contains("/source/org/tls/ca_file: ") == true)
  }
}
