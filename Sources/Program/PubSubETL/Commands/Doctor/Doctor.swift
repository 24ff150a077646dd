internal import Checkpoint
import Clocks
import GRPCCore
import HTTPClient
import Pipeline
import PubSubAPI
import RESTSource
import SalesforceAuth
import SalesforceREST
import TLSStream

/// Looks at everything that a run needs, one thing after the other, and continues after each failure.
///
/// Uses the checks of `check --connect`, which stops at the first failure of a kind. Takes no lock, and
/// changes nothing but two small files that it removes again.
final class Doctor {
  private let configuration: PipelineConfiguration
  private let isDeep: Bool
  private let onFinding: (Finding) -> Void
  private(set) var findings: [Finding] = []
  private var isLoginNoted = false

  /// - Parameters:
  ///   - isDeep: subscribes to the topics, which costs an event each.
  ///   - onFinding: receives each finding as it is made.
  init(
    _ configuration: PipelineConfiguration, isDeep: Bool = false,
    onFinding: @escaping (Finding) -> Void = { _ in }
  ) {
    self.configuration = configuration
    self.isDeep = isDeep
    self.onFinding = onFinding
  }

  /// The code with which a run would end; nil if it can begin.
  var exitCode: ExitCode? { self.findings.lazy.compactMap(\.exitCode).first }

  /// - Parameter clock: of the login and the service; its wall time is compared with the service's.
  func run(clock: ProcessClock = ProcessClock()) async {
    self.lookAtMachine()
    self.resolveNames()
    await self.askOrg(clock)
    self.askSinks()
  }

  private func note(_ finding: Finding) {
    self.findings.append(finding)
    self.onFinding(finding)
  }

  /// Notes the lines of a check, or its failure.
  private func note(
    _ area: String, _ check: () async throws -> [String]
  ) async {
    do {
      for line in try await check() { self.note(Finding(line: line, area)) }
    } catch {
      self.note(Finding(area, RunFailure(error)))
    }
  }

  // MARK: This machine

  private func lookAtMachine() {
    let failures = LocalCheck.failures(self.configuration)
    for failure in failures { self.note(Finding("files", failure)) }
    if failures.isEmpty {
      self.note(
        Finding(
          .ok, "files", "state and output can be written, and the stored positions can be read"))
    }
    for line in LocalCheck.warnings(self.configuration) {
      self.note(Finding(line: line, "files"))
    }
    for line in self.configuration.securityWarnings {
      self.note(Finding(.attention, "files", line))
    }
    let directories =
      [self.configuration.checkpoint.directory]
      + self.configuration.fileSinks.map(\.directory)
    for space in DiskSpace.ofFileSystems(of: directories) { self.note(space.finding) }
    self.lookAtLock()
  }

  private func lookAtLock() {
    let lock = RunLockState.read(self.configuration.statePaths.lock)
    switch lock.isHeld {
    case true:
      let process = lock.processID.map { "process \($0)" } ?? "another process"
      self.note(
        Finding(
          .attention, "lock",
          "\(process) runs this pipeline now; another run would end at once or wait, "
            + "as run.if_running says; wait for it, or stop it"))
    case false: self.note(Finding(.ok, "lock", "no run of this pipeline is in progress here"))
    case nil:
      self.note(
        Finding(
          .skipped, "lock",
          "the system does not show who holds it; mount /proc to see whether a run is in progress"))
    }
  }

  // MARK: The network

  /// Asks the name service for the hosts of the org, or of the proxies in front of them.
  private func resolveNames() {
    let org = self.configuration.source.org
    var seen: Set<String> = []
    for server in [org.endpoint, org.auth.server].compactMap(\.self) {
      let proxy = org.proxy.proxy(for: server)
      let host = proxy?.host ?? server.host
      guard seen.insert(host).inserted, !SocketAddress.isNumeric(host) else { continue }
      do throws(TLSError) {
        let addresses = try SocketAddress.resolve(
          host: host, port: UInt16(clamping: proxy?.port ?? server.port))
        var shown: [String] = []
        for address in addresses where !shown.contains(address.host) { shown.append(address.host) }
        self.note(
          Finding(
            .ok, "names", "\(proxy == nil ? "" : "proxy ")\(host) is \(BlindFields.list(shown))"))
      } catch {
        self.note(
          Finding(
            "names",
            RunFailure(
              .unavailable,
              "\(error); check the spelling in the pipeline file, and the name server "
                + "of this machine")))
      }
    }
  }

  // MARK: The org

  private func askOrg(_ clock: ProcessClock) async {
    let configuration = self.configuration
    do {
      try await Session.open(configuration, clock: clock) { session in
        let serviceClock = await session.connection.credentials.serviceClock
        // Without an answer, the token came from elsewhere and has not been tried yet.
        if serviceClock != nil { self.noteLogin(session) }
        await self.note("login") {
          try OrgChange.check(
            try FileCheckpointStore.peek(configuration.statePaths), isOf: session.org)
          return []
        }
        if let finding = Self.clock(serviceClock, clock) { self.note(finding) }
        await self.askTopics(session)
        if self.isDeep { await self.askForResponses(session, clock) }
        await self.note("allowance") { [await AllowanceWatch.line(session)] }
        await self.note("api") { [await Self.requests(session)] }
        await self.note("rights") { [await ConnectionCheck.rights(session)] }
        await self.note("records") { try await SnapshotRun.check(session) }
        await self.note("records") { try await ConnectionCheck.personAccounts(session) }
      }
    } catch {
      self.note(Finding("login", RunFailure(error)))
      for area in ["service", "topic", "response", "allowance", "rights"]
      where area != "response" || self.isDeep {
        self.note(Finding(.skipped, area, "needs a login; correct that first"))
      }
    }
  }

  private func noteLogin(_ session: Session) {
    guard !self.isLoginNoted else { return }
    self.isLoginNoted = true
    self.note(Finding(.ok, "login", "org \(session.org) at \(session.token.instanceURL)"))
  }

  /// - Returns: nil if the login's answer has no time.
  static func clock(_ service: ServiceClock?, _ clock: ProcessClock) -> Finding? {
    guard let service else { return nil }
    let passed = Int64((clock.now - service.readAt) / .milliseconds(1))
    return Self.clock(ahead: clock.wallTime - passed - service.reading)
  }

  /// - Parameter ahead: milliseconds by which this machine's clock is ahead of the service's, which
  ///   has whole seconds.
  static func clock(ahead: Int64) -> Finding {
    // An assertion of the JWT bearer flow is good for three minutes (ServiceLogins.md).
    let far = Duration.seconds(10)
    let distance = Duration.milliseconds(abs(ahead))
    guard distance > far else {
      return Finding(.ok, "clock", "agrees with the service's to within \(Phrase.duration(far))")
    }
    return Finding(
      .attention, "clock",
      "is \(Phrase.duration(distance)) \(ahead > 0 ? "ahead of" : "behind") the service's: logins by "
        + "JWT fail, and times in reports are wrong; synchronize it (NTP)")
  }

  private func askTopics(_ session: Session) async {
    var isAnswered = false
    var isRefused = false
    for topic in self.configuration.source.topics {
      do {
        _ = try await session.connection.subscribableTopic(topic.name)
        self.noteService(&isAnswered)
        self.noteLogin(session)
        self.note(Finding(.ok, "topic", "\(topic.name) can be subscribed to"))
      } catch {
        isRefused = true
        if let failure = Self.rejectedLogin(error) {
          if error is PubSubError { self.noteService(&isAnswered) }
          return self.note(Finding("login", failure))
        }
        let isOfTopicAlone =
          (error as? PubSubError)?.refusesTopicAlone ?? (error is RunFailure)
        guard isOfTopicAlone else {
          // No other topic would be answered either.
          self.note(Finding("service", RunFailure(error)))
          if !self.isLoginNoted {
            self.note(
              Finding(
                .skipped, "login",
                "the access token was not tried, because the service did not answer; correct that "
                  + "first"))
          }
          return
        }
        self.noteService(&isAnswered)
        self.noteLogin(session)
        self.note(Finding("topic", RunFailure(error)))
      }
    }
    if let record = self.configuration.source.managed,
      let topic = self.configuration.source.topics.first
    {
      await self.note("managed") {
        [try await ConnectionCheck.managed(record, topic: topic.name, session)]
      }
    }
    guard !isRefused else {
      return self.note(Finding(.skipped, "schemas", "need all topics; correct those first"))
    }
    await self.note("schemas") {
      let planned = try await session.plannedLayouts()
      return planned.inputs.map { layout in
        let count = layout.columns.count { !$0.isMetadata }
        return "\(layout.entity) has \(Phrase.count(count, "field"))"
      } + [try await ConnectionCheck.columns(session)]
    }
  }

  /// Subscribes to all topics at once.
  private func askForResponses(_ session: Session, _ clock: ProcessClock) async {
    let source = self.configuration.source
    guard source.managed == nil else {
      return self.note(
        Finding(
          .skipped, "response", "a managed subscription has one reader; only a run tries it"))
    }
    guard !self.findings.contains(where: { $0.exitCode != nil }) else {
      return self.note(Finding(.skipped, "response", "needs all of the above; correct that first"))
    }
    let stored = (try? PipelineStatus.read(self.configuration, maxAge: nil))?.topics ?? []
    let asked = session.assembly.topics().map { topic in
      FirstResponse(topic, stored: stored.first { $0.name == topic.name }?.position)
    }
    for (each, answer) in await FirstResponse.answers(asked, session.connection, clock) {
      self.note(each.finding(answer, isReplaced: source.onInvalidReplay != .fail))
    }
  }

  /// The service's refusal of the login itself, with the remedy; nil for other errors.
  private static func rejectedLogin(_ error: any Error) -> RunFailure? {
    if error is AuthError { return RunFailure(error) }
    guard let refusal = error as? PubSubError, refusal.status == .unauthenticated else {
      return nil
    }
    var failure = RunFailure(refusal)
    failure.message +=
      "; the access token has expired, was revoked, or is of another org: replace it where "
      + "source.org.auth has it from"
    return failure
  }

  /// An answer of any kind came by HTTP/2, and with TLS by a peer whose identity was proved.
  private func noteService(_ isAnswered: inout Bool) {
    guard !isAnswered else { return }
    isAnswered = true
    let org = self.configuration.source.org
    let isSecure = org.endpoint.isSecure
    self.note(
      Finding(
        .ok, "service",
        "\(org.endpoint.host):\(org.endpoint.port) answers by HTTP/2\(isSecure ? " and TLS" : "")"
          + (org.proxy.proxy(for: org.endpoint).map { " through proxy \($0.endpoint)" } ?? "")))
  }

  /// A line about the org's API requests. One call. A run to files may need none, so a refusal fails
  /// nothing.
  private static func requests(_ session: Session) async -> String {
    let client = session.connection.makeRESTClient()
    do {
      _ = try await client.listedObjects()
    } catch {
      return "api: not known: \(RunFailure(error).message)"
    }
    guard let usage = client.usage else { return "api: not known: the org counts no requests" }
    let isMuch = usage.used >= usage.limit / 10 * 9
    return "api: \(isMuch ? "attention: " : "")\(ProgressLine.grouped(Int64(usage.used))) of "
      + "\(ProgressLine.grouped(Int64(usage.limit))) API requests of 24 hours are used"
      + (isMuch ? "; find out what else uses them, before records are read" : "")
  }

  // MARK: Sinks

  private func askSinks() {
    for case let sink as any ConnectingSink in self.configuration.sinks {
      do {
        for line in try sink.checkConnection(self.configuration) {
          self.note(
            Finding(.ok, "sink", line.hasPrefix("sink ") ? String(line.dropFirst(5)) : line))
        }
      } catch {
        var failure = RunFailure(error)
        failure.message = "\(sink.name): \(failure.message)"
        self.note(Finding("sink", failure))
      }
    }
    self.lookAtStatus()
  }

  /// Kinds of problems with which no run begins.
  private static let stoppingProblems: Set = ["lost_state", "lost_output", "other_directory"]

  /// What `status` finds: output that is lost or was changed, and what databases say about who runs
  /// the pipeline.
  private func lookAtStatus() {
    // A state that cannot be read was noted.
    guard let status = try? PipelineStatus.read(self.configuration, maxAge: nil) else { return }
    for problem in status.problems where problem.exitCode == ExitCode.data.rawValue {
      let stopsRuns = Self.stoppingProblems.contains(problem.kind)
      var finding = Finding(stopsRuns ? .failed : .attention, "status", problem.message)
      finding.exitCode = stopsRuns ? .data : nil
      self.note(finding)
    }
    for sink in status.sinks {
      guard let lease = sink.lease else { continue }
      // Nobody runs here, so it is a run elsewhere, or one that was killed in the last minute.
      guard sink.isLeased, status.lock.isHeld == false else {
        self.note(Finding(.ok, "lease", "\(sink.name): \(lease)"))
        continue
      }
      self.note(
        Finding(
          .attention, "lease",
          "\(sink.name): \(lease). If that is a run of another state directory, stop it first"))
    }
  }
}
