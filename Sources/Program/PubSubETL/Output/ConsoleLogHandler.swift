internal import Bytes
import Clocks
internal import Glibc
import JSON
import Logging
import Pipeline

/// The form of a log line.
enum LogFormat: String, CaseIterable, Sendable {
  /// `2026-02-17T04:03:15.000Z warning: reconnecting (attempt=2, topic=/data/…)`
  case text
  /// One JSON object: time, level, message, then the metadata.
  case json
  /// `<4>reconnecting (attempt=2, topic=/data/…)`: the priority in front, which journald takes off
  /// (sd-daemon(3)); it adds the time.
  case journald

  /// The default format: `journald` if standard error is the journal, which systemd
  /// tells by `JOURNAL_STREAM`, the device and inode of the stream (systemd.exec(5)).
  static func standard(_ environment: Environment = .process) -> LogFormat {
    var status = stat()
    guard let stream = environment.variable("JOURNAL_STREAM"), fstat(STDERR_FILENO, &status) == 0
    else {
      return .text
    }
    return stream == "\(status.st_dev):\(status.st_ino)" ? .journald : .text
  }
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
    now: @escaping @Sendable () -> Int64
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
    self.console.write(self.line("\(event.message)", level: event.level, metadata))
  }

  /// A message in the format of the log.
  func line(
    _ message: String, level: Logger.Level, _ metadata: Logger.Metadata
  ) -> PrintableText {
    let pairs = metadata.sorted { $0.key < $1.key }
    let time = UTCTime.timestamp(milliseconds: self.now())
    switch self.format {
    case .text, .journald:
      let start =
        self.format == .text ? "\(time) \(level): " : "<\(level.journalPriority)>"
      var line = "\(start)\(message)"
      if !pairs.isEmpty {
        line += " (\(pairs.map { "\($0)=\($1)" }.joined(separator: ", ")))"
      }
      return PrintableText(line: line, hiding: self.secrets)
    case .json:
      var members = [
        JSONMember("time", .string(time)), JSONMember("level", .string(level.rawValue)),
        JSONMember("message", .string(PrintableText.logged(message, hiding: self.secrets))),
      ]
      for (key, value) in pairs where !members.contains(where: { $0.name == key }) {
        members.append(
          JSONMember(
            key,
            value.integer.map { .integer($0) }
              ?? .string(PrintableText.logged("\(value)", hiding: self.secrets))))
      }
      return PrintableText(json: JSONValue(.object(members)), .compact, hiding: self.secrets)
    }
  }
}

extension Logger.Level {
  /// The priorities of syslog(3).
  fileprivate var journalPriority: Int32 {
    switch self {
    case .trace, .debug: LOG_DEBUG
    case .info: LOG_INFO
    case .notice: LOG_NOTICE
    case .warning: LOG_WARNING
    case .error: LOG_ERR
    case .critical: LOG_CRIT
    }
  }
}

extension Logger.MetadataValue {
  /// A number, which JSON lines show as one.
  static func number(_ value: some FixedWidthInteger & Sendable) -> Self {
    .stringConvertible(Int64(clamping: value))
  }

  fileprivate var integer: Int64? {
    guard case .stringConvertible(let value) = self else { return nil }
    return value as? Int64
  }
}

extension Logger {
  /// The log of the program. No global state: whoever logs is given a logger.
  static func console(
    _ console: ErrorConsole, level: Logger.Level, format: LogFormat, hiding secrets: SecretMask,
    clock: ProcessClock
  ) -> Logger {
    let handler = ConsoleLogHandler(
      level: level, format: format, console: console, secrets: secrets,
      now: { clock.wallTime })
    MessageWriter.standardError.reportDropped { count in
      handler.line(MessageWriter.sentence(dropped: count), level: .warning, [:])
    }
    return Logger(label: "pubsub-etl") { _ in handler }
  }
}
