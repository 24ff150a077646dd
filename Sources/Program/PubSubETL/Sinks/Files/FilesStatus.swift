import Bytes
internal import Checkpoint
import FileSink
import JSON
import Pipeline
import RESTSource

/// How a files sink stands, by its manifest and directory.
struct FilesStatus {
  var name: String
  /// Absolute.
  var directory: String
  /// The checkpoint does not know it yet.
  var isNew = false
  /// When the pipeline file lost it, in milliseconds since 1970; nil for one that is in use.
  var removedAt: Int64?
  /// Where a removed sink stopped; that of the topics for one that is in use.
  var positions: [String: TopicPosition] = [:]
  var files: Int64 = 0
  var events: Int64 = 0
  /// Compressed.
  var bytes: Int64 = 0
  /// Records that were read.
  var records: Int64 = 0
  /// How far the records of each object have been read, by object.
  var passes: [String: FilePass] = [:]
  /// As of when fields without events are, by object; milliseconds since 1970.
  var refreshedAt: [String: Int64] = [:]
  /// Events whose changes only a snapshot brings, by object.
  var gapEvents: [String: Int] = [:]
  /// Objects whose changes stages kept from the sink since their last snapshot.
  var leftOut: Set<String> = []
  var snapshotCommand: String
  /// How many records of a pass may lack a line without being a problem; nil for any number.
  var toleratedRefusals: Int?
  /// Files in progress.
  var openFiles = 0
  /// Runs have left files open, whatever the checkpoint says.
  private var hasOpenFiles = false
  /// Those of them that later runs continue.
  var continuedFiles: [ContinuedFile] = []
  /// The age at which these are finished.
  private var maxAge = Duration.zero
  /// How the newest finished files are; not of removed sinks.
  var output = OutputState()
  /// How all are, if that was asked for.
  var verification: OutputVerification?
  private(set) var newestCommitTimes: [String: String] = [:]
  /// Events that the checkpoint does not have, because an older one was put back.
  private var lostPositions: [PipelineStatus.Problem] = []

  init(_ settings: FilesSettings, _ reading: SinkStatusReading) throws {
    self.snapshotCommand = reading.configuration.command("snapshot")
    let state = reading.checkpoint?.sinks[settings.name]
    let pipeline = reading.configuration.name
    self.name = settings.name
    self.directory = settings.directory
    self.isNew = reading.checkpoint != nil && state == nil
    if state != nil { self.positions = reading.positions }
    self.openFiles = state?.openFileCount ?? 0
    self.continuedFiles = try ContinuedFile.list(in: state?.json, directory: settings.directory)
    self.hasOpenFiles = try FileSink.hasOpenFiles(in: settings.directory, pipeline: pipeline)
    self.maxAge = settings.rotateAge
    let passes = try FilePass.passes(in: state?.json, directory: settings.directory)
    self.passes = passes.filter { $1.isOfRecords }
    for pass in passes.values where pass.isRefresh {
      self.refreshedAt[pass.entity] = pass.readThrough
    }
    let gapEvents = try GapEvents(in: state?.json)
    (self.gapEvents, self.leftOut) = (gapEvents.byObject, gapEvents.leftOut)
    self.toleratedRefusals = reading.configuration.deadLetter.max
    let newest = try self.count(reading)
    self.lostPositions = try Self.lostPositions(newest, reading)
    self.output = try OutputState.read(
      directory: settings.directory, pipeline: pipeline, whenMissing: settings.whenMissing,
      state: state?.json)
    if reading.verifies {
      self.verification = try OutputVerification.read(
        [.records, .redriven, .snapshots], in: settings.directory, pipeline: pipeline,
        ignoringMissing: settings.whenMissing == .ignore)
    }
  }

  /// - Parameter kept: of `CheckpointDocument.removedSinks`; nil when it is of another kind of sink.
  init?(removed name: String, _ kept: RemovedSink, _ reading: SinkStatusReading) throws {
    guard let directory = kept.state.directory else { return nil }
    self.snapshotCommand = reading.configuration.command("snapshot")
    self.name = name
    self.directory = directory
    self.removedAt = kept.removedAt
    self.positions = kept.positions
    self.openFiles = kept.state.openFileCount
    // Its directory may be gone, which is nobody's problem now.
    _ = try? self.count(reading)
  }

  /// - Returns: the newest exported event of each topic.
  private mutating func count(_ reading: SinkStatusReading) throws -> [String: ExportedEvent] {
    var newest: [String: String] = [:]
    var exported: [String: ExportedEvent] = [:]
    let org = reading.checkpoint?.org
    for kind in [ExportedFile.Kind.records, .redriven] {
      try ExportedFile.visit(kind, in: self.directory, pipeline: reading.configuration.name) {
        file in
        guard org == nil || file.org == org else { return }
        self.files += 1
        self.events += file.events
        self.bytes += file.bytes
        if let time = file.lastCommitTimestamp, newest[file.topic, default: ""] < time {
          newest[file.topic] = time
        }
        guard kind == .records else { return }
        let last = exported[file.topic]
        if (last?.epoch ?? 0, last?.ordinal ?? -1) < (file.epoch, file.lastOrdinal) {
          exported[file.topic] = ExportedEvent(
            epoch: file.epoch, ordinal: file.lastOrdinal, replayID: file.lastReplayID)
        }
      }
    }
    self.newestCommitTimes = newest
    try ExportedFile.visit(.snapshots, in: self.directory, pipeline: reading.configuration.name) {
      file in
      guard org == nil || file.org == org else { return }
      self.files += 1
      self.records += file.lines
      self.bytes += file.bytes
    }
    return exported
  }

  /// What `run` refuses, too.
  private static func lostPositions(
    _ newest: [String: ExportedEvent], _ reading: SinkStatusReading
  ) throws -> [PipelineStatus.Problem] {
    /// Topics with events after their positions.
    func ahead(of document: CheckpointDocument) -> [String] {
      reading.configuration.source.topics.map(\.name).filter { topic in
        guard let last = newest[topic] else { return false }
        guard let position = document.topics[topic] else { return true }
        return (position.epoch, position.nextOrdinal) <= (last.epoch, last.ordinal)
      }
    }
    guard let document = reading.checkpoint, !ahead(of: document).isEmpty,
      // A run in progress may have committed since.
      let current = try FileCheckpointStore.peek(reading.configuration.statePaths)
    else { return [] }
    return ahead(of: current).map { topic in
      PipelineStatus.Problem(
        .data, EndReason.lostState.rawValue,
        RunFailure(
          olderCheckpoint: reading.configuration, topic: topic,
          newest: newest[topic]?.replayID ?? ""
        ).message)
    }
  }

  /// - Parameter now: milliseconds since 1970.
  func status(now: Int64) -> SinkStatus {
    SinkStatus(
      name: self.name, isRemoved: self.isRemoved,
      hasOutput: self.files > 0 || self.hasOpenFiles,
      newestCommitTimes: self.newestCommitTimes, problems: self.problems, remark: self.remark,
      summary: "files in \(self.directory)", lines: self.lines(now: now), json: self.json)
  }

  private var isRemoved: Bool { self.removedAt != nil }

  private var problems: [PipelineStatus.Problem] {
    let sink = "sink '\(self.name)'"
    return self.lostPositions + self.output.problems(of: sink) + self.refusals
      + (self.verification?.problems(of: sink) ?? [])
  }

  /// Records that are not in the files, although they were read.
  private var refusals: [PipelineStatus.Problem] {
    let refused = self.passes.values.filter { $0.refusedCount > 0 }.sorted { $0.entity < $1.entity }
    guard let tolerated = self.toleratedRefusals,
      refused.reduce(0, { $0 + $1.refusedCount }) > tolerated
    else { return [] }
    let objects = refused.map {
      "\(ProgressLine.grouped(Int64($0.refusedCount))) of \($0.entity)"
    }
    return [
      PipelineStatus.Problem(
        .data, "refused_records",
        "sink '\(self.name)': records were read and cannot be exported: "
          + "\(objects.joined(separator: ", ")); the log of the run and 'verify' show the reasons. "
          + "Correct the cause, then run '\(self.snapshotCommand)' to read all records again")
    ]
  }

  private func lines(now: Int64) -> [String] {
    var lines = [
      "\(Phrase.count(Int(self.events), "event"))"
        + (self.records > 0 ? ", \(Phrase.count(Int(self.records), "record")) read" : "")
        + " in \(Phrase.count(Int(self.files), "file")), "
        + "\(ProgressLine.size(self.bytes)), \(self.openFiles) open"
    ]
    for pass in self.passes.values.sorted(by: { $0.entity < $1.entity }) {
      let refreshed = self.refreshedAt[pass.key].map {
        ", fields without events as of \(UTCTime.timestamp(milliseconds: $0))"
      }
      lines.append("\(pass.entity): \(self.text(pass))\(refreshed ?? "")")
    }
    if let text = self.continuedText(now: now) { lines.append(text) }
    if self.isNew { lines.append("not in the checkpoint yet") }
    if self.output.missingCount > 0 {
      lines.append(
        "\(self.output.missingCount) of the newest \(self.output.fileCount) files are missing")
    }
    if let verification = self.verification { lines.append(verification.line) }
    if let removedAt = self.removedAt {
      lines.append(
        "removed \(PipelineStatus.moment(removedAt, now: now)), its position is kept for 72 h:")
      for (topic, position) in self.positions.sorted(by: { $0.key < $1.key }) {
        lines.append(
          "\(topic): \(PipelineStatus.lines(position).joined(separator: ", "))")
      }
    }
    return lines
  }

  private var continuedSince: Int64? { self.continuedFiles.map(\.openedAt).min() }

  private func continuedText(now: Int64) -> String? {
    guard let since = self.continuedSince else { return nil }
    let events = self.continuedFiles.reduce(0) { $0 + $1.events }
    let bytes = self.continuedFiles.reduce(0) { $0 + Int64($1.byteCount) }
    let isDue = now - since >= Int64(self.maxAge / .milliseconds(1))
    return "\(Phrase.count(Int(events), "event")) in open files (\(ProgressLine.size(bytes))), "
      + "the oldest open since \(UTCTime.timestamp(milliseconds: since)); the next run "
      + (isDue ? "finishes it" : "continues them")
  }

  private func text(_ pass: FilePass) -> String {
    if let finishedAt = pass.finishedAt {
      return "all \(Phrase.count(pass.rowCount, "record")) read "
        + UTCTime.timestamp(milliseconds: finishedAt)
        + self.missingColumns(pass)
        + (pass.refusedCount > 0
          ? ", \(ProgressLine.grouped(Int64(pass.refusedCount))) of them not exported" : "")
    }
    guard let total = pass.total else {
      return pass.rowCount == 0
        ? "all records are about to be read"
        : "\(ProgressLine.grouped(Int64(pass.rowCount))) records read so far"
    }
    return "\(ProgressLine.grouped(Int64(pass.rowCount))) of "
      + "\(ProgressLine.grouped(Int64(total))) records read"
  }

  /// Columns that records lack until an event brings them.
  private func missingColumns(_ pass: FilePass) -> String {
    var text = ""
    if !pass.newer.isEmpty {
      let names = pass.newer.sorted { $0.key < $1.key }.map { name, time in
        "\(name) since \(UTCTime.timestamp(milliseconds: time))"
      }
      text +=
        ", without columns that are newer (\(BlindFields.list(names))); run "
        + "'\(self.snapshotCommand)' to read them"
    }
    if !pass.unread.isEmpty {
      text +=
        ", without columns that could not be read (\(BlindFields.list(pass.unread.sorted()))); if "
        + "the user may see them now, run '\(self.snapshotCommand)'"
    }
    return text
  }

  private var remark: String? {
    let passes = self.passes.values.sorted { $0.entity < $1.entity }
    let unfinished = passes.filter { $0.finishedAt == nil }.map(\.entity)
    var reasons: [String] = []
    if !unfinished.isEmpty {
      reasons.append("the copy of \(unfinished.joined(separator: ", ")) is under way")
    }
    let lacking = passes.filter { !$0.newer.isEmpty }.map(\.entity)
    if !lacking.isEmpty {
      reasons.append("records of \(lacking.joined(separator: ", ")) lack newer columns")
    }
    let missing = self.missingRanges
    if !missing.isEmpty { reasons.append(Self.list("missing range", missing)) }
    if !self.gapEvents.isEmpty { reasons.append(Self.list("gap event", self.gapEvents)) }
    if !missing.isEmpty || !self.gapEvents.isEmpty {
      reasons[reasons.count - 1] += "; '\(self.snapshotCommand)' reads their records again"
    }
    if !self.leftOut.isEmpty {
      reasons.append(
        "stages left out changes of \(self.leftOut.sorted().joined(separator: ", ")); once they no "
          + "longer do, '\(self.snapshotCommand)' reads its records again")
    }
    guard !reasons.isEmpty else { return nil }
    return "sink '\(self.name)' is not complete: \(reasons.joined(separator: ", and "))"
  }

  private static func json(_ counts: [String: Int]) -> JSONValue {
    JSONValue(
      .object(counts.sorted { $0.key < $1.key }.map { JSONMember($0.key, .integer($0.value)) }))
  }

  private static func list(_ what: String, _ counts: [String: Int]) -> String {
    Phrase.count(counts.values.reduce(0, +), what) + " of "
      + counts.keys.sorted().joined(separator: ", ")
  }

  /// By object. A channel that no snapshot has read has the name of the channel.
  private var missingRanges: [String: Int] {
    var counts: [String: Int] = [:]
    guard !self.isRemoved else { return counts }
    for (topic, position) in self.positions where TopicName.hasChanges(topic) {
      let objects =
        TopicName.isChannel(topic) && !self.passes.isEmpty
        ? Array(self.passes.keys) : [TopicName.entity(topic)]
      for object in objects {
        let count = FilePass.missingRanges(of: position, since: self.passes[object])
        if count > 0 { counts[object, default: 0] += count }
      }
    }
    return counts
  }

  private var json: JSONValue {
    [
      "name": .string(self.name), "type": .string(FilesSettings.type),
      "directory": .string(self.directory),
      "new": .boolean(self.isNew),
      "removed_at": PipelineStatus.time(self.removedAt),
      "positions": PipelineStatus.json(self.positions),
      "events": .integer(self.events), "files": .integer(self.files),
      "bytes": .integer(self.bytes), "open_files": .integer(self.openFiles),
      "open_since": PipelineStatus.time(self.continuedSince),
      "open_events": .integer(self.continuedFiles.reduce(0) { $0 + $1.events }),
      "records": .integer(self.records),
      "gap_events": Self.json(self.gapEvents), "missing_ranges": Self.json(self.missingRanges),
      "left_out": .array(self.leftOut.sorted().map { .string($0) }),
      "snapshots": .array(
        self.passes.values.sorted { $0.entity < $1.entity }.map { pass -> JSONValue in
          [
            "object": .string(pass.entity), "number": .integer(pass.number),
            "begun_at": PipelineStatus.time(pass.begunAt),
            "finished_at": PipelineStatus.time(pass.finishedAt),
            "rows": .integer(pass.rowCount),
            "total": pass.total.map { .integer($0) } ?? nil,
            "refreshed_at": PipelineStatus.time(self.refreshedAt[pass.key]),
            "unread_columns": .array(pass.unread.sorted().map { .string($0) }),
            "newer_columns": JSONValue(
              .object(
                pass.newer.sorted { $0.key < $1.key }.map {
                  JSONMember($0.key, PipelineStatus.time($0.value))
                })),
          ]
        }),
      "newest_files": .integer(self.output.fileCount),
      "newest_files_missing": .integer(self.output.missingCount),
      "verified": self.verification?.json ?? nil,
    ]
  }
}

extension OutputState {
  func problems(of thing: String) -> [PipelineStatus.Problem] {
    self.faults.map { fault in
      PipelineStatus.Problem(
        .data, self.isElsewhere ? "other_directory" : "lost_output",
        "\(thing): \(fault): \(self.remedy)")
    }
  }
}

extension OutputVerification {
  func problems(of thing: String) -> [PipelineStatus.Problem] {
    guard !self.faults.isEmpty else { return [] }
    return [
      PipelineStatus.Problem(
        .data, "lost_output",
        "\(thing): of all finished files \(self.missingCount) are missing, "
          + "\(self.changedCount) changed: \(self.faults.joined(separator: "; "))")
    ]
  }

  var line: String {
    "verified: \(ProgressLine.grouped(self.fileCount)) files, "
      + "\(ProgressLine.size(self.byteCount)), are as written; "
      + "\(self.missingCount) missing, \(self.changedCount) changed"
  }

  var json: JSONValue {
    [
      "files": .integer(self.fileCount), "bytes": .integer(self.byteCount),
      "missing": .integer(self.missingCount),
      "changed": .integer(self.changedCount),
      "faults": .array(self.faults.map { .string($0) }),
    ]
  }
}
