import FileSink
import Glibc
import HTTPClient
import JSON
import Pipeline
import TestSupport
import Testing

@testable import PubSubETL

@Suite("Pipeline configuration")
struct PipelineConfigurationTests {
  @Test(
    "A topic that names an object is refused with the topic of its changes",
    arguments: [
      ("Contact", "data/ContactChangeEvent"), ("Foo__c", "data/Foo__ChangeEvent"),
      ("Contactchangeevent", "data/ContactChangeEvent"), ("Order__e", "event/Order__e"),
      ("ChangeEvent", nil),
    ])
  func objectAsTopic(name: String, changes: String?) throws {
    let mistakes = try SamplePipeline().mistakes(
      SamplePipeline.minimal.replacing("OpportunityChangeEvent", with: name))
    #expect(mistakes.count == 1)
    #expect(
      mistakes.first?.contains("the changes of an object are in /data/<Entity>ChangeEvent") == true)
    guard let changes else { return }
    #expect(mistakes.first?.hasSuffix("did you mean '/\(changes)'?") == true)
  }

  @Test("A misspelled dead_letter comes before what its absence causes")
  func misspelledDeadLetter() throws {
    let mistakes = try SamplePipeline().mistakes(
      SamplePipeline.minimal.replacing(
        #""sinks":"#,
        with: #""stages": [ { "type": "mask", "columns": ["A"], "with": "redact" } ], "sinks":"#
      ).replacing(
        #""checkpoint":"#, with: #""dead_leter": { "payload": "none" }, "checkpoint":"#))
    #expect(mistakes.count == 2)
    #expect(
      mistakes.first?.contains("/dead_leter: unknown key; did you mean 'dead_letter'?") == true)
  }

  @Test("A minimal file gets the documented defaults")
  func defaults() throws {
    let sample = try SamplePipeline()
    let configuration = try sample.load()
    #expect(configuration.name == "opps")
    #expect(configuration.base == sample.base)
    let source = configuration.source
    #expect(source.topics == [.init(name: "/data/OpportunityChangeEvent", start: nil)])
    #expect(source.numRequested == 100)
    #expect(source.onInvalidReplay == .fail)
    #expect(source.recordIDs == .rows)
    #expect(source.org.endpoint.url == "https://api.pubsub.salesforce.com:7443")
    #expect(source.org.tls == TLSConfiguration())
    #expect(source.org.proxy == .none)
    let login = try #require(source.org.auth as? ClientCredentialsLogin)
    #expect(login.loginURL.url == "https://acme.my.salesforce.com")
    #expect(login.clientID == "id")
    #expect(login.clientSecret == Secret("s3cret"))
    #expect(configuration.stages.isEmpty)
    let files = try #require(configuration.fileSinks.first)
    var expected = FilesSettings()
    expected.directory = "\(sample.base)/out"
    #expect(files == expected)
    #expect(files.rotateBytes == 134_217_728)
    #expect(files.rotateOpenFiles == 250)
    #expect(configuration.commit == CommitConfiguration())
    #expect(configuration.commit.maxEvents == 100_000)
    #expect(configuration.checkpoint.directory == "\(sample.base)/state")
    #expect(configuration.deadLetter.directory == "\(sample.base)/state/dead")
    #expect(configuration.deadLetter.max == 0)
    #expect(configuration.run == RunConfiguration())
  }

  @Test(
    "A share of dead letters replaces their number, unless both are given",
    arguments: [
      (#"{}"#, 0, nil), (#"{"max_ratio":0.01}"#, nil, 0.01),
      (#"{"max":5,"max_ratio":0.5,"payload":"none"}"#, 5, 0.5),
    ] as [(String, Int?, Double?)])
  func deadLetters(json: String, max: Int?, ratio: Double?) throws {
    let letters = try SamplePipeline().load(sets: ["dead_letter=\(json)"]).deadLetter
    #expect(letters.max == max && letters.maxRatio == ratio)
    #expect(letters.payload == (json.contains("none") ? .none : .full))
  }

  @Test("A share outside 0 to 1 is refused", arguments: ["1.5", "-0.1", #""1 %""#])
  func impossibleShare(share: String) throws {
    let mistakes = try SamplePipeline().mistakes(sets: ["dead_letter={\"max_ratio\":\(share)}"])
    #expect(mistakes.count == 1 && mistakes[0].contains("a number from 0 to 1"), "\(mistakes)")
  }

  @Test("All mistakes are reported at once, with file, place, path and choices")
  func everyMistake() throws {
    let sample = try SamplePipeline()
    let mistakes = try sample.mistakes(
      #"""
      {
        "version": 2,
        "name": "../opps",
        "sorce": {},
        "source": {
          "type": "kafka",
          "topic": ["/event/A", "opps", { "topic": "/event/A"}, { "start": "first" }, 7 ],
          "num_requested": 101,
          "start": { "replay_id": "123" },
          "on_invalid_replay": "ignore",
          "record_ids": true,
          "org": {
            "endpoint": "http://api.pubsub.salesforce.com",
            "tls": { "ca_file": "none.pem", "verify": false },
            "org_id": "42",
            "auth": { "type": "client_credentials", "login_url": "https://login.salesforce.com",
              "client_id": "", "client_secret": "${NO_SECRET}" }
          }
        },
        "stages": [ { "type": "flaten" }, { "type": "flatten", "naming": "dots" } ],
        "sinks": [
          { "type": "files", "directory": "out", "compression": { "type": "gzip", "level": 23 }, "stages": [{ "type": "selekt" }] },
          { "type": "files", "directory": "./out", "rotate": { "max_bytes": "1KiB", "max_age": 5 } },
          { "type": "postgres", "url": "x", "mode": "all" },
          { "type": "kafka" }
        ],
        "commit": { "max_events": 0, "max_delay": "1 s" },
        "checkpoint": { "type": "redis" },
        "dead_letter": { "max": -1 },
        "run": { "until": { "events": 1, "duration": "1m" }, "quiet": "0s", "if_running": "kill",
          "fail_on": [ "gaps", "all" ] }
      }
      """#)
    let expected = [
      "4:3: /sorce: unknown key; did you mean 'source'?; known: $schema, version, name, source, stages, sinks, commit, checkpoint, dead_letter, run, retry, repair, allowance, metrics, notify",
      "2:14: /version: unknown version 2; known: 1",
      "3:11: /name: expected a name of 1 to 64 letters, digits, '-', '_' and '.', beginning with a letter or digit",
      "6:13: /source/type: unknown source 'kafka'; known: salesforce",
      "7:27: /source/topic/1: expected a topic: /data/<Entity>ChangeEvent, /data/ChangeEvents, /data/<Channel>__chn, /event/<Event>__e or /event/<Channel>__chn",
      "7:46: /source/topic/2/topic: the topic /event/A is listed twice",
      "7:59: /source/topic/3/topic: is required",
      "7:70: /source/topic/3/start: unknown value 'first'; known: earliest, latest, {\"replay_id\": \"<hex>\"}",
      "7:81: /source/topic/4: expected a topic or an object with \"topic\", found a number",
      "8:22: /source/num_requested: expected an integer from 1 to 100, found 101",
      "9:29: /source/start/replay_id: expected an even number of hexadecimal digits",
      "10:26: /source/on_invalid_replay: unknown policy 'ignore'; known: fail, earliest, latest, snapshot",
      "11:19: /source/record_ids: expected a string, found a boolean",
      "13:19: /source/org/endpoint: http:// is accepted only for loopback addresses, because "
        + "secrets would be sent unencrypted; use https://",
      "14:27: /source/org/tls/ca_file: the file \(sample.base)/none.pem does not exist, cannot be read, or is not a regular file",
      "14:39: /source/org/tls/verify: unknown key; known: ca_file, certificate_file, key_file",
      "15:17: /source/org/org_id: expected an organization ID: 15 or 18 characters, 00D first",
      "16:60: /source/org/auth/login_url: client credentials work only with the org's My "
        + "Domain URL: https://<name>.my.salesforce.com",
      "17:22: /source/org/auth/client_id: must not be empty",
      "17:43: /source/org/auth/client_secret: environment variable NO_SECRET is not set",
      "20:25: /stages/0/type: unknown stage 'flaten'; did you mean 'flatten'?; known: \(TransformRegistry.names.joined(separator: ", "))",
      "22:69: /sinks/0/compression/type: unknown compression 'gzip'; known: zstd",
      "22:86: /sinks/0/compression/level: expected an integer from 1 to 19, found 23",
      "22:113: /sinks/0/stages/0/type: unknown stage 'selekt'; did you mean 'select'?; known: \(TransformRegistry.names.joined(separator: ", "))",
      "23:5: /sinks/1/name: two sinks are named 'files'; give one of them another \"name\"",
      "23:37: /sinks/1/directory: another sink writes to \(sample.base)/out already; give each "
        + "sink its own directory",
      "23:71: /sinks/1/rotate/max_bytes: must be at least 64KiB",
      "23:90: /sinks/1/rotate/max_age: expected a duration such as \"15s\", \"500ms\" or \"1h30m\"; a number needs a unit: ms, s, m, h, d",
      "24:34: /sinks/2/url: not a valid libpq connection string; it is like "
        + "postgresql://user@host:5432/database?sslmode=verify-full or key=value pairs, and "
        + "special characters in a URL are written as %XX",
      "24:47: /sinks/2/mode: unknown value 'all'; known: both, history, current",
      "25:15: /sinks/3/type: unknown sink 'kafka'; known: \(SinkRegistry.names.joined(separator: ", "))",
      "27:29: /commit/max_events: expected an integer from 1 to 1000000, found 0",
      "27:45: /commit/max_delay: expected a duration such as \"15s\", \"500ms\" or \"1h30m\", without spaces; did you mean \"1s\"?; units: ms, s, m, h, d",
      "28:17: /checkpoint/directory: is required",
      "28:27: /checkpoint/type: unknown checkpoint 'redis'; known: file",
      "29:27: /dead_letter/max: expected an integer of at least 0, found -1",
      "30:21: /run/until: expected either \"events\" or \"duration\"",
      "30:65: /run/quiet: must be at least 1s",
      "30:85: /run/if_running: unknown value 'kill'; known: fail, skip, wait",
      "31:26: /run/fail_on/1: unknown kind 'all'; known: gaps, holes, dead_letters",
    ].map { "pipeline.json:\($0)" }
    // The wording of a stage's own members is its registry's business.
    let own = mistakes.filter { !$0.contains("/stages/1/") }
    #expect(own == expected)
    #expect(mistakes.count == own.count + 1)
  }

  @Test("A file that is not JSON is one mistake with its place")
  func syntax() throws {
    let sample = try SamplePipeline()
    #expect(
      try sample.mistakes("{\n  \"version\": 1,\n}") == [
        "pipeline.json:3:1: expected a name in double quotes after ',', found '}'; remove the ',' "
          + "before it"
      ])
    let error = #expect(throws: ConfigurationError.self) {
      try PipelineConfiguration.load(file: "/nowhere/p.json", environment: Environment([:]))
    }
    #expect(
      error?.description == "/nowhere/p.json: cannot be read: No such file or directory")
  }

  @Test("All required parts missing from an empty file are named")
  func required() throws {
    #expect(
      try SamplePipeline().mistakes("{}") == [
        "pipeline.json:1:1: /version: is required", "pipeline.json:1:1: /name: is required",
        "pipeline.json:1:1: /source: is required", "pipeline.json:1:1: /sinks: is required",
        "pipeline.json:1:1: /checkpoint: is required",
      ])
  }

  @Test("An org can have its own file, and its mistakes name that file")
  func sharedOrg() throws {
    let sample = try SamplePipeline()
    let text = SamplePipeline.minimal.replacing(
      #/"org": \{[\s\S]*?\}\s*\}/#, with: #""org": "org.json""#)
    try sample.write(
      #"""
      { "endpoint": "https://localhost:7443",
        "auth": { "type": "token", "access_token": "${TOKEN}", "instance_url": "https://a.b" } }
      """#, to: "org.json")
    let configuration = try sample.load(text, environment: ["TOKEN": "t0ken"])
    let login = try #require(configuration.source.org.auth as? TokenLogin)
    #expect(login.value == Secret("t0ken"))
    #expect(login.instanceURL.host == "a.b")
    try sample.write(
      #"""
      { "auth": { "type": "saml_bearer" },
        "endpont": "" }
      """#, to: "org.json")
    #expect(
      try sample.mistakes(text).map { $0.replacing(sample.base + "/", with: "") } == [
        "org.json:2:3: /endpont: unknown key; did you mean 'endpoint'?; known: $schema, endpoint, tls, proxy, org_id, auth",
        "org.json:1:21: /auth/type: unknown login 'saml_bearer'; known: client_credentials, jwt_bearer, refresh_token, sf_cli, token; the page Logins.md explains them",
      ])
    let missing = text.replacing("org.json", with: "gone.json")
    #expect(
      try sample.mistakes(missing).map { $0.replacing(sample.base + "/", with: "") } == [
        "gone.json: cannot be read: No such file or directory"
      ])
  }

  @Test("A token comes from the pipeline file or from another file, not from both")
  func token() throws {
    let sample = try SamplePipeline()
    let auth = #""source.org.auth={"type":"token","instance_url":"https://a.b""#.dropFirst()
    let configuration = try sample.load(sets: [auth + #","access_token_file":"t"}"#])
    let login = try #require(configuration.source.org.auth as? TokenLogin)
    #expect(login.file == "\(sample.base)/t")
    #expect(
      try sample.mistakes(sets: [auth + "}"]) == [
        "pipeline.json (--set): /source/org/auth/access_token: either access_token or access_token_file is required"
      ])
  }

  @Test("An org's file is found next to the pipeline file, even with --root")
  func orgFileWithRoot() throws {
    let (sample, root) = (try SamplePipeline(), try SamplePipeline())
    let text = SamplePipeline.minimal.replacing(
      #/"org": \{[\s\S]*?\}\s*\}/#, with: #""org": "org.json""#)
    func org(_ host: String) -> String {
      """
      { "auth": { "type": "token", "access_token": "t", "instance_url": "https://\(host)" } }
      """
    }
    try root.write(org("root.b"), to: "org.json")
    #expect(try sample.load(text, root: root.base).source.org.auth.server?.host == "root.b")
    try sample.write(org("beside.b"), to: "org.json")
    let configuration = try sample.load(text, root: root.base)
    #expect(configuration.source.org.auth.server?.host == "beside.b")
    #expect(configuration.checkpoint.directory == root.base + "/state")
  }

  @Test(
    "Modes and groups of files are read",
    arguments: [
      (["mode=0644"], .init(mode: 0o644)), (["mode=\"660\""], .init(mode: 0o660)),
      (["mode=0600", "group=root"], .init(mode: 0o600, groupID: 0)),
      (["group=\"0\""], .init(mode: 0o640, groupID: 0)), ([], nil),
    ] as [([String], FileSinkConfiguration.Permissions?)])
  func permissions(sets: [String], expected: FileSinkConfiguration.Permissions?) throws {
    let sample = try SamplePipeline()
    // Only root may give files to any group.
    if geteuid() != 0, sets.contains(where: { $0.hasPrefix("group") }) { return }
    let configuration = try sample.load(sets: sets.map { "sinks.0.\($0)" })
    #expect(configuration.fileSinks[0].permissions == expected)
    #expect(configuration.fileSinks[0].whenMissing == .fail)
  }

  @Test(
    "Modes that lock the program out or make a file executable are mistakes",
    arguments: ["0440", "0755", "4640", "0x1", "640 ", "", "644444", "rw-r--r--"])
  func badModes(mode: String) throws {
    #expect(
      try SamplePipeline().mistakes(sets: ["sinks.0.mode=\"\(mode)\""]).map { $0.contains("octal") }
        == [true])
  }

  @Test("An unknown group is a mistake")
  func unknownGroup() throws {
    #expect(
      try SamplePipeline().mistakes(sets: ["sinks.0.group=nobodys"]).map {
        $0.contains("/sinks/0/group: this system has no group 'nobodys'")
      } == [true])
  }

  @Test(
    "A path that only a shell would replace is a mistake at its place",
    arguments: [
      "sinks.0.directory", "checkpoint.directory", "dead_letter.directory",
      "dead_letter.key_file", "source.org.tls.ca_file",
    ])
  func shellPaths(key: String) throws {
    let sample = try SamplePipeline()
    #expect(
      try sample.mistakes(sets: ["\(key)=\"a\\u0000b\""]).contains {
        $0.contains("a path cannot contain U+0000")
      })
    for path in ["~", "~/out", "~root/out", "$HOME/out", "/a/$HOME", "$${HOME}/out"] {
      let mistakes = try sample.mistakes(sets: ["\(key)=\(path)"])
      #expect(
        mistakes.contains {
          $0.contains(key.replacing(".", with: "/")) && $0.contains("only a shell replaces '~'")
        }, "\(path): \(mistakes)")
    }
    let directory = "sinks.0.directory"
    for path in ["out~/x", "~x", "${HOME}/out"] {
      #expect(
        try sample.mistakes(sets: ["\(directory)=\(path)"], environment: ["HOME": "/h"]) == [])
    }
  }

  @Test("Commands in messages work in any directory, and with --root where it was given")
  func command() throws {
    let sample = try SamplePipeline()
    let file = "\(sample.base)/pipeline.json"
    #expect(
      try sample.load().command("checkpoint restore", "--from-manifest")
        == "pubsub-etl checkpoint restore \(file) --from-manifest")
    #expect(try sample.load(root: sample.base).command("run") == "pubsub-etl run \(file)")
    #expect(
      try sample.load(root: "/srv/etl").command("snapshot")
        == "pubsub-etl snapshot \(file) --root /srv/etl")
  }

  @Test("Relative paths are relative to the file, to --root or to PUBSUB_ETL_ROOT, in that order")
  func paths() throws {
    let sample = try SamplePipeline()
    let sets = ["sinks.0.directory=../out/./x", "checkpoint.directory=/var/state"]
    func directories(_ configuration: PipelineConfiguration) throws -> [String] {
      let files = try #require(configuration.fileSinks.first)
      return [
        files.directory, configuration.checkpoint.directory, configuration.deadLetter.directory,
      ]
    }
    let parent = FilePath.directory(of: sample.base)
    #expect(
      try directories(try sample.load(sets: sets))
        == ["\(parent == "/" ? "" : parent)/out/x", "/var/state", "/var/state/dead"])
    #expect(try directories(try sample.load(sets: sets, root: "/srv/etl"))[0] == "/srv/out/x")
    let environment = ["PUBSUB_ETL_ROOT": "/opt/etl"]
    #expect(
      try directories(try sample.load(sets: sets, environment: environment))[0] == "/opt/out/x")
    #expect(
      try directories(try sample.load(sets: sets, environment: environment, root: "/srv/etl"))[0]
        == "/srv/out/x")
  }

  @Test("Times, sizes and conditions of the run are read")
  func run() throws {
    let sample = try SamplePipeline()
    func run(_ text: String) throws -> RunConfiguration {
      try sample.load(sets: ["run=\(text)"]).run
    }
    #expect(try run(#"{"until":"forever"}"#).until == .forever)
    #expect(try run(#"{"until":"caught_up","quiet":"1m30s"}"#).quiet == .seconds(90))
    #expect(try run(#"{"until":{"events":5}}"#).until == .events(5))
    #expect(try run(#"{"until":{"duration":"10m"}}"#).until == .duration(.seconds(600)))
    #expect(try run(#"{"fail_on":["gaps","dead_letters"]}"#).failOn == [.gaps, .deadLetters])
    #expect(try run(#"{"if_running":"wait"}"#).ifRunning == .wait)
    #expect(
      try sample.load(sets: [#"source.start={"replay_id":"00AB"}"#]).source.topics[0].start
        == .replayID(ReplayID([0x00, 0xAB])))
  }

  @Test("No description prints a secret")
  func secrets() throws {
    let configuration = try SamplePipeline().load()
    var dumped = ""
    dump(configuration, to: &dumped)
    for text in [dumped, "\(configuration)", String(reflecting: configuration)] {
      #expect(!text.contains("s3cret"))
    }
    #expect("\(Secret("s3cret"))" == "<redacted>")
  }

  @Test(
    "The shipped pipelines are valid",
    arguments: ["opps", "all-changes", "order-events"])
  func shipped(name: String) throws {
    let root = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
    let environment = Environment([
      "SF_LOGIN_URL": "https://acme.my.salesforce.com", "SF_CLIENT_ID": "i",
      "SF_CLIENT_SECRET": "s",
    ])
    let configuration = try PipelineConfiguration.load(
      file: "/\(root)/pipelines/\(name).json", environment: environment)
    #expect(configuration.name == name)
    #expect(configuration.source.topics.allSatisfy { $0.start != nil })
    #expect(configuration.checkpoint.directory == "/\(root)/state")
    #expect(configuration.stages.map { $0.transform() }.count == 1)
  }

  @Test("A pipeline has at most 32 sinks", arguments: [(32, true), (33, false), (80, false)])
  func sinkCount(count: Int, isValid: Bool) throws {
    let sample = try SamplePipeline()
    let sinks = (0..<count).map { #"{"type":"files","name":"s\#($0)","directory":"out/\#($0)"}"# }
    let text = SamplePipeline.minimal.replacing(
      #"{ "type": "files", "directory": "out" }"#, with: sinks.joined(separator: ","))
    let mistakes = try sample.mistakes(text)
    #expect(
      mistakes.contains {
        $0.contains("/sinks: a pipeline can have at most 32 sinks, found \(count)")
      }
        == !isValid)
    #expect(mistakes.isEmpty == isValid)
  }

  @Test(
    "A FIFO in place of a configuration file is a mistake and does not block the program")
  func pipes() throws {
    let sample = try SamplePipeline()
    #expect(mkfifo("\(sample.base)/pipe", 0o600) == 0)
    let org = "/source/org"
    let places: [(set: String, place: String)] = [
      ("source.org=\"pipe\"", ""), ("source.org.tls={\"ca_file\":\"pipe\"}", "\(org)/tls/ca_file"),
      (
        "source.org.tls={\"certificate_file\":\"pipe\",\"key_file\":\"pipe\"}",
        "\(org)/tls/certificate_file"
      ),
      ("name=${file:pipe}", "/name"),
      (
        "stages=[{\"type\":\"mask\",\"columns\":[\"A\"],\"with\":\"hash\",\"key_file\":\"pipe\"}]",
        "/stages/0/key_file"
      ),
      ("dead_letter={\"payload\":\"sealed\",\"key_file\":\"pipe\"}", "/dead_letter/key_file"),
    ]
    for (set, place) in places {
      let mistakes = try sample.mistakes(sets: [set])
      #expect(
        mistakes.contains { $0.contains(place) && $0.contains("not a regular file") }, "\(mistakes)"
      )
    }
    #expect(throws: ConfigurationError.self) {
      try PipelineConfiguration.load(file: "\(sample.base)/pipe", environment: Environment([:]))
    }
  }

  @Test("An open pipe is read")
  func openPipe() throws {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    #expect(write(ends[1], "text", 4) == 4)
    close(ends[1])
    defer { close(ends[0]) }
    #expect(try TextFile.read("/dev/fd/\(ends[0])") == Array("text".utf8))
  }

  @Test("A route to an object that no topic brings is a mistake that lists the choices")
  func objectsOfRoutes() throws {
    func mistakes(
      _ rule: String, in text: String = SamplePipeline.minimal, sets: [String] = []
    ) throws -> [String] {
      try SamplePipeline().mistakes(
        text,
        sets: sets + [
          "stages=[{\"type\":\"route\",\"routes\":[{\(rule),\"to\":[\"files\"]}],\"default\":[]}]"
        ])
    }
    let found = try mistakes("\"entity\":\"Oportunity\"")
    #expect(found.count == 1)
    #expect(
      found[0].hasSuffix(
        "/stages/0/routes/0: no topic of the pipeline brings 'Oportunity'; its objects: Opportunity"
      ))
    #expect(try mistakes("\"where\":\"_entity == 'Oportunity'\"").count == 1)
    #expect(try mistakes("\"entity\":\"Opportunity\"") == [])
    #expect(try mistakes("\"where\":\"_entity == 'Opportunity' && Amount > 1.0\"") == [])
    // Nobody knows beforehand which objects a channel brings.
    let channel = SamplePipeline.minimal.replacing(
      "/data/OpportunityChangeEvent", with: "/data/ChangeEvents")
    #expect(try mistakes("\"entity\":\"Oportunity\"", in: channel) == [])
    // With --set, some of the file's topics can be chosen.
    let chosen = ["source.topic=/data/AccountChangeEvent"]
    #expect(try mistakes("\"entity\":\"Opportunity\"", sets: chosen) == [])
  }
}
