import ArgumentParser
import Foundation
import Glibc
import JSON
import PubSubSimulator
import Rehearsal

struct RehearseCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rehearse",
    abstract: "Runs a pipeline for days of simulated time with all kinds of incidents.",
    discussion: """
      Runs the real exporter as a crontab would, through silence, outages, token expiry, overlapping runs \
      and restarts of the database; waits are skipped. The file is not changed: org, output directories, \
      state and database URL are replaced. Prints what was seen. A signal ends the exporter's runs and \
      removes the output.
      Exit codes: 0 the last run succeeded and the output is what was published; 1 it is not; 64 command \
      line, or a pipeline that cannot be rehearsed; 129, 130, 143 SIGHUP, SIGINT, SIGTERM.
      """)

  @Argument(help: "The pipeline file.", completion: .file(extensions: ["json"]))
  var pipeline: String
  @Option(help: "Days of simulated time, 1 to 3660.")
  var days = 30
  @Option(help: "Time between runs, such as 5m or 6h; at least 1m.")
  var every = "5m"
  @Option(help: "Equal seeds give equal incidents and events.")
  var seed: UInt64 = 1
  @Option(help: "Approximate number of events published per day.")
  var eventsPerDay = 100
  @Option(help: "A scratch PostgreSQL database, for pipelines with a postgres sink.")
  var databaseURL: String?
  @Option(help: "JSON file of faults, quotas and hidden fields, in addition to the incidents.")
  var faults: String?
  @Option(
    help: "The exporter; default: pubsub-etl-rehearsal in this program's directory.")
  var program: String?
  @Option(help: "Keeps output, state and truth in this new directory; default: they are removed.")
  var work: String?
  @Flag(help: "Prints the report as JSON.")
  var json = false

  func validate() throws {
    guard (1...3660).contains(self.days) else {
      throw ValidationError("--days must be 1 to 3660")
    }
    guard let every = JSONReader.duration(self.every), every >= .seconds(60),
      every <= .seconds(86_400)
    else { throw ValidationError("--every must be a duration from 1m to 1d, such as 5m") }
    guard (1...100_000).contains(self.eventsPerDay) else {
      throw ValidationError("--events-per-day must be 1 to 100000")
    }
  }

  func run() async throws {
    let signals = SignalStream()
    let work = try self.makeWork()
    defer { if self.work == nil { try? FileManager.default.removeItem(atPath: work) } }
    let rehearsal: Rehearsal
    do {
      rehearsal = try Rehearsal(
        Rehearsal.Options(
          file: self.pipeline, days: self.days, every: self.interval, everyText: self.every,
          seed: self.seed, eventsPerDay: self.eventsPerDay, databaseURL: self.databaseURL,
          program: try self.exporter(), work: work,
          script: try self.faults.map { try FaultScript(contentsOf: $0) }))
    } catch {
      FileHandle.standardError.write(Data("pubsub-simulator: \(error)\n".utf8))
      throw ExitCode(64)
    }
    let display = RehearsalDisplay()
    let task = Task { try await rehearsal.run { display.show($0) } }
    let watch = Task { () -> Int32? in
      for await signal in signals.stream where signal != SIGUSR1 {
        task.cancel()
        return signal
      }
      return nil
    }
    let result = await task.result
    display.finish()
    watch.cancel()
    if case .failure(let error) = result, error is CancellationError, let signal = await watch.value
    {
      FileHandle.standardError.write(
        Data("pubsub-simulator: stopped by a signal; the runs have been ended\n".utf8))
      throw ExitCode(128 + signal)
    }
    let account = try result.get()
    FileHandle.standardOutput.write(Data((self.json ? account.json : account.text).utf8))
    guard account.isGood else { throw ExitCode(1) }
  }

  /// Milliseconds.
  private var interval: Int64 {
    // `validate` has refused everything else.
    let seconds = JSONReader.duration(self.every)?.components.seconds ?? 300
    return seconds * 1000
  }

  private func exporter() throws -> String {
    if let program = self.program { return program }
    // This program, even where it was started by a link or by PATH.
    let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let beside = URL(filePath: own).deletingLastPathComponent().appending(
      path: "pubsub-etl-rehearsal"
    ).path
    guard FileManager.default.isExecutableFile(atPath: beside) else {
      throw ValidationError("there is no \(beside); name the exporter with --program")
    }
    return beside
  }

  private func makeWork() throws -> String {
    guard let work = self.work else {
      let path = FileManager.default.temporaryDirectory.appending(
        path: "pubsub-rehearsal-\(String(UInt64.random(in: .min ... .max), radix: 16))"
      ).path
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700])
      return path
    }
    let path = URL(filePath: work).path
    guard !FileManager.default.fileExists(atPath: path) else {
      throw ValidationError("--work: \(path) exists; name a directory that does not")
    }
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    return path
  }
}
