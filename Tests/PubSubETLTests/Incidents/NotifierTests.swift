import Bytes
import Clocks
import Glibc
import HTTPClient
import JSON
import TestSupport
import Testing

@testable import PubSubETL

@Suite("Calls of notify") struct NotifierTests {
  private let sample: SamplePipeline
  private let peer: PythonServer

  init() throws {
    self.sample = try SamplePipeline()
    self.peer = try PythonServer("http_peer.py")
  }

  /// - Parameter notify: the members of `notify`.
  private func notifier(_ notify: String) throws -> Notifier {
    let configuration = try self.sample.load(
      SamplePipeline.minimal.replacing(
        #""version": 1,"#, with: #""version": 1, "notify": { \#(notify) },"#),
      environment: ["TOKEN": "t0ken-1234567"])
    return Notifier(
      configuration: configuration.notify, secrets: configuration.secrets, clock: ProcessClock())
  }

  private func command(_ script: String) throws -> Notifier {
    try self.sample.write(script, to: "notify.sh")
    return try self.notifier(#""command": ["sh", "\#(self.sample.base)/notify.sh"]"#)
  }

  private func url(_ path: String) -> String { "http://127.0.0.1:\(self.peer.port)\(path)" }

  private static func notice(_ message: String = "login refused") -> Notice {
    var incident = Incident(
      kind: .failing,
      finding: Incident.Finding(message: message, reason: "login", exitCode: 77), since: 1_000)
    incident.attempts = 1
    return Notice(
      event: .begin(.failing), incident: incident, pipeline: "opps", file: "/etc/opps.json",
      host: "etl1", time: 61_000)
  }

  private func read(_ name: String) throws -> String {
    String(decoding: try TextFile.read("\(self.sample.base)/\(name)"), as: UTF8.self)
  }

  // MARK: Commands

  @Test("A command gets JSON on standard input and a few variables, and none with a secret")
  func command() async throws {
    var notifier = try self.command(
      "cd \(self.sample.base)\ncat >input\nenv >variables\necho told\n")
    notifier.environment = [
      "PATH=/usr/bin:/bin", "CLIENT=s3cret", "PGPASSWORD=postgres", "LC_ALL=C", "LANG=C",
    ]
    try await notifier.call(Self.notice(), within: .seconds(60))
    let input = try JSONValue(parsing: Array(self.read("input").utf8))
    #expect(input["event"] == "begin")
    #expect(input["incident"] == "failing")
    #expect(input["id"] == "etl1/opps/failing/1000/begin")
    #expect(input["text"] == "opps fails: login refused")
    #expect(input["since"] == "1970-01-01T00:00:01.000Z")
    #expect(input["until"] == JSONValue(.null))
    #expect(input["exit_code"] == 77)
    #expect(input["attempt"] == 1)
    let variables = Set(try self.read("variables").split(separator: "\n").map(String.init))
    #expect(
      variables.isSuperset(of: [
        "LC_ALL=C", "LANG=C", "PUBSUB_ETL_EVENT=begin", "PUBSUB_ETL_INCIDENT=failing",
        "PUBSUB_ETL_PIPELINE=opps", "PUBSUB_ETL_TEXT=opps fails: login refused",
      ]))
    #expect(!variables.contains { $0.hasPrefix("CLIENT=") || $0.hasPrefix("PGPASSWORD=") })
  }

  @Test("Arguments reach the program as they are, without a shell")
  func arguments() async throws {
    try self.sample.write("printf '%s|' \"$@\" >\(self.sample.base)/words\n", to: "words.sh")
    let notifier = try self.notifier(
      #""command": ["sh", "\#(self.sample.base)/words.sh", "a b", "$HOME", "; exit 1", "*"]"#)
    try await notifier.call(Self.notice(), within: .seconds(60))
    #expect(try self.read("words") == "a b|$HOME|; exit 1|*|")
  }

  @Test(
    "A command that fails is a failure with its reason",
    arguments: [
      ("exit 3", "sh ended with exit code 3"), ("kill -9 $$", "a signal ended sh"),
    ])
  func failing(script: String, reason: String) async throws {
    let notifier = try self.command(script)
    let failure = try await #require(throws: Notifier.Failure.self) {
      try await notifier.call(Self.notice(), within: .seconds(60))
    }
    #expect(failure.description == reason)
  }

  @Test("A program that does not exist is a failure")
  func missing() async throws {
    let notifier = try self.notifier(#""command": ["/nowhere/page"]"#)
    let failure = try await #require(throws: Notifier.Failure.self) {
      try await notifier.call(Self.notice(), within: .seconds(60))
    }
    #expect(failure.description == "/nowhere/page did not start: No such file or directory")
  }

  @Test("A command that never ends is killed with its children")
  func endless() async throws {
    let notifier = try self.command(
      "cd \(self.sample.base)\nsleep 1000 &\necho $! >child\nsleep 1000\n")
    let failure = try await #require(throws: Notifier.Failure.self) {
      // Long enough for a shell to write a line, also on a busy machine.
      try await notifier.call(Self.notice(), within: .seconds(3))
    }
    #expect(failure.description == "sh did not end in time")
    let line = try self.read("child").split(separator: "\n").first ?? ""
    let child = try #require(Int32(line))
    self.expectEnd(of: child)
  }

  @Test("A command that leaves its process group gets no more time than others")
  func ownGroup() async throws {
    let notifier = try self.notifier(#""command": ["setsid", "sleep", "1000"]"#)
    let failure = try await #require(throws: Notifier.Failure.self) {
      try await notifier.call(Self.notice(), within: .milliseconds(500))
    }
    #expect(failure.description == "setsid did not end in time")
  }

  @Test(
    "What a command leaves behind is killed, whatever it writes is discarded, and its input may stay unread"
  )
  func untidy() async throws {
    let notifier = try self.command(
      "cd \(self.sample.base)\nsleep 1000 &\necho $! >child\nexec <&-\nhead -c 5000000 /dev/zero\nexit 0\n"
    )
    try await notifier.call(
      Self.notice(String(repeating: "x", count: 3000)), within: .seconds(60))
    let line = try self.read("child").split(separator: "\n").first ?? ""
    let child = try #require(Int32(line))
    self.expectEnd(of: child)
  }

  /// A process that was killed is gone, or waits for whoever adopts it.
  private func expectEnd(of process: pid_t) {
    while kill(process, 0) == 0 {
      guard
        let text = try? TextFile.read("/proc/\(process)/stat"),
        let state = String(decoding: text, as: UTF8.self).split(separator: ") ").last?.first,
        state != "Z", state != "X"
      else { return }
      usleep(1000)
    }
  }

  // MARK: Webhooks

  @Test("A webhook gets the same JSON, with its header")
  func webhook() async throws {
    let notifier = try self.notifier(
      #""webhook": "\#(self.url("/keep"))", "header": "X-Key", "secret": "Bearer ${TOKEN}""#)
    try await notifier.call(Self.notice("a\nb\u{1B}[31m\u{202E}s3cret"), within: .seconds(60))
    let kept = try await self.kept()
    #expect(kept.count == 1)
    #expect(kept.first?["method"] == "POST")
    #expect(kept.first?["headers"]?["x-key"] == "Bearer t0ken-1234567")
    #expect(kept.first?["headers"]?["content-type"] == "application/json")
    // The peer returns each byte as a character.
    let characters = try #require(kept.first?["body"]?.string).unicodeScalars
    let bytes = characters.map { UInt8(truncatingIfNeeded: $0.value) }
    let text = String(decoding: bytes, as: UTF8.self)
    let body = try JSONValue(parsing: bytes)
    #expect(body["message"] == "a\\nb\u{FFFD}[31m\u{FFFD}<redacted>")
    #expect(!text.contains("s3cret"))
    #expect(!text.contains("t0ken"))
    #expect(text.filter { $0 == "\n" }.count == 1)
  }

  private func kept() async throws -> [JSONValue] {
    let response = try await HTTPClient().send(HTTPRequest(.get, self.url("/kept")))
    return try JSONValue(parsing: response.body)["requests"]?.array ?? []
  }

  @Test(
    "An answer that is no success is a failure",
    arguments: [
      ("/status/500", "the server answered with HTTP 500"),
      ("/status/302", "the server answered with HTTP 302, and redirects are not followed"),
    ])
  func statuses(path: String, reason: String) async throws {
    let notifier = try self.notifier(#""webhook": "\#(self.url(path))""#)
    let failure = try await #require(throws: Notifier.Failure.self) {
      try await notifier.call(Self.notice(), within: .seconds(60))
    }
    #expect(failure.description == reason)
  }

  @Test("A server that never answers is a failure after the time")
  func hang() async throws {
    let notifier = try self.notifier(#""webhook": "\#(self.url("/hang"))""#)
    let failure = try await #require(throws: Notifier.Failure.self) {
      try await notifier.call(Self.notice(), within: .milliseconds(300))
    }
    #expect(failure.description == "the server did not answer in time")
  }

  @Test(
    "A body without end is not read, and a status of success is enough",
    arguments: ["/pattern/1000000000", "/stall"])
  func endlessBody(path: String) async throws {
    let notifier = try self.notifier(#""webhook": "\#(self.url(path))""#)
    try await notifier.call(Self.notice(), within: .seconds(60))
  }

  @Test("What does not speak HTTP, and a port without a server, are failures")
  func noServer() async throws {
    for url in [self.url("/garbage"), "http://127.0.0.1:1/x"] {
      let notifier = try self.notifier(#""webhook": "\#(url)""#)
      await #expect(throws: Notifier.Failure.self) {
        try await notifier.call(Self.notice(), within: .seconds(60))
      }
    }
  }
}
