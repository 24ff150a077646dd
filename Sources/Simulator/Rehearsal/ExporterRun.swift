internal import Foundation
internal import Glibc
internal import JSON
internal import SimulatedOrg

/// One start of the real program by the rehearsed crontab.
final class ExporterRun {
  /// A run that takes longer, in real time, is stuck.
  private static let patience = Duration.seconds(300)

  let number: Int
  /// Epoch milliseconds of the rehearsal.
  let startedAt: Int64
  private let process = Process()
  private let errorPath: String
  private let reportPath: String
  private let begun = ContinuousClock.now

  struct Result {
    var exitCode: Int32
    /// What it said on standard error.
    var errors: [String]
    var reason: String?
    var delivered = 0
    var exported = 0
    /// Delivered again on channels, because the events before shared their replay ID.
    var redelivered = 0
    var rowsLeftOut = 0
    /// Rows of events, by sink.
    var rows: [String: Int] = [:]
  }

  /// - Parameters:
  ///   - arguments: of `pubsub-etl`, without the report.
  ///   - work: directory for report and standard error.
  init(
    number: Int, program: String, arguments: [String], environment: [String: String],
    work: String, at now: Int64
  ) throws {
    self.number = number
    self.startedAt = now
    self.errorPath = "\(work)/\(number).stderr"
    self.reportPath = "\(work)/\(number).report.json"
    guard FileManager.default.createFile(atPath: self.errorPath, contents: nil),
      let errors = FileHandle(forWritingAtPath: self.errorPath)
    else { throw SimulatorError(.system, "\(self.errorPath) cannot be written") }
    self.process.executableURL = URL(filePath: program)
    self.process.arguments = arguments + ["--report", self.reportPath]
    self.process.environment = environment
    self.process.standardInput = FileHandle.nullDevice
    self.process.standardOutput = FileHandle.nullDevice
    self.process.standardError = errors
    try self.process.run()
    try errors.close()
  }

  var processID: Int32 { self.process.processIdentifier }
  var isRunning: Bool { self.process.isRunning }

  func kill() { Glibc.kill(self.processID, SIGKILL) }

  /// Returns after its end.
  func wait() {
    while self.process.isRunning { usleep(1000) }
  }

  /// - Throws: when it has been running for minutes that nobody skipped.
  func checkPatience() throws {
    guard ContinuousClock.now - self.begun > Self.patience else { return }
    throw SimulatorError(
      .system,
      "run \(self.number) has not ended within \(Self.patience.components.seconds) s; \(self.errorPath)"
    )
  }

  /// After its end; removes its files.
  func result() -> Result {
    let text = (try? String(contentsOfFile: self.errorPath, encoding: .utf8)) ?? ""
    var result = Result(
      exitCode: self.process.terminationStatus,
      errors: text.split(separator: "\n").map(String.init))
    if let data = FileManager.default.contents(atPath: self.reportPath),
      let report = try? JSONValue(parsing: [UInt8](data))
    {
      result.reason = report["reason"]?.string
      for topic in report["topics"]?.array ?? [] {
        result.delivered += Int(topic["delivered"]?.integer ?? 0)
        result.exported += Int(topic["exported"]?.integer ?? 0)
        result.redelivered += Int(topic["redelivered"]?.integer ?? 0)
        result.rowsLeftOut += Int(topic["rows_left_out"]?.integer ?? 0)
      }
      for sink in report["sinks"]?.array ?? [] {
        guard let name = sink["name"]?.string else { continue }
        result.rows[name, default: 0] += Int(sink["rows"]?.integer ?? 0)
      }
    }
    try? FileManager.default.removeItem(atPath: self.errorPath)
    try? FileManager.default.removeItem(atPath: self.reportPath)
    return result
  }
}
