import Testing

@testable import PubSubETL

@Suite("Configuration of notify") struct NotifyConfigurationTests {
  private static func pipeline(_ notify: String) -> String {
    SamplePipeline.minimal.replacing(
      #""version": 1,"#, with: #""version": 1, "notify": { \#(notify) },"#)
  }

  @Test("Without the key nobody is called, and only failures are incidents")
  func none() throws {
    let notify = try SamplePipeline().load().notify
    #expect(!notify.calls)
    #expect(Incident.Kind.allCases.filter(notify.watches) == [.failing])
  }

  @Test("A command is a program in PATH or a file, with its arguments")
  func command() throws {
    let sample = try SamplePipeline()
    let bare = try sample.load(
      Self.pipeline(#""command": ["page", "--team", "${TEAM}"]"#), environment: ["TEAM": "a b"])
    #expect(bare.notify.command == ["page", "--team", "a b"])
    let file = try sample.load(Self.pipeline(#""command": ["./page"]"#))
    #expect(file.notify.command == ["\(sample.base)/page"])
  }

  @Test("A webhook has a secret header, and its path is hidden from messages")
  func webhook() throws {
    let configuration = try SamplePipeline().load(
      Self.pipeline(
        #""webhook": "${HOOK}", "header": "X-Key", "secret": "Bearer ${TOKEN}", "lag": "1h""#),
      environment: [
        "HOOK": "https://hooks.example.com/T0/abcdefghijklmnop", "TOKEN": "t0ken-1234567",
      ])
    #expect(configuration.notify.webhook == "https://hooks.example.com/T0/abcdefghijklmnop")
    #expect(configuration.notify.header == "X-Key")
    #expect(configuration.notify.secret?.value == "Bearer t0ken-1234567")
    #expect(configuration.notify.lag == .seconds(3600))
    let text = configuration.secrets.redacted(
      "POST https://hooks.example.com/T0/abcdefghijklmnop: token t0ken-1234567 is wrong")
    #expect(text == "POST https://hooks.example.com/<redacted>: token <redacted> is wrong")
  }

  @Test(
    "What cannot be called is a mistake",
    arguments: [
      (#""command": []"#, "/notify/command: expected a program"),
      (#""command": [""]"#, "/notify/command: expected a program"),
      (#""command": "page""#, "/notify/command: expected an array"),
      (#""command": ["a\u0000b"]"#, "/notify/command: an argument cannot contain U+0000"),
      (#""command": ["~/page"]"#, "/notify/command: only a shell replaces"),
      (
        #""webhook": "ftp://a.example""#,
        "/notify/webhook: expected a URL that begins with https://"
      ),
      (#""webhook": "http://a.example/x""#, "/notify/webhook: expected a URL that begins with"),
      (#""webhook": "https://u:p@a.example""#, "/notify/webhook: expected a URL that begins with"),
      (#""webhook": "https://a.example", "command": ["x"]"#, "/notify/webhook: either webhook or"),
      (#""secret": "x""#, "/notify/secret: belongs to webhook"),
      (
        #""webhook": "https://a.example", "secret": "a\nb""#,
        "/notify/secret: a header cannot contain"
      ),
      (#""webhook": "https://a.example", "header": "A: b""#, "/notify/header: expected the name"),
      (#""lag": "1m""#, "/notify/lag: must be at least 5m"),
      (#""position_age": "80h""#, "/notify/position_age: must be at most 3d"),
      (#""dead_letters": -1"#, "/notify/dead_letters: expected an integer"),
    ])
  func mistakes(notify: String, message: String) throws {
    let mistakes = try SamplePipeline().mistakes(Self.pipeline(notify))
    #expect(mistakes.count == 1)
    #expect(mistakes.first?.contains(message) == true, "\(mistakes)")
  }
}
