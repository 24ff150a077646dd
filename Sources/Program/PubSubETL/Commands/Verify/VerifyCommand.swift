import ArgumentParser
import Bytes
import Clocks
import JSON
import Pipeline

/// `pubsub-etl verify FILE`: whether the copy is equal to the org.
struct VerifyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Compares the copies with the org, and reports 'equal' or the differences.",
    discussion: """
      Compares the set of records, and when each was last changed (LastModifiedDate, or \
      SystemModstamp if the copy lacks that); --sample N also compares the values of N records, \
      --full all values. Only values show a change without a new date. Objects are compared \
      side by side (source.snapshot.concurrency). Records that differ are read again at once, and \
      a last time after source.snapshot.visibility_wait (a minute); only what still differs is \
      drift. Up to ten objects share this wait, and standard error gives the reason for it. \
      Every record of the org is counted once: as equal, different or missing; as too recent to \
      compare; as marked as stale or partial in the copy; or as left out or refused by a stage, \
      with the reason. A record that a filter or route leaves out now, but whose row is still in \
      the copy, is drift. With --sample and --full, views of formulas (<table>_formulas) are \
      compared, for up to 10,000 records. Other formulas, fields that the user may not see and \
      fields that events do not have are named and not compared. Takes no lock and is safe while a run is in progress. \
      A wait for records without progress ends after retry.give_up_after, but not within a minute.
      Tables are compared in the database, in temporary tables: the role needs the privileges of a \
      run and TEMPORARY on the database. Files are compared if records are read into them; their \
      lines are merged by the documented rule, and sorted in unnamed temporary files in the state \
      directory. Every sink that has a copy is compared; the copy must be complete.
      --checksums does not log in: it compares every finished file with the manifest. The verdict is \
      added to the ledger that 'runs' lists.
      Exit codes: 0 equal; 64 command line, no such sink or object, or --repair without tables; 65 \
      drift, or files that are damaged, missing or in no manifest; 69 service or database \
      unavailable, or no progress; 74 a file cannot be read; 75 try again: the copy is not complete \
      yet, or parts of it are known to differ or could not be judged; 75 quota, or --repair while \
      another run holds the database; 77 login, object or database refused; 78 mistakes in the file, tables that do not fit, or \
      stages that remove columns needed to merge changes. With --repair, 65 means that there was \
      drift, and a repair that fails has the exit code of run.

      EXAMPLES:
        pubsub-etl verify sales.json                   which records exist
        pubsub-etl verify sales.json --full            all values
        pubsub-etl verify sales.json --full --repair   and correct tables
        pubsub-etl verify sales.json --checksums       the files, without an org
      """)

  @OptionGroup var options: PipelineOptions

  @Option(
    help: ArgumentHelp(
      "API name of an object, for example Opportunity; default: all. May be given several times.",
      valueName: "object"))
  var entity: [String] = []

  @Option(
    help: ArgumentHelp(
      "Also compare the values of this many records of each object, chosen at random.",
      valueName: "count"))
  var sample: Int?

  @Flag(help: "Compare all values of all records.")
  var full = false

  @Flag(help: "Read differing records of tables again at once, as 'repair' does.")
  var repair = false

  @Flag(
    help:
      "Instead, compare every finished file with its line in the manifest: size, SHA-256, lines.")
  var checksums = false

  @Flag(help: "Print JSON. All members are always present; times are in UTC.")
  var json = false

  private static let maxSample = 1_000_000

  func validate() throws {
    if self.full, self.sample != nil {
      throw ValidationError("--full compares every record: leave out --sample")
    }
    if self.checksums, self.full || self.sample != nil || self.repair || !self.entity.isEmpty {
      throw ValidationError(
        "--checksums compares all files with the manifest: it takes no --entity, --sample, --full or "
          + "--repair")
    }
    if let sample, !(1...Self.maxSample).contains(sample) {
      throw ValidationError("--sample takes a number from 1 to \(Self.maxSample)")
    }
  }

  func run() async throws {
    let configuration =
      try self.checksums ? self.options.loadWithoutLoginOrExit() : self.options.loadOrExit()
    let secrets = configuration.secrets
    SignalWatcher.endAtOnce()
    if self.checksums { return try self.compareFiles(configuration) }
    var request = VerifyRun.Request()
    request.entities = self.entity
    request.repairs = self.repair
    request.depth = self.full ? .full : self.sample.map { .sample($0) } ?? .records
    let beganAt = UTCTime.now()
    let report: VerifyReport
    do {
      report = try await VerifyRun(
        configuration: configuration, request: request,
        progress: VerifyProgress(
          console: ErrorConsole(), secrets: secrets, clock: ProcessClock())
      ).run()
    } catch {
      throw RunFailure(error).reported(hiding: secrets)
    }
    VerifyRecord(report, beganAt: beganAt, endedAt: UTCTime.now()).store(for: configuration)
    let text =
      self.json
      ? PrintableText(json: report.json, hiding: secrets)
      : PrintableText(lines: report.text, hiding: secrets)
    try StandardStream.print(text)
    await IncidentWatch.verified(
      StoredVerdict(report, isComplete: self.entity.isEmpty), of: configuration)
    switch report.verdict {
    case .equal: return
    case .notCompared, .incomplete: throw ExitCode.tryAgain.error
    case .drift:
      if self.repair { try await self.repairNow(configuration) }
      throw ExitCode.data.error
    }
  }

  private func compareFiles(_ configuration: PipelineConfiguration) throws {
    let secrets = configuration.secrets
    let beganAt = UTCTime.now()
    let report: ChecksumReport
    do {
      report = try ChecksumReport.read(configuration)
    } catch {
      throw RunFailure(error).reported(hiding: secrets)
    }
    VerifyRecord(report, beganAt: beganAt, endedAt: UTCTime.now()).store(for: configuration)
    let text =
      self.json
      ? PrintableText(json: report.json, hiding: secrets)
      : PrintableText(lines: report.text, hiding: secrets)
    try StandardStream.print(text)
    if !report.isEqual { throw ExitCode.data.error }
  }

  /// Runs the pipeline, which reads again what was noted.
  private func repairNow(_ configuration: PipelineConfiguration) async throws {
    var configuration = configuration
    configuration.repair.mode = .auto
    configuration.run.until = .caughtUp
    configuration.run.mustNotSkip()
    let code = await RunCommand.execute(
      configuration, try RunOptions.parse([]), purpose: .export, clock: ProcessClock())
    if code != .success { throw code.error }
  }
}
