internal import Foundation
internal import Glibc
internal import JSON
package import PubSubSimulator
internal import SimulatedOrg

/// Runs a user's pipeline as a crontab would, against a simulator whose clock skips the waits.
package struct Rehearsal: Sendable {
  package struct Options: Sendable {
    /// The pipeline file.
    package var file: String
    package var days: Int
    /// Milliseconds between runs, and how the user wrote them.
    package var every: Int64
    package var everyText: String
    package var seed: UInt64
    package var eventsPerDay: Int
    /// Nil: a pipeline with a postgres sink is refused.
    package var databaseURL: String?
    /// The exporter.
    package var program: String
    /// Absolute path of an empty directory.
    package var work: String
    /// Faults in addition to the incidents.
    package var script: FaultScript?

    package init(
      file: String, days: Int, every: Int64, everyText: String, seed: UInt64, eventsPerDay: Int,
      databaseURL: String?, program: String, work: String, script: FaultScript?
    ) {
      self.file = file
      self.days = days
      self.every = every
      self.everyText = everyText
      self.seed = seed
      self.eventsPerDay = eventsPerDay
      self.databaseURL = databaseURL
      self.program = program
      self.work = work
      self.script = script
    }
  }

  /// Sessions of an org last so long.
  private static let tokenLifetime: Int64 = 2 * 3_600_000
  /// What the service keeps its promise of 270 s with.
  private static let keepaliveInterval: Int64 = 180_000
  /// Runs behind the end that may make up for what came last.
  private static let mostLastRuns = 5

  let options: Options
  let pipeline: RehearsedPipeline
  let plan: RehearsalPlan
  private var truth: String { "\(self.options.work)/truth.ndjson" }

  /// - Throws: `SimulatorError` when the pipeline cannot be rehearsed.
  package init(_ options: Options) throws {
    self.options = options
    self.pipeline = try RehearsedPipeline(
      contentsOf: options.file, work: options.work, databaseURL: options.databaseURL)
    self.plan = RehearsalPlan(
      days: options.days, every: options.every, seed: options.seed,
      eventsPerDay: options.eventsPerDay, hasDatabase: self.pipeline.hasPostgres)
  }

  /// How far a rehearsal has come.
  package struct Progress: Sendable, Equatable {
    /// Simulated time since the beginning, in milliseconds.
    package var elapsed: Int64
    /// The simulated time of the whole rehearsal, in milliseconds.
    package var length: Int64
    /// Runs that have ended.
    package var runs: Int
  }

  /// Ends early when its task is cancelled. However it ends, no process of it is left.
  ///
  /// - Parameter onProgress: called often.
  package func run(
    onProgress: @escaping @Sendable (Progress) -> Void = { _ in }
  ) async throws -> RehearsalAccount {
    try FileManager.default.createDirectory(
      atPath: "\(self.options.work)/runs", withIntermediateDirectories: true)
    let path = "\(self.options.work)/pipeline.json"
    try Data(self.pipeline.document.text().utf8).write(to: URL(filePath: path))
    let server = try SimulatorServer(configuration: self.simulator(), servesClock: true) { error in
      FileHandle.standardError.write(Data("pubsub-simulator: \(error)\n".utf8))
      Glibc.exit(74)
    }
    let clock = try server.makeClock()
    let addresses = try await server.start()
    if let script = self.options.script { try await server.add(script.faults) }
    var environment = ProcessInfo.processInfo.environment
    for (name, value) in server.environment(addresses, clock: clock.address).variables {
      environment[name] = value
    }
    if let url = self.options.databaseURL { environment["DATABASE_URL"] = url }
    var arguments = ["run", path, "--root", self.root]
    if self.pipeline.runsForever { arguments.append("--until-caught-up") }
    var crontab = Crontab(
      rehearsal: self, server: server, clock: clock, arguments: arguments,
      environment: environment)
    do {
      try await crontab.run(lastRuns: Self.mostLastRuns, onProgress: onProgress)
    } catch {
      crontab.killAll()
      await server.stop()
      throw error
    }
    var account = crontab.account
    let stats = try JSONValue(parsing: try await server.statsJSON())
    // One token was issued for the environment, without a login.
    account.logins = Int(stats["logins"]?.integer ?? 1) - 1
    account.apiCalls = Int(stats["api_calls"]?.integer ?? 0)
    account.skips = clock.skips
    await server.stop()
    try self.compare(&account)
    return account
  }

  /// The base of relative paths in the file.
  private var root: String {
    URL(filePath: self.options.file).deletingLastPathComponent().path
  }

  private func simulator() -> SimulatorConfiguration {
    var configuration = SimulatorConfiguration()
    configuration.org.seed = self.options.seed
    configuration.org.topics = self.pipeline.topics
    configuration.org.truthPath = self.truth
    configuration.org.stateDirectory = "\(self.options.work)/simulator"
    configuration.org.tokenLifetime = Self.tokenLifetime
    configuration.org.keepaliveInterval = Self.keepaliveInterval
    if self.pipeline.readsRecords { configuration.org.existing = 50 }
    self.options.script?.set(&configuration)
    return configuration
  }

  private func compare(_ account: inout RehearsalAccount) throws {
    if let route = self.pipeline.route {
      try self.compare(&account, route)
    } else {
      try self.compareWholes(&account)
    }
    if account.comparisons.isEmpty {
      account.notes.append(
        "the output was not compared: only files and history tables are, and this pipeline has none"
      )
    }
    if self.pipeline.runsForever {
      account.notes.append("run.until is forever; the runs had --until-caught-up")
    }
  }

  /// Every sink has everything that was published.
  private func compareWholes(_ account: inout RehearsalAccount) throws {
    for (_, directory) in self.pipeline.directories {
      let comparison = OutputComparison(
        expected: try self.truth(withTopics: true),
        found: try OutputComparison.keys(ofFilesIn: directory, withTopics: true),
        leftOut: account.rowsLeftOut)
      account.comparisons.append(("files", comparison))
    }
    guard !self.pipeline.histories.isEmpty, let url = self.options.databaseURL else { return }
    let comparison = OutputComparison(
      expected: try self.truth(withTopics: false),
      found: try OutputComparison.keys(ofHistories: self.pipeline.histories, url: url),
      leftOut: account.rowsLeftOut)
    account.comparisons.append(("history tables", comparison))
  }

  /// Each sink has what the route sent there, and all of them together what was published.
  private func compare(
    _ account: inout RehearsalAccount, _ route: RehearsedPipeline.Route
  ) throws {
    let truth = try self.truth(withTopics: false)
    var all: Set<String> = []
    func add(_ sink: String, _ kind: String, _ keys: [String], _ truth: Set<String>) {
      account.comparisons.append(
        (
          "\(kind) of sink '\(sink)'",
          OutputComparison(sent: account.rows[sink, default: 0], truth: truth, found: keys)
        ))
    }
    for (sink, directory) in self.pipeline.directories {
      // An event that two topics bring has two lines.
      add(
        sink, "files", try OutputComparison.keys(ofFilesIn: directory, withTopics: true),
        try self.truth(withTopics: true))
      all.formUnion(try OutputComparison.keys(ofFilesIn: directory, withTopics: false))
    }
    if let url = self.options.databaseURL {
      for history in self.pipeline.histories {
        let keys = try OutputComparison.keys(ofHistories: [history], url: url)
        add(history.sink, "history", keys, truth)
        all.formUnion(keys)
      }
    }
    let sinkCount = self.pipeline.directories.count + self.pipeline.histories.count
    guard route.sendsAll, sinkCount == self.pipeline.sinkCount else {
      account.notes.append(
        "that every row came to some sink was not compared: the route sends rows to none, or to a "
          + "sink without files and history tables")
      return
    }
    account.comparisons.append(
      (
        "all sinks",
        OutputComparison(expected: truth, found: Array(all), leftOut: account.rowsLeftOut)
      ))
  }

  private func truth(withTopics: Bool) throws -> Set<String> {
    try OutputComparison.truth(
      self.truth, topics: self.pipeline.topics, withTopics: withTopics)
  }
}
