internal import Clocks
internal import EventLoop
import Pipeline
import PubSubAPI
import RESTSource
import SalesforceAuth
import SalesforceREST

/// Compares the copies of a pipeline with its org, object by object, and writes nothing.
struct VerifyRun: Sendable {
  struct Request {
    /// API names; empty: all objects that the pipeline copies.
    var entities: [String] = []
    var depth = ObjectVerification.Depth.records
    /// IDs to be named of each kind of drift.
    var idLimit = 1000
    /// What differs is read again by the next run.
    var repairs = false
  }

  let configuration: PipelineConfiguration
  let request: Request
  let progress: VerifyProgress

  /// What is compared is as old as ten times the time after which every reader sees a commit, ten minutes
  /// as a rule (RESTAndBulk.md#records-and-events).
  private static let margin = 10

  /// - Throws: `RunFailure` and what parts throw.
  func run() async throws -> VerifyReport {
    // Before the login: mistakes of the command are reported at once.
    let objects = try self.objects()
    let (sinks, obstacles) = try self.sinks()
    return try await Session.open(self.configuration, clock: ProcessClock()) { session in
      try await self.compare(objects, sinks, obstacles, session)
    }
  }

  /// - Parameter obstacles: why other sinks are not compared.
  private func compare(
    _ objects: [(entity: String, topic: String)], _ sinks: [any VerifyingSink],
    _ obstacles: [String], _ session: Session
  ) async throws -> VerifyReport {
    var obstacles = obstacles
    var states: [String: CopyStates] = [:]
    for sink in sinks {
      states[sink.name] = try self.states(of: sink, org: session.org)
    }
    let client = session.connection.makeRESTClient()
    var described: [String: ObjectDescription] = [:]
    let layouts = try await self.layouts(of: objects, session, client, &described)
    try await session.inquiry?.prepare(Array(layouts.values))
    let stages = session.stages
    for (sink, (entity, _)) in sinks.flatMap({ sink in objects.map { (sink, $0) } }) {
      if let layout = layouts[entity], try !stages.bringsRows(of: layout, to: sink.name) {
        // An earlier run may have left an empty copy there.
        states[sink.name]?.objects[entity] = nil
        obstacles.append("\(entity) in sink '\(sink.name)': the stages send no row there")
      } else {
        try self.check(states[sink.name]?.objects[entity], of: entity, sink)
      }
    }
    var parts: [ComparedPart] = []
    for (entity, topic) in objects {
      guard let layout = layouts[entity], let description = described[entity] else {
        throw RunFailure(
          .refused,
          "\(entity) cannot be verified: the service does not give the schema of "
            + "\(TopicName.changes(of: entity)); select the object under Change Data Capture")
      }
      var object = ReadObject(entity: entity, topic: topic, layout: layout)
      // The other records of the copy are then read by ID, because no record of the org matches.
      object.limit(to: self.configuration.source)
      let settled = try await self.settledTime(client, entity)
      for sink in sinks {
        guard case .complete(let through)? = states[sink.name]?.objects[entity] else { continue }
        var entry = VerifyReport.Entry(sink: sink.name, entity: entity)
        entry.horizon = min(settled.time, through) - self.marginMilliseconds
        entry.hasSettledTime = settled.isOfOrg
        entry.blind = BlindFields(layout, description)
        entry.columns = Set(layout.columns.lazy.filter { !$0.isMetadata }.map(\.name))
        entry.unread = SnapshotPlan(layout, description).unread
        entry.scope = object.scope
        // Files whose records a run does not read have all changes.
        var part = object
        part.isSubset =
          object.isSubset
          && (sink.keepsPosition || self.configuration.source.snapshot.mode == .initial)
        parts.append(ComparedPart(object: part, sink: sink, entry: entry))
      }
    }
    var report = VerifyReport(pipeline: self.configuration.name, depth: self.request.depth)
    let (org, classification) = (session.org, session.inquiry?.known)
    let comparison = SideBySide(
      limit: self.configuration.source.snapshot.concurrency,
      visibilityWait: self.configuration.source.snapshot.visibilityWait, clock: client.clock,
      progress: self.progress)
    report.entries = try await comparison.compare(parts) { part in
      // Stages remember rows, so each part has its own.
      try self.comparison(
        of: part, RunStages(self.configuration, org: org, classification: classification), client)
    }
    for (index, part) in parts.enumerated() {
      report.entries[index].formulas = try await self.formulas(of: part, client)
    }
    guard !report.entries.isEmpty else {
      throw RunFailure(
        .noCopy,
        "there is nothing to compare: \(obstacles.joined(separator: "; "))")
    }
    report.obstacles = obstacles
    report.refresh = self.configuration.source.refresh
    let polled = self.configuration.source.lookups.objects
    if !polled.isEmpty {
      report.obstacles.append(
        "objects of source.lookups are not compared: \(polled.joined(separator: ", "))")
    }
    report.apiCalls = client.callCount
    return report
  }

  /// - Parameter described: receives the descriptions of the objects that have a layout.
  private func layouts(
    of objects: [(entity: String, topic: String)], _ session: Session, _ client: RESTClient,
    _ described: inout [String: ObjectDescription]
  ) async throws -> [String: RecordLayout] {
    func report(_ error: PubSubError, _ delay: Duration) {
      self.progress.leave("\(error.message); retrying in \(Phrase.duration(delay))")
    }
    var layouts = try await session.layouts(of: objects, onRetry: report)
    for (entity, _) in objects where layouts[entity] != nil {
      described[entity] = try await Self.asking { try await client.describe(entity) }
    }
    try await session.renew(&layouts, described: described, objects: objects, onRetry: report)
    try await session.addOnlyRead(to: &layouts, described: described) { _, _ in }
    return layouts
  }

  private func comparison(
    of part: ComparedPart, _ stages: RunStages, _ client: RESTClient
  ) throws -> PartComparison {
    let sink = part.sink
    // As in runs: a record that was erased from one sink comes to none.
    var erased = ErasedRecords()
    for sink in self.configuration.sinks {
      guard let sink = sink as? any ErasingSink else { continue }
      erased.formUnion(try sink.erasedRecords(self.configuration))
    }
    stages.pipeline.erased = erased
    var (object, entry) = (part.object, part.entry)
    let own = stages.chain(of: sink)
    // These fields change without events, so a difference in them is not drift.
    let blind = Set(entry.blind.calculated)
      .union(object.layout.columns.lazy.filter(\.isOnlyRead).map(\.name))
    let scope = try VerifyScope(
      object.layout, unread: Set(entry.unread.map(\.name)), through: stages.pipeline, own)
    let isDeciding = scope.isDeciding
    object.reads = { !blind.contains($0.name) || isDeciding($0) }
    entry.comparesStamps = self.request.depth != .full && !scope.hasChangeField
    let verification = try sink.verification(
      of: try own.layout(for: stages.pipeline.layout(for: object.layout)),
      CopyScope(
        horizon: entry.horizon, excluded: blind, unread: Set(entry.unread.map(\.name)),
        comparesStamps: entry.comparesStamps),
      self.configuration)
    let retry = self.configuration.retry.schedule(follows: false)
    let records = ObjectVerification(
      object, self.request.depth, listed: scope.isListed, stages: stages.pipeline, own,
      verification,
      client: client, reserve: self.configuration.repair.reserve, retry: retry,
      patience: OrgPatience(limit: retry.giveUpAfter.map { max($0, OrgPatience.minLimit) }) {
        client.clock.now
      }, progress: self.progress)
    return PartComparison(
      records, entry, undecidable: scope.undecidable, idLimit: self.request.idLimit
    ) { findings in
      guard self.request.repairs, findings.verdict == .drift else { return }
      if let obstacle = sink.repairObstacle { return self.progress.leave(obstacle) }
      try (verification as? any RepairingVerification)?.noteForRepair()
    }
  }

  // MARK: Formulas

  /// The number of records of an object whose formulas `--full` compares.
  private static let maxFormulaRecords = 10_000

  private func formulas(
    of part: ComparedPart, _ client: RESTClient
  ) async throws -> FormulaFindings? {
    let limit: Int
    switch self.request.depth {
    case .records: return nil
    case .sample(let count): limit = count
    case .full: limit = Self.maxFormulaRecords
    }
    guard let sink = part.sink as? any FormulaSink,
      let comparison = try sink.formulas(
        of: part.entry.entity, horizon: part.entry.horizon, self.configuration)
    else { return nil }
    let fields = comparison.fields
    var rest = fields.isEmpty ? [] : try comparison.sample(limit)[...]
    while !rest.isEmpty {
      let ids = Array(rest.prefix(RESTClient.maxRetrievedRecords))
      rest = rest.dropFirst(ids.count)
      let records = try await Self.asking {
        try await client.retrieve(
          part.entry.entity, ids: ids, fields: ["Id", "SystemModstamp"] + fields)
      }
      try comparison.compare(
        zip(ids, records).compactMap { id, record in
          record.map {
            FormulaRecord(
              id: id, stamp: $0["SystemModstamp"] ?? "",
              values: Dictionary(
                zip(fields, $0.texts(of: fields)).compactMap { field, value in
                  value.map { (field, $0) }
                }, uniquingKeysWith: { first, _ in first }))
          }
        })
    }
    return try comparison.findings(idLimit: self.request.idLimit)
  }

  private var marginMilliseconds: Int64 {
    let wait = self.configuration.source.snapshot.visibilityWait
    return Int64((wait * Self.margin) / .milliseconds(1))
  }

  // MARK: What is compared

  private func objects() throws -> [(entity: String, topic: String)] {
    let all = self.configuration.source.snapshotObjects
    let known = all.map(\.entity)
    guard !all.isEmpty else {
      throw RunFailure(
        .unknownEntity,
        "the pipeline has no objects whose records are copied; for objects on channels, list them "
          + "in source.snapshot.objects")
    }
    if let unknown = self.request.entities.first(where: { !known.contains($0) }) {
      throw RunFailure(
        .unknownEntity,
        "the pipeline copies no object '\(unknown)'; it copies: \(known.joined(separator: ", "))")
    }
    let wanted = self.request.entities
    return all.filter { wanted.isEmpty || wanted.contains($0.entity) }
  }

  private func sinks() throws -> (usable: [any VerifyingSink], obstacles: [String]) {
    let all = self.configuration.sinks.compactMap { $0 as? any VerifyingSink }
    let obstacles = all.map { $0.verifyObstacle(self.configuration) }
    let usable = zip(all, obstacles).filter { $0.1 == nil }.map(\.0)
    guard !usable.isEmpty else {
      throw RunFailure(
        .noSink,
        obstacles.compactMap { $0 }.first
          ?? "verify needs a postgres or files sink, and pipeline '\(self.configuration.name)' has "
          + "none")
    }
    if self.request.repairs, usable.allSatisfy({ $0.repairObstacle != nil }),
      let obstacle = usable.first?.repairObstacle
    {
      throw RunFailure(
        .noRepair, "--repair corrects tables only: \(obstacle)")
    }
    return (usable, obstacles.compactMap { $0 })
  }

  /// - Throws: when the copy is of another org.
  private func states(of sink: any VerifyingSink, org: String) throws -> CopyStates {
    let states = try sink.copyStates(self.configuration)
    if let other = states.org, !other.isEmpty, other != org {
      throw RunFailure(
        .otherCheckpoint,
        "the copy in sink '\(sink.name)' is of org \(other), and the login is to org \(org)")
    }
    if self.request.repairs, let holder = states.holder {
      throw RunFailure(
        .alreadyRunning,
        "sink '\(sink.name)' is held by a run: \(holder); --repair needs it, try again later")
    }
    return states
  }

  /// - Throws: when the copy of an object is not complete.
  private func check(
    _ state: CopyStates.State?, of entity: String, _ sink: any VerifyingSink
  ) throws {
    switch state {
    case .complete: break
    case .incomplete(let why):
      throw Self.incomplete(
        entity, sink,
        "\(why); run '\(self.configuration.command("run"))' until 'status' says that it is complete"
      )
    case .unread:
      throw Self.incomplete(
        entity, sink,
        "it has changes only, since the records were never read; read them with "
          + "'\(self.configuration.command("snapshot"))'")
    case nil:
      throw Self.incomplete(
        entity, sink, "no run has been there; run '\(self.configuration.command("run"))'")
    }
  }

  private static func incomplete(
    _ entity: String, _ sink: any VerifyingSink, _ reason: String
  ) -> RunFailure {
    RunFailure(
      .incomplete,
      "the copy of \(entity) in sink '\(sink.name)' is not complete: \(reason)")
  }

  // MARK: Time

  /// Through when changes in the org are settled; by its clock alone where it does not say.
  private func settledTime(
    _ client: RESTClient, _ entity: String
  ) async throws -> (time: Int64, isOfOrg: Bool) {
    guard let now = client.serviceTime() else {
      throw RunFailure(
        .unavailable, "the org's responses do not contain its time")
    }
    do {
      return (
        try await Self.asking { try await CoveredTime.ask(client, of: entity, now: now) }, true
      )
    } catch let error as RESTError where error.disposition != .login && error.disposition != .quota
    {
      self.progress.leave(
        "\(error.message); changes by long transactions in the org may be reported as differences")
      return (now, false)
    }
  }

  private static let attempts = 3

  /// Repeats calls that may succeed later.
  private static func asking<Value>(_ body: () async throws -> Value) async throws -> Value {
    var delay = Duration.seconds(1)
    for _ in 1..<Self.attempts {
      do {
        return try await body()
      } catch let error as RESTError where error.disposition == .retry {
        try await ProcessClock().sleep(for: delay)
        delay *= 2
      }
    }
    return try await body()
  }
}
