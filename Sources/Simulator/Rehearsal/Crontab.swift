internal import Glibc
internal import PubSubSimulator
internal import SimulatedOrg

/// Starts runs at their times, publishes, and lets incidents happen. Waits for nothing that the clock can skip.
struct Crontab {
  /// A scheduled action other than a run.
  private enum Action {
    case publish(Int)
    case begin(RehearsalPlan.Occurrence)
    case endSessions
    case revokeTokens
  }

  private let rehearsal: Rehearsal
  private let server: SimulatorServer
  private let clock: ClockServer
  private let arguments: [String]
  private let environment: [String: String]
  private let start: Int64
  private let end: Int64
  private(set) var account: RehearsalAccount
  private var actions: [(time: Int64, action: Action)]
  private var running: [(run: ExporterRun, incidents: [RehearsalPlan.Incident])] = []
  private var nextRun: Int64
  private var startedCount = 0
  /// An action on the next run.
  private var pending: [RehearsalPlan.Incident] = []
  private var outages = 0
  private var succeededAt: Int64

  init(
    rehearsal: Rehearsal, server: SimulatorServer, clock: ClockServer, arguments: [String],
    environment: [String: String]
  ) {
    let options = rehearsal.options
    self.rehearsal = rehearsal
    self.server = server
    self.clock = clock
    self.arguments = arguments
    self.environment = environment
    let start = server.now
    self.start = start
    self.end = start + Int64(options.days) * RehearsalPlan.day
    self.nextRun = start
    self.succeededAt = start
    self.account = RehearsalAccount(
      pipeline: rehearsal.pipeline.name, days: options.days, every: options.everyText,
      seed: options.seed)
    self.actions =
      rehearsal.plan.publications.map { (start + $0.time, Action.publish($0.count)) }
      + rehearsal.plan.occurrences.map { (start + $0.start, Action.begin($0)) }
    self.actions.sort { $0.time < $1.time }
    for occurrence in rehearsal.plan.occurrences {
      self.account.incidents[occurrence.incident, default: RehearsalAccount.Met()].occurrences += 1
    }
  }

  /// - Parameter lastRuns: how many runs there may be behind the end, until one succeeds.
  mutating func run(
    lastRuns: Int, onProgress: (Rehearsal.Progress) -> Void
  ) async throws {
    while self.server.now < self.end || !self.running.isEmpty {
      try await self.step()
      onProgress(
        Rehearsal.Progress(
          elapsed: min(self.server.now, self.end) - self.start, length: self.end - self.start,
          runs: self.startedCount - self.running.count))
    }
    for _ in 0..<lastRuns {
      try await self.startRun()
      while !self.running.isEmpty { try await self.step() }
      if self.account.lastExitCode == 0 { break }
      self.clock.skipAlone(self.rehearsal.options.every)
    }
  }

  /// Returns when no run is left, so that nothing is written any more.
  func killAll() {
    for (run, _) in self.running { run.kill() }
    for (run, _) in self.running { run.wait() }
  }

  private mutating func step() async throws {
    try Task.checkCancellation()
    try self.reap()
    let now = self.server.now
    while let first = self.actions.first, first.time <= now {
      self.actions.removeFirst()
      try await self.perform(first.action, at: now)
    }
    if now >= self.nextRun, now < self.end {
      // A machine that was too slow does not start missed runs.
      while self.nextRun <= now { self.nextRun += self.rehearsal.options.every }
      try await self.startRun()
    }
    var next = self.nextRun < self.end ? self.nextRun : Int64.max
    if let action = self.actions.first { next = min(next, action.time) }
    if self.running.isEmpty {
      self.clock.skipAlone(min(next, max(self.end, now)) - self.server.now)
    } else if !self.clock.step(
      limit: next == .max ? nil : next, expecting: self.running.map(\.run.processID))
    {
      usleep(200)
    }
  }

  private mutating func reap() throws {
    for index in self.running.indices.reversed() {
      let (run, incidents) = self.running[index]
      guard !run.isRunning else {
        try run.checkPatience()
        continue
      }
      self.running.remove(at: index)
      let result = run.result()
      self.account.add(result, met: incidents + self.lastingIncidents(since: run.startedAt))
      if result.exitCode == 0 {
        let now = self.server.now
        self.account.longestGap = max(self.account.longestGap, now - self.succeededAt)
        self.succeededAt = now
      }
    }
  }

  private func lastingIncidents(since start: Int64) -> [RehearsalPlan.Incident] {
    let (from, to) = (start - self.start, self.server.now - self.start)
    return self.rehearsal.plan.occurrences.filter {
      $0.end > $0.start && $0.start < to && $0.end > from
    }.map(\.incident)
  }

  private mutating func startRun() async throws {
    let incidents = self.pending
    self.pending = []
    if incidents.contains(.tokenExpiry) {
      // Noticed when the stream is opened again.
      try await self.server.add(
        Fault(
          .status(16, code: "service.auth.error", message: "An authentication exception occurred.")
        ))
      self.schedule(.revokeTokens, after: 1000)
    }
    if incidents.contains(.databaseRestart) { self.schedule(.endSessions, after: 2000) }
    for _ in 0..<(incidents.contains(.overlap) ? 2 : 1) {
      self.startedCount += 1
      let run = try ExporterRun(
        number: self.startedCount, program: self.rehearsal.options.program,
        arguments: self.arguments, environment: self.environment,
        work: "\(self.rehearsal.options.work)/runs", at: self.server.now)
      self.running.append((run, incidents))
    }
  }

  private mutating func schedule(_ action: Action, after milliseconds: Int64) {
    let time = self.server.now + milliseconds
    let index = self.actions.firstIndex { $0.time > time } ?? self.actions.endIndex
    self.actions.insert((time, action), at: index)
  }

  private mutating func perform(_ action: Action, at now: Int64) async throws {
    switch action {
    case .publish(let count):
      try await self.server.publish(count)
      self.account.published += count
    case .begin(let occurrence):
      switch occurrence.incident {
      // Publications leave it out already.
      case .silence: break
      case .outage: try await self.beginOutage(occurrence)
      case .tokenExpiry, .overlap, .databaseRestart: self.pending.append(occurrence.incident)
      }
    case .endSessions:
      if let url = self.rehearsal.options.databaseURL {
        try OutputComparison.endSessions(url: url)
      }
    case .revokeTokens: self.server.revokeTokens()
    }
  }

  private mutating func beginOutage(_ occurrence: RehearsalPlan.Occurrence) async throws {
    self.outages += 1
    let range = (self.start + occurrence.start)..<(self.start + occurrence.end)
    let message = "The service is unavailable. Try again later."
    try await self.server.add(
      Fault(
        .status(14, code: "service.unavailable", message: message), times: .max,
        moment: .during(range)))
    guard self.outages % 2 == 0 else { return }
    try await self.server.add(
      Fault(
        .status(503, code: nil, message: "Down for Maintenance"), method: "Login", times: .max,
        moment: .during(range)))
  }
}
