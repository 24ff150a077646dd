import EventLoop
import Glibc
import JSON
import Logging
import Testing

@testable import PubSubETL

/// Collects what a console writes.
final class ConsoleOutput: @unchecked Sendable {
  // Guard: the console calls one writer at a time, and tests read after it has returned.
  var text = ""

  func console() -> ErrorConsole {
    ErrorConsole { text, _ in
      self.text += text.text
      return true
    }
  }
}

@Suite("Log lines")
struct ConsoleLogHandlerTests {
  private func logger(
    _ output: ConsoleOutput, _ format: LogFormat, level: Logger.Level = .warning,
    secrets: SecretMask = SecretMask()
  ) -> Logger {
    Logger(label: "test") { _ in
      ConsoleLogHandler(
        level: level, format: format, console: output.console(), secrets: secrets,
        now: { 1_771_300_995_000 })
    }
  }

  @Test("Text lines have time, level, message and sorted metadata")
  func text() {
    let output = ConsoleOutput()
    var logger = self.logger(output, .text)
    logger[metadataKey: "topic"] = "/data/A"
    logger.warning("reconnecting", metadata: ["attempt": "2"])
    logger.info("not shown")
    #expect(
      output.text
        == "2026-02-17T04:03:15.000Z warning: reconnecting (attempt=2, topic=/data/A)\n")
  }

  @Test("JSON lines are objects that metadata cannot overwrite")
  func json() throws {
    let output = ConsoleOutput()
    self.logger(output, .json).error("a\n\"b\"", metadata: ["level": "fake", "n": "1"])
    #expect(output.text.hasSuffix("\n"))
    #expect(
      try JSONValue(parsing: output.text) == [
        "time": "2026-02-17T04:03:15.000Z", "level": "error", "message": "a\n\"b\"", "n": "1",
      ])
  }

  @Test("Numbers in JSON lines are numbers")
  func numbers() throws {
    let output = ConsoleOutput()
    self.logger(output, .json).error("committed", metadata: ["events": .number(7_512), "id": "7"])
    let line = try JSONValue(parsing: output.text)
    #expect(line["events"] == 7512)
    #expect(line["id"] == "7")
  }

  @Test(
    "Lines for the journal have the syslog priority and no time",
    arguments: [
      (Logger.Level.debug, "<7>"), (.info, "<6>"), (.notice, "<5>"), (.warning, "<4>"),
      (.error, "<3>"), (.critical, "<2>"),
    ])
  func journal(level: Logger.Level, priority: String) {
    let output = ConsoleOutput()
    self.logger(output, .journald, level: .trace)
      .log(level: level, "a\nb", metadata: ["topic": "/data/A"])
    #expect(output.text == "\(priority)a\\nb (topic=/data/A)\n")
  }

  @Test("The journal is recognized only by device and inode of standard error")
  func journalStream() {
    var status = stat()
    #expect(fstat(STDERR_FILENO, &status) == 0)
    let stream = "\(status.st_dev):\(status.st_ino)"
    #expect(LogFormat.standard(Environment(["JOURNAL_STREAM": stream])) == .journald)
    #expect(LogFormat.standard(Environment(["JOURNAL_STREAM": "\(stream)1"])) == .text)
    #expect(LogFormat.standard(Environment([:])) == .text)
  }

  @Test("A peer's control characters do not reach the terminal")
  func control() {
    let output = ConsoleOutput()
    self.logger(output, .text).warning("a\u{1B}[2Jb\nc", metadata: ["k": "\r\u{9B}x"])
    #expect(
      output.text
        == "2026-02-17T04:03:15.000Z warning: a\u{FFFD}[2Jb\\nc (k=\u{FFFD}\u{FFFD}x)\n")
  }

  @Test("Secrets reach neither message nor metadata of a log line", arguments: LogFormat.allCases)
  func secrets(format: LogFormat) {
    let output = ConsoleOutput()
    let secrets = SecretMask()
    secrets.add("c4n/ry")
    self.logger(output, format, secrets: secrets)
      .warning("sent c4n/ry", metadata: ["body": "x=c4n%2Fry&y"])
    #expect(!output.text.contains("c4n"))
    #expect(output.text.contains("sent <redacted>"))
    #expect(output.text.contains("x=<redacted>&y"))
  }

  @Test(
    "A very long value is shortened, and a secret at the cut stays hidden",
    arguments: LogFormat.allCases)
  func megabytes(format: LogFormat) throws {
    let output = ConsoleOutput()
    let secrets = SecretMask()
    let secret = String(repeating: "c4nary", count: 100)
    secrets.add(secret)
    let logger = self.logger(output, format, secrets: secrets)
    // Control characters are replaced one by one, and would take minutes if that were quadratic.
    logger.warning("m", metadata: ["id": "\(String(repeating: "\u{1}", count: 3_000_000))"])
    // All secrets: what is left of them is short, and the last one is divided by the cut.
    logger.warning("m", metadata: ["id": "\(String(repeating: secret, count: 5000))"])
    #expect(output.text.utf8.count < 60_000)
    #expect(output.text.contains("more characters)"))
    #expect(!output.text.contains("c4n"))
  }

  @Test("A log line appears above the progress line")
  func aboveProgress() {
    let output = ConsoleOutput()
    let console = output.console()
    let secrets = SecretMask()
    let progress = PrintableText.unended(["1 event"], hiding: secrets)
    console.showProgress(progress)
    console.showProgress(progress)
    console.write(PrintableText(line: "log", hiding: secrets))
    console.showProgress(nil)
    console.write(PrintableText(line: "end", hiding: secrets))
    #expect(
      output.text == "\r\u{1B}[K1 event\r\u{1B}[Klog\n1 event\r\u{1B}[Kend\n")
  }

  @Test("Several lines of progress are erased before others are drawn")
  func severalLines() {
    let output = ConsoleOutput()
    let console = output.console()
    let secrets = SecretMask()
    console.showProgress(.unended(["one", "two\u{1B}", "three"], hiding: secrets))
    console.showProgress(.unended(["four"], hiding: secrets))
    let up = "\u{1B}[A\u{1B}[K"
    #expect(
      output.text
        == "\r\u{1B}[Kone\ntwo\u{FFFD}\nthree\r\u{1B}[K\(up)\(up)four")
  }

  @Test("Progress that was dropped is not erased")
  func droppedProgress() {
    let texts = Lock<[String]>([])
    let console = ErrorConsole { text, isPassing in
      texts.withLock { $0.append(text.text) }
      return !isPassing
    }
    let secrets = SecretMask()
    console.showProgress(.unended(["one", "two"], hiding: secrets))
    console.write(PrintableText(line: "log", hiding: secrets))
    #expect(texts.withLock { $0.last } == "log\n")
  }
}
