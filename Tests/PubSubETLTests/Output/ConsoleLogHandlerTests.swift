import JSON
import Logging
import Testing

@testable import PubSubETL

/// Collects what a console writes.
final class ConsoleOutput: @unchecked Sendable {
  // Guard: the console calls one writer at a time, and tests read after it has returned.
  var text = ""

  func console() -> ErrorConsole { ErrorConsole { self.text += $0 } }
}

@Suite("Log lines")
struct ConsoleLogHandlerTests {
  private func logger(
    _ output: ConsoleOutput, _ format: LogFormat, level: Logger.Level = .warning
  ) -> Logger {
    Logger(label: "test") { _ in
      ConsoleLogHandler(
        level: level, format: format, console: output.console(), now: { 1_771_300_995_000 })
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

  @Test("A peer's control characters do not reach the terminal")
  func control() {
    let output = ConsoleOutput()
    self.logger(output, .text).warning("a\u{1B}[2Jb\nc", metadata: ["k": "\r\u{9B}x"])
    #expect(
      output.text
        == "2026-02-17T04:03:15.000Z warning: a\u{FFFD}[2Jb\\nc (k=\u{FFFD}\u{FFFD}x)\n")
  }

  @Test("A log line stands above the progress line")
  func aboveProgress() {
    let output = ConsoleOutput()
    let console = output.console()
    console.showProgress("1 events")
    console.showProgress("1 events")
    console.writeLine("log")
    console.showProgress("")
    console.writeLine("end")
    #expect(output.text == "\r\u{1B}[K1 events\r\u{1B}[Klog\n1 events\r\u{1B}[Kend\n")
  }
}
