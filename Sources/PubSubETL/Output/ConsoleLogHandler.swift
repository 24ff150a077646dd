internal import Bytes
import JSON
import Logging
import Pipeline

/// The form of a log line.
enum LogFormat: String, CaseIterable, Sendable {
  /// `2026-02-17T04:03:15.000Z warning: reconnecting (attempt=2, topic=/data/…)`
  case text
  /// One JSON object: time, level, message, then the metadata.
  case json
}

/// Writes log lines to standard error.
struct ConsoleLogHandler: LogHandler {
  var logLevel: Logger.Level
  var metadata: Logger.Metadata = [:]
  var metadataProvider: Logger.MetadataProvider?
  private let format: LogFormat
  private let console: ErrorConsole
  private let secrets: SecretMask
  /// Milliseconds since 1970; replaced in tests.
  private let now: @Sendable () -> Int64

  init(
    level: Logger.Level, format: LogFormat, console: ErrorConsole, secrets: SecretMask,
    now: @escaping @Sendable () -> Int64 = { UTCTime.now() }
  ) {
    self.logLevel = level
    self.format = format
    self.console = console
    self.secrets = secrets
    self.now = now
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { self.metadata[key] }
    set { self.metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    var metadata = self.metadata
    if let provider = self.metadataProvider {
      metadata.merge(provider.get()) { _, new in new }
    }
    metadata.merge(event.metadata ?? [:]) { _, new in new }
    let pairs = metadata.sorted { $0.key < $1.key }.map { ($0.key, "\($0.value)") }
    let time = UTCTime.timestamp(milliseconds: self.now())
    switch self.format {
    case .text:
      var line = "\(time) \(event.level): \(event.message)"
      if !pairs.isEmpty {
        line += " (\(pairs.map { "\($0)=\($1)" }.joined(separator: ", ")))"
      }
      self.console.write(PrintableText(line: line, hiding: self.secrets))
    case .json:
      var members = [
        JSONMember("time", .string(time)), JSONMember("level", .string(event.level.rawValue)),
        JSONMember("message", .string("\(event.message)")),
      ]
      for (key, value) in pairs where !members.contains(where: { $0.name == key }) {
        members.append(JSONMember(key, .string(value)))
      }
      self.console.write(
        PrintableText(json: JSONValue(.object(members)), .compact, hiding: self.secrets))
    }
  }
}

extension Logger {
  /// The log of the program. No global state: whoever logs is given a logger.
  static func console(
    _ console: ErrorConsole, level: Logger.Level, format: LogFormat, hiding secrets: SecretMask
  ) -> Logger {
    Logger(label: "pubsub-etl") { _ in
      ConsoleLogHandler(level: level, format: format, console: console, secrets: secrets)
    }
  }
}
