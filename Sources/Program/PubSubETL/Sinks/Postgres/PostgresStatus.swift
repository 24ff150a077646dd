import Bytes
internal import Checkpoint
import JSON
import Pipeline
import PostgresClient
import PostgresSink
import RESTSource

/// How a postgres sink stands, by what its database says.
struct PostgresStatus {
  var name: String
  /// SQL name.
  var schema: String
  /// The checkpoint does not know it yet.
  var isNew = false
  /// Nil when the database has no position of the sink, or did not answer.
  var state: DatabaseState?
  var tables: [TableFreshness] = []
  /// What somebody has done to the tables.
  var findings: [TableFinding] = []
  /// Records that were read and refused, by object.
  var refusedReads: [String: Int64] = [:]
  /// How many of them may be there without being a problem; nil for any number.
  var toleratedRefusals: Int?
  private let snapshotCommand: String
  /// Positions that are shown elsewhere, by topic.
  private let shownPositions: [String: TopicPosition]
  /// The database has accepted the login.
  private var isConnected = false
  /// Why the database could not be asked.
  var failure: RunFailure?

  init(_ settings: PostgresSettings, _ reading: SinkStatusReading) {
    self.name = settings.name
    self.snapshotCommand = reading.configuration.command("snapshot")
    self.shownPositions = reading.positions
    self.schema = settings.sink.schema
    self.isNew = reading.checkpoint.map { $0.sinks[settings.name] == nil } ?? false
    do {
      let stored = try CheckpointTable(
        pipeline: reading.configuration.name, sink: settings.name, settings.sink)
      self.isConnected = true
      self.state = try stored.read()
      let feeder = reading.configuration.feeder(settings)
      if self.state == nil, reading.checkpoint?.sinks[settings.name] != nil {
        try stored.checkSchema(feeder: feeder)
      }
      self.tables = try stored.freshness()
      self.toleratedRefusals = reading.configuration.deadLetter.max
      let entities = Set(self.tables.map(\.entity))
      self.refusedReads = try stored.refusedReads().filter { entities.contains($0.key) }
      self.findings = try stored.survey(feeder: feeder)
    } catch {
      let failure = RunFailure(error)
      self.failure = failure
      if failure.exitCode == .unavailable { self.isConnected = false }
    }
  }

  /// - Parameter now: milliseconds since 1970.
  func status(now: Int64) -> SinkStatus {
    SinkStatus(
      name: self.name, ownPosition: self.ownPosition, lease: self.state.map(Self.lease),
      isLeased: self.state?.isLeased == true, problems: self.problems,
      remark: self.remark, summary: "PostgreSQL, schema \(self.schema)",
      lines: self.lines(now: now), json: self.json)
  }

  private var ownPosition: OwnPosition {
    OwnPosition(
      place: "the database of sink '\(self.name)'",
      stored: self.state.map {
        OwnPosition.Stored(
          org: $0.org, committedAt: $0.committedAt, positions: $0.positions)
      }, isUnknown: self.failure != nil,
      problemIfLost: self.isNew
        ? nil
        : PipelineStatus.Problem(
          .data, "lost_state",
          "the database of sink '\(self.name)' has no position of this pipeline, but had one "
            + "before; put back table '_etl_checkpoint', or begin a new epoch with 'run "
            + "--accept-reset'"))
  }

  private var problems: [PipelineStatus.Problem] {
    var problems: [PipelineStatus.Problem] = []
    if let failure = self.failure {
      problems.append(
        PipelineStatus.Problem(
          failure.exitCode, failure.word,
          "sink '\(self.name)': \(failure.message)"
            + (self.isConnected
              ? ""
              : "; 'status' also reads the database: check that it is running and that the "
                + "sink's url, role and password are right")))
    }
    for finding in self.findings {
      // What the next run puts right is not right now.
      let failure = RunFailure(PostgresError(finding.disposition ?? .lostTable, finding.message))
      problems.append(
        PipelineStatus.Problem(
          failure.exitCode,
          finding.kind == .outdatedReader
            ? "outdated_views" : finding.disposition == nil ? "damaged_tables" : failure.word,
          "sink '\(self.name)': \(failure.message)", statements: finding.statements))
    }
    let refused = self.refusedReads.values.reduce(0, +)
    if let tolerated = self.toleratedRefusals, refused > Int64(tolerated) {
      let objects = self.refusedReads.sorted { $0.key < $1.key }.map {
        "\(ProgressLine.grouped($0.value)) of \($0.key)"
      }
      problems.append(
        PipelineStatus.Problem(
          .data, "refused_records",
          "sink '\(self.name)': records were read and cannot be stored: "
            + "\(objects.joined(separator: ", ")); table \(self.schema)._etl_refused_read has the "
            + "reasons. Correct the cause: runs read these records again once a day"))
    }
    return problems
  }

  // MARK: Text

  private func lines(now: Int64) -> [String] {
    if self.failure != nil { return ["unknown: the database could not be read"] }
    guard let state = self.state else {
      return [self.isNew ? "not in the checkpoint yet" : "no position stored"]
    }
    var lines = ["last commit \(PipelineStatus.moment(state.committedAt, now: now))"]
    if let through = state.completeThrough, self.unfinishedCopies == nil {
      lines.append("complete through \(UTCTime.timestamp(milliseconds: through))")
    }
    lines.append(Self.lease(state))
    for (topic, position) in state.positions.sorted(by: { $0.key < $1.key })
    where self.shownPositions[topic].map({ Self.differ($0, position) }) ?? true {
      lines.append("\(topic): \(PipelineStatus.lines(position).joined(separator: ", "))")
    }
    for table in self.tables {
      lines.append("\(table.table): \(Self.summary(table))")
    }
    return lines
  }

  private static func differ(_ shown: TopicPosition, _ own: TopicPosition) -> Bool {
    (shown.epoch, shown.nextOrdinal) != (own.epoch, own.nextOrdinal) || shown.resume != own.resume
  }

  /// How far and how whole a table is. What is complete and has not changed is not behind.
  static func summary(_ table: TableFreshness) -> String {
    func time(_ milliseconds: Int64) -> String { UTCTime.timestamp(milliseconds: milliseconds) }
    var parts: [String] = []
    if let stale = table.stale, let partial = table.partial {
      parts.append("\(ProgressLine.grouped(stale)) records stale")
      parts.append("\(ProgressLine.grouped(partial)) partial")
    }
    parts.append(
      table.completeThrough.map { "complete through \(time($0))" }
        ?? "how far it is complete is not yet known")
    if let change = table.lastChange { parts.append("newest change \(time(change))") }
    if let reading = table.reading { parts.append(Self.text(reading)) }
    if let snapshot = table.snapshotAt { parts.append("all records read \(time(snapshot))") }
    if let waiting = table.waitingForRepair, waiting > 0 {
      parts.append("\(ProgressLine.grouped(waiting)) waiting to be read again")
    }
    if let unseen = table.unseen, unseen > 0 {
      parts.append("\(ProgressLine.grouped(unseen)) not found when they were requested")
    }
    if table.missingRanges > 0 {
      parts.append("\(Phrase.count(Int(table.missingRanges), "missing range")) not repaired")
    }
    if !table.fillingColumns.isEmpty {
      parts.append("not read for all records yet: \(BlindFields.list(table.fillingColumns))")
    }
    if !table.hiddenColumns.isEmpty {
      parts.append("hidden from the run-as user: \(BlindFields.list(table.hiddenColumns))")
    }
    for (state, columns) in table.otherColumns.sorted(by: { $0.key < $1.key }) {
      let title = state == "gone since" ? "gone from the org" : state
      parts.append("\(title): \(BlindFields.list(columns))")
    }
    if let polls = table.polls {
      parts.append(
        "read every \(Phrase.duration(polls.every))"
          + (polls.lastAt.map { ", last at \(time($0))" } ?? ", not yet"))
    }
    if let refreshed = table.refreshedAt {
      parts.append("fields without events as of \(time(refreshed))")
    }
    if table.holes > 0 { parts.append("holes in its stream: \(table.holes)") }
    return parts.joined(separator: ", ")
  }

  private static func text(_ reading: TableFreshness.Reading) -> String {
    guard let total = reading.total else {
      return reading.rows == 0
        ? "all records are about to be read"
        : "\(ProgressLine.grouped(reading.rows)) records read so far"
    }
    return "\(ProgressLine.grouped(reading.rows)) of \(ProgressLine.grouped(total)) records read"
  }

  private var remark: String? {
    let remarks = [self.unfinishedCopies, self.missingRanges].compactMap { $0 }
    guard !remarks.isEmpty else { return nil }
    return "sink '\(self.name)' is not complete: " + remarks.joined(separator: "; ")
  }

  private var unfinishedCopies: String? {
    let tables = self.tables.filter { $0.reading != nil && $0.snapshotAt == nil }
    guard !tables.isEmpty else { return nil }
    return "the first copy of \(Set(tables.map(\.entity)).sorted().joined(separator: ", ")) "
      + "is under way"
  }

  /// An object's tables have the same ranges.
  private var missingRanges: String? {
    let counts = Dictionary(
      self.tables.map { ($0.entity, $0.missingRanges) }, uniquingKeysWith: max)
    let objects = counts.filter { $0.value > 0 }.keys.sorted()
    guard !objects.isEmpty else { return nil }
    let ranges = Phrase.count(Int(counts.values.reduce(0, +)), "missing range")
    return "\(ranges) of \(objects.joined(separator: ", ")) not repaired; "
      + "'\(self.snapshotCommand)' reads their records again"
  }

  /// Who ran the sink last, and whether it still does.
  static func lease(_ state: DatabaseState) -> String {
    "lease \(state.fence), of \(state.owner), "
      + (state.isLeased ? "holds until " : "ended ")
      + UTCTime.timestamp(milliseconds: state.leaseUntil)
  }

  // MARK: JSON

  private var json: JSONValue {
    let state = self.state
    return [
      "name": .string(self.name), "type": .string(PostgresSettings.type),
      "schema": .string(self.schema),
      "new": .boolean(self.isNew),
      "error": PipelineStatus.text(self.failure?.message),
      "positions": PipelineStatus.json(state?.positions ?? [:]),
      "org": PipelineStatus.text(state?.org),
      "owner": PipelineStatus.text(state?.owner),
      "fence": state.map { .integer($0.fence) } ?? nil,
      "lease_until": PipelineStatus.time(state?.leaseUntil),
      "leased": state.map { .boolean($0.isLeased) } ?? nil,
      "committed_at": PipelineStatus.time(state?.committedAt),
      "complete_through": PipelineStatus.time(state?.completeThrough),
      "tables": .array(
        self.tables.map { table -> JSONValue in
          [
            "table": .string(table.table), "entity": .string(table.entity),
            "complete_through": PipelineStatus.time(table.completeThrough),
            "last_change": PipelineStatus.time(table.lastChange),
            "topics": .array(table.topics.map { .string($0) }),
            "stale": table.stale.map { .integer($0) } ?? nil,
            "partial": table.partial.map { .integer($0) } ?? nil,
            "holes": .integer(table.holes),
            "snapshot_at": PipelineStatus.time(table.snapshotAt),
            "missing_ranges": .integer(table.missingRanges),
            "waiting_for_repair": table.waitingForRepair.map { .integer($0) } ?? nil,
            "unseen": table.unseen.map { .integer($0) } ?? nil,
            "columns_filling": .array(table.fillingColumns.map { .string($0) }),
            "columns_hidden": .array(table.hiddenColumns.map { .string($0) }),
            "columns_other": JSONValue(
              .object(
                table.otherColumns.sorted { $0.key < $1.key }.map { state, columns in
                  JSONMember(state, .array(columns.map { .string($0) }))
                })),
            "refreshed_at": PipelineStatus.time(table.refreshedAt),
            "polled_every_s": table.polls.map { .integer($0.every.components.seconds) } ?? nil,
            "polled_at": PipelineStatus.time(table.polls?.lastAt),
            "snapshot": table.reading.map { reading -> JSONValue in
              [
                "rows": .integer(reading.rows),
                "total": reading.total.map { .integer($0) } ?? nil,
              ]
            } ?? nil,
          ]
        }),
    ]
  }
}
