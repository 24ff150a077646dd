internal import Bytes
internal import Clocks
package import JSON
package import Pipeline

/// The progress of a pass over the records of an object, stored in the checkpoint together with the
/// files of its rows.
package struct FilePass: Sendable, Equatable {
  package var entity: String
  /// As `ReadPass.part`.
  package var part: String?
  /// Counts the passes over the object, from 1.
  package var number: Int
  package var state: ReadPass.State
  package var job: String?
  package var locator: String?
  package var row: Int
  /// Records read, of all jobs of the pass.
  package var rowCount: Int
  package var total: Int?
  /// Records of the current job that have no line, because a value cannot be read or a stage refuses
  /// them.
  package internal(set) var refusedCount = 0
  /// Counts the jobs of the pass, from 1; 0 before the first. If one is lost, all records are read
  /// again, into new files.
  var request: Int
  /// The place in the stream before which the pass belongs: when its records were requested, every
  /// reader could see all earlier changes.
  var epoch: Int
  var nextOrdinal: Int64
  /// Milliseconds since 1970.
  package var begunAt: Int64
  package var requestedAt: Int64?
  /// The time when every record had arrived.
  package var finishedAt: Int64?
  /// The last earlier pass that was finished, which counts until this one is.
  private var earlier: Completion?

  /// A finished pass.
  struct Completion: Sendable, Equatable {
    var epoch: Int
    /// Milliseconds since 1970.
    var begunAt: Int64
    var finishedAt: Int64
  }

  /// The last pass that was finished, this one or an earlier one.
  var completion: Completion? {
    self.finishedAt.map {
      Completion(epoch: self.epoch, begunAt: self.begunAt, finishedAt: $0)
    } ?? self.earlier
  }

  /// As of when the values of the last finished pass are; milliseconds since 1970.
  package var readThrough: Int64? { self.completion?.begunAt }

  /// The number of a topic's epochs that began because a position was unusable, and that no later
  /// pass makes up for.
  ///
  /// - Parameter pass: the pass over the object; nil if there is none.
  package static func missingRanges(of position: TopicPosition, since pass: FilePass?) -> Int {
    min(position.holes, max(0, position.epoch - (pass?.completion?.epoch ?? 0)))
  }

  /// The columns of the current job's lines so far; empty if an earlier version began and finished
  /// the pass.
  private(set) var columns: Set<String> = []
  /// The columns of the object that lines of the pass lack, because the user may not see them or
  /// REST does not have them.
  package private(set) var unread: Set<String> = []
  /// The columns of later events that lines of the pass lack, with the time of the first such
  /// event here.
  package private(set) var newer: [String: Int64] = [:]

  /// - Parameters:
  ///   - batch: the batch that came with the pass.
  ///   - earlier: the last pass that was finished.
  init(
    beginning pass: ReadPass, _ batch: RecordBatch, at time: Int64, after earlier: Completion? = nil
  ) {
    self.earlier = earlier
    self.entity = pass.entity
    self.part = pass.part
    self.number = pass.number
    self.state = pass.state
    self.row = 0
    self.rowCount = 0
    self.request = 0
    // If this sink joins a pass in the middle, the beginning of the pass is unknown.
    let isBegin = pass.state == .begun
    self.epoch = isBegin ? batch.epoch : 0
    self.nextOrdinal = isBegin ? batch.nextOrdinal : 0
    self.begunAt = time
  }

  private static func names(_ layout: RecordLayout) -> Set<String> {
    Set(layout.columns.lazy.filter { !$0.isMetadata }.map(\.name))
  }

  /// Notes the columns of an event that lines of the pass lack.
  mutating func note(_ layout: RecordLayout, at time: Int64) {
    for name in self.missing(of: layout)
    where self.newer[name] == nil && !self.unread.contains(name) {
      self.newer[name] = time
    }
  }

  /// The columns of a layout that lines of the finished pass lack.
  package func missing(of layout: RecordLayout) -> Set<String> {
    guard self.finishedAt != nil, !self.columns.isEmpty else { return [] }
    return Self.names(layout).subtracting(self.columns)
  }

  /// Notes the columns of records that were read. A field that cannot be read is absent from every
  /// row; so may be a computed column, whose fields count themselves.
  mutating func note(_ reads: RecordBatch) {
    for column in reads.layout.columns
    where !column.isMetadata && !self.columns.contains(column.name) {
      let slots = column.slots
      let isThere =
        slots.isEmpty || column.isComputed
        || (0..<reads.rowCount).contains { row in
          let presence = reads.row(row).presence
          return slots.contains { presence[$0] != RecordBatch.Presence.absent }
        }
      if isThere { self.columns.insert(column.name) }
    }
  }

  /// The part of reads of changed records by their IDs, of which only the number is needed.
  static let changed = "changed"

  /// Whether the pass reads all columns of all records, or of those that have changed without events.
  package var isOfRecords: Bool { self.part == nil || self.part == ReadPass.changes }

  /// Whether the pass reads fields that change without events.
  package var isRefresh: Bool { self.part?.hasPrefix(Refresh.partPrefix) == true }

  /// Notes the columns that a later pass has read for all records.
  mutating func note(refresh: FilePass) {
    guard self.finishedAt != nil, !self.columns.isEmpty else { return }
    self.columns.formUnion(refresh.columns)
    self.unread.subtract(refresh.columns)
    for name in refresh.columns { self.newer[name] = nil }
  }

  /// - Parameter layout: the layout of the records.
  mutating func finish(_ layout: RecordLayout, at time: Int64) {
    guard self.finishedAt == nil else { return }
    self.finishedAt = time
    guard !self.isRefresh else { return }
    let names = Self.names(layout)
    // Without a row, none lacks a column.
    if self.columns.isEmpty { self.columns = names }
    self.unread = names.subtracting(self.columns)
  }

  /// The place in the stream and the job, for the names of files.
  var place: SegmentKey.Pass { .init(number: self.number, request: max(self.request, 1)) }

  mutating func advance(to pass: ReadPass, _ clock: InstantClock) {
    if pass.job != self.job, pass.job != nil {
      self.request += 1
      self.refusedCount = 0
      self.columns = []
    }
    self.state = pass.state
    self.job = pass.job
    self.locator = pass.locator
    self.row = pass.row
    self.rowCount = pass.rowCount
    self.total = pass.total
    self.requestedAt = pass.requestedAt.map { clock.milliseconds(at: $0) }
  }

  func pass(_ clock: InstantClock) -> ReadPass {
    var pass = ReadPass(
      entity: self.entity, part: self.part, number: self.number, state: self.state)
    pass.job = self.job
    pass.locator = self.locator
    pass.row = self.row
    pass.rowCount = self.rowCount
    pass.total = self.total
    pass.begunAt = clock.instant(of: self.begunAt)
    pass.requestedAt = self.requestedAt.map { clock.instant(of: $0) }
    return pass
  }
}

extension FilePass {
  static let key = "passes"

  var json: JSONValue {
    func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? nil }
    func number(_ number: Int64?) -> JSONValue { number.map { .integer($0) } ?? nil }
    return [
      "entity": .string(self.entity), "part": text(self.part), "number": .integer(self.number),
      "state": .string(self.state.rawValue), "job": text(self.job),
      "locator": text(self.locator), "row": .integer(self.row),
      "rows": .integer(self.rowCount), "total": number(self.total.map { Int64($0) }),
      "refused": .integer(self.refusedCount),
      "request": .integer(self.request), "epoch": .integer(self.epoch),
      "next_ordinal": .integer(self.nextOrdinal), "begun_at_ms": .integer(self.begunAt),
      "requested_at_ms": number(self.requestedAt), "finished_at_ms": number(self.finishedAt),
      "earlier": self.earlier.map {
        [
          "epoch": .integer($0.epoch), "begun_at_ms": .integer($0.begunAt),
          "finished_at_ms": .integer($0.finishedAt),
        ]
      } ?? nil,
      "columns": .array(self.columns.sorted().map { .string($0) }),
      "unread_columns": .array(self.unread.sorted().map { .string($0) }),
      "newer_columns_ms": JSONValue(
        .object(
          self.newer.sorted { $0.key < $1.key }.map { JSONMember($0.key, .integer($0.value)) })),
    ]
  }

  /// - Throws: `FileSinkError.inconsistent` for anything that `json` does not produce.
  init(json: JSONValue) throws(FileSinkError) {
    func count(_ key: String) -> Int? {
      json[key]?.integer.flatMap { $0 >= 0 ? Int($0) : nil }
    }
    guard let entity = json["entity"]?.string, let number = count("number"), number > 0,
      let state = json["state"]?.string.flatMap({ ReadPass.State(rawValue: $0) }),
      let row = count("row"), let rowCount = count("rows"), let request = count("request"),
      let epoch = count("epoch"), let ordinal = count("next_ordinal"),
      let begunAt = json["begun_at_ms"]?.calendarTime
    else { throw Self.damaged }
    self.entity = entity
    self.part = json["part"]?.string
    self.number = number
    self.state = state
    self.job = json["job"]?.string
    self.locator = json["locator"]?.string
    self.row = row
    self.rowCount = rowCount
    self.total = count("total")
    // Earlier versions did not store it.
    self.refusedCount = count("refused") ?? 0
    self.request = request
    self.epoch = epoch
    self.nextOrdinal = Int64(ordinal)
    self.begunAt = begunAt
    self.requestedAt = json["requested_at_ms"]?.calendarTime
    self.finishedAt = json["finished_at_ms"]?.calendarTime
    if let earlier = json["earlier"], let epoch = earlier["epoch"]?.integer,
      let begunAt = earlier["begun_at_ms"]?.calendarTime,
      let finishedAt = earlier["finished_at_ms"]?.calendarTime
    {
      self.earlier = Completion(epoch: Int(epoch), begunAt: begunAt, finishedAt: finishedAt)
    }
    self.columns = Set((json["columns"]?.array ?? []).compactMap(\.string))
    self.unread = Set((json["unread_columns"]?.array ?? []).compactMap(\.string))
    for member in json["newer_columns_ms"]?.members ?? [] {
      self.newer[member.name] = member.value.calendarTime
    }
    // Whether a pass is plausible depends on no clock.
    guard self.pass(InstantClock(reading: 0, readAt: ProcessClock().now)).isPlausible,
      self.request <= 1_000_000_000, self.job == nil || self.request > 0
    else { throw Self.damaged }
  }

  static let damaged = FileSinkError(
    .inconsistent,
    "the checkpoint's entry for a snapshot is damaged; put back a copy of the checkpoint, or move it "
      + "away and run 'checkpoint restore --from-manifest'")

  /// Identifies the pass among those of the sink.
  package var key: String { self.part.map { "\(self.entity) \($0)" } ?? self.entity }

  /// The passes over all objects, by key. That of a pass over all records is the object's name.
  ///
  /// - Parameters:
  ///   - state: the sink's state; earlier versions stored no passes.
  ///   - directory: the sink's current directory. Records read into another directory are not in
  ///     it.
  package static func passes(
    in state: JSONValue?, directory: String
  ) throws(FileSinkError) -> [String: FilePass] {
    guard let list = state?[Self.key]?.array, state?["directory"]?.string == directory else {
      return [:]
    }
    var passes: [String: FilePass] = [:]
    for json in list {
      let pass = try FilePass(json: json)
      passes[pass.key] = pass
    }
    return passes
  }
}

/// One reading of the wall clock, which converts instants of this run.
struct InstantClock: Sendable {
  /// Milliseconds since 1970.
  let reading: Int64
  let readAt: ContinuousClock.Instant

  func milliseconds(at instant: ContinuousClock.Instant) -> Int64 {
    let (seconds, attoseconds) = (instant - self.readAt).components
    return self.reading + seconds * 1000 + attoseconds / 1_000_000_000_000_000
  }

  func instant(of milliseconds: Int64) -> ContinuousClock.Instant {
    self.readAt + .milliseconds(milliseconds - self.reading)
  }
}
