internal import Bytes
internal import DurableFiles
package import JSON
package import Pipeline

/// Compares the files of one object with its records as the org has them.
///
/// The files are folded before the org is read, so later writes do not count: records that change
/// after that are newer than the horizon. A record that was purged since then has no time, so
/// candidates are folded again before they are read again. Data that does not fit into memory is
/// sorted on disk. Used by one thread at a time.
package final class FilesVerification {
  /// The files and the org to compare.
  package struct Subject: Sendable {
    /// Absolute.
    package var directory: String
    package var pipeline: String
    package var topic: String
    /// ID of the checkpoint's org; files of other orgs do not count.
    package var org: String
    /// The sink's state in the checkpoint, read each time that the files are read.
    package var state: @Sendable () throws -> JSONValue?
    package var int64AsStrings: Bool
    /// Records that are not compared.
    package var erased: ErasedRecords

    package init(
      directory: String, pipeline: String, topic: String, org: String, int64AsStrings: Bool,
      erased: ErasedRecords = ErasedRecords(),
      state: @escaping @Sendable () throws -> JSONValue?
    ) {
      self.directory = directory
      self.pipeline = pipeline
      self.topic = topic
      self.org = org
      self.state = state
      self.int64AsStrings = int64AsStrings
      self.erased = erased
    }
  }

  private let subject: Subject
  private let entity: String
  private let columns: ComparedColumns
  private let comparesStamps: Bool
  private let format: NDJSONFormat
  private let scratch: ScratchFiles
  private let limits: EntrySorter.Limits
  private var copy: FileCopy
  private var encoder: NDJSONEncoder?
  private var lines = ByteBuffer()
  private var line: RecordLine
  private var comparison: RecordComparison
  private var sorter: EntrySorter
  private var sequence: Int64 = 0
  private var records: SortedEntries?
  private var candidates: Candidates
  /// The place in the copy, during the rounds.
  private var cursor: CopyCursor?
  /// The candidates requested in this round.
  private var asked: [Candidates.Entry] = []
  /// The pass's counts by outcome.
  private var tally: [RecordComparison.Outcome: Int] = [:]
  /// Counts by outcome of former candidates.
  private var settled: [RecordComparison.Outcome: Int] = [:]
  /// Records of the sample that are not equal, which the pass has counted as equal.
  private var unequalSampleCount = 0
  private var sampledCount = 0
  /// Records without an ID, by outcome.
  private var unnamed: [RecordComparison.Outcome: Int] = [:]
  private var omissions = OmissionReasons()
  private var receivedCount = 0
  private var total = 0
  /// Columns that some records lacked.
  private var absent: Set<Int> = []

  /// - Parameters:
  ///   - layout: the layout of the records, after all stages.
  ///   - horizon: milliseconds since 1970; later changes are not compared.
  ///   - excluding: names of fields that are not compared.
  ///   - unread: names of fields that the org does not return, `Parent.Child` for a part.
  ///   - comparesStamps: `SystemModstamp` shows changes, because no field of the layout does.
  /// - Throws: `FileSinkError`: `.unverifiable` for lines without the required members,
  ///   `.inconsistent`, `.lostOutput`, `.io`; errors of `subject.state`.
  package convenience init(
    of subject: Subject, layout: RecordLayout, horizon: Int64, excluding: Set<String> = [],
    unread: Set<String> = [], comparesStamps: Bool = false, scratch: ScratchFiles
  ) throws {
    try self.init(
      of: subject, layout: layout, horizon: horizon, excluding: excluding, unread: unread,
      comparesStamps: comparesStamps, scratch: scratch, limits: .init())
  }

  init(
    of subject: Subject, layout: RecordLayout, horizon: Int64, excluding: Set<String> = [],
    unread: Set<String> = [], comparesStamps: Bool = false, scratch: ScratchFiles,
    limits: EntrySorter.Limits
  ) throws {
    self.subject = subject
    self.entity = layout.entity
    self.comparesStamps = comparesStamps
    let pass = try FilePass.passes(in: subject.state(), directory: subject.directory)[
      layout.entity]
    self.columns = try ComparedColumns(
      layout, excluding: excluding, unread: unread, unfilled: pass?.missing(of: layout) ?? [])
    self.format = NDJSONFormat(int64AsStrings: subject.int64AsStrings)
    self.scratch = scratch
    self.limits = limits
    self.line = RecordLine(self.columns)
    self.comparison = RecordComparison(columnCount: self.columns.count, horizon: horizon)
    self.sorter = EntrySorter(scratch, limits: limits)
    self.candidates = Candidates(scratch)
    self.copy = try FileCopy.read(
      FileCopy.Source(subject, entity: layout.entity), self.columns, scratch: scratch,
      limits: limits)
    self.comparison.latest = Self.latest
  }

  /// How much the clocks of the org and of this machine may differ, in milliseconds.
  private static let clockTolerance: Int64 = 5 * 60 * 1000

  private static var latest: Int64 { UTCTime.now() + Self.clockTolerance }

  // MARK: All records

  /// Takes records of the whole object, in rows of the layout, and those that have no row.
  package func take(_ batch: RecordBatch, omitted: [OmittedRecord] = []) throws {
    self.receivedCount += omitted.count
    try self.forEachRecord(of: batch) { id, bytes in
      self.receivedCount += 1
      try self.append(id, bytes)
    }
    for record in omitted {
      self.omissions.add(record)
      guard let id = record.recordID else {
        self.unnamed[record.kind == .refused ? .refusedMissing : .unreadableMissing, default: 0] +=
          1
        continue
      }
      try self.append(Array(id.utf8), Self.patch(of: record))
    }
  }

  private static func patch(of record: OmittedRecord) -> [UInt8] {
    var patch = RecordPatch(.update)
    switch record.kind {
    case .leftOut: patch.flags.insert(.isLeftOut)
    case .refused: patch.flags.insert(.isRefused)
    case .unreadable: patch.flags.insert(.isUnreadable)
    }
    patch.time = record.stamp ?? Int64.min
    var bytes: [UInt8] = []
    patch.append(to: &bytes)
    return bytes
  }

  /// Forgets the records so far, because all are read again.
  package func startOver() {
    self.sorter = EntrySorter(self.scratch, limits: self.limits)
    self.unnamed = [:]
    self.omissions = OmissionReasons()
    self.receivedCount = 0
    self.absent = []
  }

  private func append(_ id: [UInt8], _ bytes: [UInt8]) throws(FileSystemError) {
    var key = id
    key.append(FileCopy.separator)
    key.appendSortable(self.sequence)
    self.sequence += 1
    try self.sorter.append(key: key, value: bytes)
  }

  private static let sequenceByteCount = 9

  /// Called after all records. Compares them with the copy, in the order of their IDs.
  package func finishPass() throws {
    let records = try self.sorter.finish()
    self.records = records
    let reader = try records.reader()
    let cursor = CopyCursor(self.copy)
    var id: [UInt8] = []
    var record: [UInt8] = []
    func end() throws {
      guard !id.isEmpty else { return }
      try cursor.advance(to: id) { try self.judgeExtra($0, $1) }
      let outcome = self.comparison.outcome(
        of: record, copy: cursor.value(of: id), comparesStamps: self.comparesStamps)
      self.total += 1
      if outcome.isDrift {
        try self.candidates.append(.init(id: id, outcome, self.comparison.fields.sorted()))
      } else {
        self.tally[outcome, default: 0] += 1
      }
    }
    while try reader.next() {
      let key = reader.key.dropLast(Self.sequenceByteCount)
      // If a record arrives twice, the later row counts.
      if !key.elementsEqual(id) {
        try end()
        id = Array(key)
      }
      record = reader.value
    }
    try end()
    try cursor.advance(to: nil) { try self.judgeExtra($0, $1) }
    try self.candidates.close()
  }

  private func judgeExtra(_ id: [UInt8], _ copy: [UInt8]) throws(FileSystemError) {
    let outcome = self.comparison.outcomeOfMissing(copy: copy, asked: false)
    if outcome == .gone { return }
    self.total += 1
    if outcome == .extra {
      try self.candidates.append(.init(id: id, outcome, []))
    } else {
      self.tally[outcome, default: 0] += 1
    }
  }

  // MARK: Some records

  /// IDs of randomly chosen records that are equal so far.
  package func sample(_ count: Int) throws -> [String] {
    guard let records = self.records else { preconditionFailure("a sample before the pass") }
    let reader = try records.reader()
    let cursor = CopyCursor(self.copy)
    var chosen: [[UInt8]] = []
    var seen = 0
    var id: [UInt8] = []
    var record: [UInt8] = []
    func consider() throws {
      guard !id.isEmpty else { return }
      try cursor.advance(to: id) { _, _ in }
      let outcome = self.comparison.outcome(
        of: record, copy: cursor.value(of: id), comparesStamps: self.comparesStamps)
      guard outcome == .equal else { return }
      seen += 1
      if chosen.count < count {
        chosen.append(id)
      } else if case let place = Int.random(in: 0..<seen), place < count {
        chosen[place] = id
      }
    }
    while try reader.next() {
      let key = reader.key.dropLast(Self.sequenceByteCount)
      if !key.elementsEqual(id) {
        try consider()
        id = Array(key)
      }
      record = reader.value
    }
    try consider()
    chosen.sort { $0.precedes($1) }
    self.cursor = CopyCursor(self.copy)
    return chosen.map { String(decoding: $0, as: UTF8.self) }
  }

  /// Compares records of the sample, which come in the order of `sample`.
  package func takeSample(_ batch: RecordBatch, omitted: [OmittedRecord] = []) throws {
    guard let cursor = self.cursor else { preconditionFailure("records of no sample") }
    let records = try self.records(of: batch, omitted)
    for (id, record) in records.sorted(by: { $0.key.precedes($1.key) }) {
      self.sampledCount += 1
      try cursor.advance(to: id) { _, _ in }
      let outcome = self.comparison.outcome(of: record, copy: cursor.value(of: id))
      guard outcome != .equal else { continue }
      self.unequalSampleCount += 1
      if outcome.isDrift {
        try self.candidates.append(.init(id: id, outcome, self.comparison.fields.sorted()))
      } else {
        self.settled[outcome, default: 0] += 1
      }
    }
  }

  private func records(
    of batch: RecordBatch, _ omitted: [OmittedRecord]
  ) throws -> [[UInt8]: [UInt8]] {
    var records: [[UInt8]: [UInt8]] = [:]
    for record in omitted {
      self.omissions.add(record)
      if let id = record.recordID { records[Array(id.utf8)] = Self.patch(of: record) }
    }
    try self.forEachRecord(of: batch) { records[$0] = $1 }
    return records
  }

  // MARK: Candidates

  /// More IDs than this are not remembered.
  private static let maxRememberedCount = 200_000

  /// Reads from the files of today what they say of the records that still differ.
  package func lookAgain() throws {
    var ids: Set<[UInt8]>? = []
    let entries = self.candidates.entries()
    while let known = ids?.count, let entry = try entries.next() {
      if known < Self.maxRememberedCount { ids?.insert(entry.id) } else { ids = nil }
    }
    self.copy = try FileCopy.read(
      FileCopy.Source(self.subject, entity: self.entity), self.columns, ids: ids,
      scratch: self.scratch, limits: self.limits)
    self.comparison.latest = Self.latest
    self.cursor = nil
  }

  /// Some of the records that still differed when they were last read; empty at the end of the
  /// round.
  package func candidates(beginsRound: Bool, limit: Int) throws -> [String] {
    if beginsRound { try self.candidates.close() }
    self.asked = try self.candidates.next(limit)
    if self.asked.isEmpty { try self.candidates.endRound() }
    return self.asked.map { String(decoding: $0.id, as: UTF8.self) }
  }

  /// Compares candidates that were read again. Candidates that are neither in the batch nor missing
  /// could not be read.
  ///
  /// - Parameter missing: IDs that were found neither as records nor in the recycle bin.
  package func takeAgain(
    _ batch: RecordBatch, missing: [String], omitted: [OmittedRecord] = []
  ) throws {
    let records = try self.records(of: batch, omitted)
    let missing = Set(missing)
    var cursor = self.cursor
    for entry in self.asked {
      // Candidates of the pass come before those of the sample, each group in order, so the cursor
      // may have to start again.
      if cursor.map({ !$0.canReach(entry.id) }) ?? true { cursor = CopyCursor(self.copy) }
      guard let cursor else { continue }
      try cursor.advance(to: entry.id) { _, _ in }
      let copy = cursor.value(of: entry.id)
      var next = entry
      next.fields = []
      if let record = records[entry.id] {
        next.outcome = self.comparison.outcome(of: record, copy: copy)
        next.fields = self.comparison.fields.sorted()
      } else if missing.contains(String(decoding: entry.id, as: UTF8.self)) {
        next.outcome = self.comparison.outcomeOfMissing(copy: copy, asked: true)
      } else {
        next.outcome = .unreadable
      }
      if next.outcome.isDrift {
        try self.candidates.append(next)
      } else {
        self.settled[next.outcome, default: 0] += 1
      }
    }
    self.cursor = cursor
  }

  // MARK: Rows

  /// Encodes records as runs do, and reads the lines as if from files.
  private func forEachRecord(
    of batch: RecordBatch, _ body: (_ id: [UInt8], _ patch: [UInt8]) throws -> Void
  ) throws {
    let encoder = self.encoder(for: batch.layout)
    var counts = Array(repeating: 0, count: self.columns.count)
    var imageCount = 0
    var (id, bytes): ([UInt8], [UInt8]) = ([], [])
    for event in batch.events {
      encoder.read = RowOrigin.Read(
        readAt: 0, epoch: 0, lastOrdinal: -1, stamp: event.commitTimestamp ?? 0)
      for row in event.firstRow..<event.firstRow + event.rowCount {
        self.lines.removeAll()
        encoder.append(row: row, of: batch, to: &self.lines)
        let text = UnsafeBufferPointer(rebasing: self.lines.bytes.dropLast())
        let head: RecordLine.Head?
        do throws(RecordLine.Fault) {
          head = try self.line.read(text, epoch: 0, ordinal: 0, id: &id, bytes: &bytes)
        } catch {
          preconditionFailure("a line of our own: \(error.reason)")
        }
        guard let head else { continue }
        if head.patch.effect != .deletion {
          imageCount += 1
          for column in counts.indices where self.line.has(column) { counts[column] += 1 }
        }
        try body(id, bytes)
      }
    }
    for column in counts.indices where counts[column] > 0 && counts[column] < imageCount {
      self.absent.insert(column)
    }
  }

  private func encoder(for layout: RecordLayout) -> NDJSONEncoder {
    if let encoder = self.encoder, encoder.layout === layout { return encoder }
    let encoder = NDJSONEncoder(layout: layout, format: self.format, isOfReads: true)
    self.encoder = encoder
    return encoder
  }

  // MARK: Findings

  /// The findings, with some IDs of each kind.
  package func findings(idLimit: Int) throws -> CopyFindings {
    var findings = CopyFindings()
    for counts in [self.tally, self.settled, self.unnamed] {
      for (outcome, count) in counts { findings.add(count, kind: outcome.kind) }
    }
    findings.equal -= self.unequalSampleCount
    findings.sampled = self.sampledCount
    findings.total = self.total + self.unnamed.values.reduce(0, +)
    findings.received = self.receivedCount
    findings.omissions = self.omissions
    var fields: [Int: CopyFindings.Field] = [:]
    let entries = self.candidates.entries()
    while let entry = try entries.next() {
      let id = String(decoding: entry.id, as: UTF8.self)
      findings.add(1, kind: entry.outcome.kind)
      if findings.records[entry.outcome.kind, default: []].count < idLimit {
        findings.records[entry.outcome.kind, default: []].append(id)
      }
      guard entry.outcome == .differing else { continue }
      for column in entry.fields {
        var field =
          fields[column]
          ?? CopyFindings.Field(field: self.columns.paths[column], count: 0)
        field.count += 1
        if field.records.count < idLimit { field.records.append(id) }
        fields[column] = field
      }
    }
    findings.fields = fields.sorted { $0.key < $1.key }.map(\.value)
    findings.unfilled = self.columns.unfilled
    findings.notComparable =
      self.columns.leftOut
      + self.absent.sorted().map {
        CopyFindings.LeftOut(field: self.columns.paths[$0], reason: "not read of every record")
      }
    return findings
  }
}
