import ArgumentParser
import JSON

/// `pubsub-etl doctor FILE`: what works, what does not, and what to do about it.
struct DoctorCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Checks everything that a run needs, a line each, with the remedy.",
    discussion: """
      Looks at directories, disk space, lock, host names, login, clock, service, topics, schemas, \
      allowances, rights, records and databases. Continues after a failure, unlike 'check --connect'. \
      Safe while a run is in progress. Costs no deliveries; --deep costs at most one for each topic.
      Each line begins with ok, attention (a run can begin), failed (it would end with an error) or \
      skipped (could not be checked); all but ok say what to do.
      Exit codes: 0 a run can begin; 64 command line; 78 mistakes in the file; otherwise the code \
      of the first failure, with which a run would end.

      EXAMPLES:
        pubsub-etl doctor opps.json
        pubsub-etl doctor opps.json --deep    also asks each topic for an event
        pubsub-etl doctor opps.json --json    for programs
      """)

  @OptionGroup var options: PipelineOptions

  @Flag(
    help: "Also subscribe to each topic where the next run would, and wait for the first response.")
  var deep = false

  @Flag(help: "Print JSON.")
  var json = false

  func run() async throws {
    let configuration = try self.options.loadOrExit()
    SignalWatcher.endAtOnce()
    let secrets = configuration.secrets
    let isText = !self.json
    var unwritten: RunFailure?
    let doctor = Doctor(configuration, isDeep: self.deep) { finding in
      guard isText, unwritten == nil else { return }
      do throws(RunFailure) {
        try StandardStream.print(PrintableText(line: finding.text, hiding: secrets))
      } catch {
        unwritten = error
      }
    }
    await doctor.run()
    if let unwritten { throw unwritten }
    let code = doctor.exitCode
    let result =
      self.json
      ? PrintableText(
        json: [
          "exit_code": .integer((code ?? .success).rawValue),
          "findings": .array(doctor.findings.map(\.json)),
        ], hiding: secrets)
      : PrintableText(line: Self.verdict(doctor), hiding: secrets)
    try StandardStream.print(result)
    if let code { throw code.error }
  }

  private static func verdict(_ doctor: Doctor) -> String {
    let failures = doctor.findings.count { $0.state == .failed }
    guard let code = doctor.exitCode else { return "a run can begin" }
    return "\(Phrase.count(failures, "failure")): a run would end with exit code \(code.rawValue)"
  }
}
