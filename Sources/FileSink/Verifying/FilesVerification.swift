internal import Bytes
internal import DurableFiles
public import JSON
public import Pipeline

/// Compares the files of one object with its records as the org has them.
///
/// The files are folded first, so later writes do not count: records that change after that are
/// newer than the horizon. Data that does not fit into memory is sorted on disk. Used by one thread
/// at a time.
public final class FilesVerification {
  /// The files and the org to compare.
  public struct Subject: Sendable {
    /// Absolute.
    public var directory: String
    public var pipeline: String
    public var topic: String
    /// ID of the checkpoint's org; files of other orgs do not count.
    public var org: String
    /// The sink's state in the checkpoint.
    public var state: JSONValue?
    public var int64AsStrings: Bool

    public init(
      directory: String, pipeline: String, topic: String, org: String, state: JSONValue?,
      int64AsStrings: Bool
    ) {
      self.directory = directory
      self.pipeline = pipeline
      self.topic = topic
      self.org = org
      self.state = state
      self.int64AsStrings = int64AsStrings
    }
  }

  private let columns: ComparedColumns
  private let options: NDJSONOptions
  private let scratch: ScratchFiles
  private let limits: EntrySorter.Limits
  private let copy: FileCopy
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
  /// Candidates of the sample, which the pass has counted as equal.
  private var sampleCandidateCount = 0
  private var sampledCount = 0
  private var unreadableCount = 0
  /// Columns that some records lacked.
  private var absent: Set<Int> = []

  /// - Parameters:
  ///   - layout: the layout of the records, after all stages.
  ///   - horizon: milliseconds since 1970; later changes are not compared.
  /// - Throws: `FileSinkError`: `.unverifiable` for lines without the required members,
  ///   `.inconsistent`, `.lostOutput`, `.io`.
  public convenience init(
    of subject: Subject, layout: RecordLayout, horizon: Int64, scratch: ScratchFiles
  ) throws(FileSinkError) {
    try self.init(
      of: subject, layout: layout, horizon: horizon, scratch: scratch, limits: .init())
  }

  init(
    of subject: Subject, layout: RecordLayout, horizon: Int64, scratch: ScratchFiles,
    limits: EntrySorter.Limits
  ) throws(FileSinkError) {
    self.columns = try ComparedColumns(layout)
    self.options = NDJSONOptions(int64AsStrings: subject.int64AsStrings)
    self.scratch = scratch
    self.limits = limits
    self.line = RecordLine(self.columns)
    self.comparison = RecordComparison(columnCount: self.columns.count, horizon: horizon)
    self.sorter = EntrySorter(scratch, limits: limits)
    self.candidates = Candidates(scratch)
    self.copy = try FileCopy.read(
      FileCopy.Source(
        directory: subject.directory, pipeline: subject.pipeline, entity: layout.entity,
        topic: subject.topic, org: subject.org, state: subject.state),
      self.columns, scratch: scratch, limits: limits)
  }

  // MARK: All records

  /// Takes records of the whole object, in rows of the layout.
  public func take(_ batch: RecordBatch) throws {
    try self.forEachRecord(of: batch) { id, bytes in try self.append(id, bytes) }
  }

  /// Forgets the records so far, because all are read again.
  public func startOver() {
    self.sorter = EntrySorter(self.scratch, limits: self.limits)
    self.unreadableCount = 0
    self.absent = []
  }

  /// Counts a record of the org that cannot become a row.
  public func noteUnreadable(_ recordID: String?) throws {
    self.unreadableCount += 1
    guard let recordID, self.records == nil else { return }
    var patch = RecordPatch(.update)
    patch.flags.insert(.isUnreadable)
    var bytes: [UInt8] = []
    patch.append(to: &bytes)
    try self.append(Array(recordID.utf8), bytes)
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
  public func finishPass() throws {
    let records = try self.sorter.finish()
    self.records = records
    let reader = try records.reader()
    let cursor = CopyCursor(self.copy)
    var id: [UInt8] = []
    var record: [UInt8] = []
    func end() throws {
      guard !id.isEmpty else { return }
      try cursor.advance(to: id) { try self.judgeExtra($0, $1) }
      let outcome = self.comparison.outcome(of: record, copy: cursor.value(of: id))
      // These were counted when they arrived.
      if outcome != .unreadable { self.tally[outcome, default: 0] += 1 }
      if outcome == .missing || outcome == .differing {
        try self.candidates.append(
          .init(id: id, .pass, outcome, self.comparison.fields.sorted()))
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
    self.tally[outcome, default: 0] += 1
    if outcome == .extra { try self.candidates.append(.init(id: id, .pass, outcome, [])) }
  }

  // MARK: Some records

  /// IDs of randomly chosen records that do not differ so far.
  public func sample(_ count: Int) throws -> [String] {
    guard let records = self.records else { preconditionFailure("a sample before the pass") }
    let reader = try records.reader()
    let candidates = self.candidates.entries()
    var candidate = try candidates.next()
    var chosen: [[UInt8]] = []
    var seen = 0
    var last: [UInt8] = []
    while try reader.next() {
      let id = Array(reader.key.dropLast(Self.sequenceByteCount))
      if id == last { continue }
      last = id
      while let known = candidate, known.id.precedes(id) { candidate = try candidates.next() }
      if candidate?.id == id { continue }
      seen += 1
      if chosen.count < count {
        chosen.append(id)
      } else if case let place = Int.random(in: 0..<seen), place < count {
        chosen[place] = id
      }
    }
    chosen.sort { $0.precedes($1) }
    self.cursor = CopyCursor(self.copy)
    return chosen.map { String(decoding: $0, as: UTF8.self) }
  }

  /// Compares records of the sample, which come in the order of `sample`.
  public func takeSample(_ batch: RecordBatch) throws {
    guard let cursor = self.cursor else { preconditionFailure("records of no sample") }
    let records = try self.records(of: batch)
    for (id, record) in records.sorted(by: { $0.key.precedes($1.key) }) {
      self.sampledCount += 1
      try cursor.advance(to: id) { _, _ in }
      let outcome = self.comparison.outcome(of: record, copy: cursor.value(of: id))
      guard outcome == .missing || outcome == .differing else { continue }
      self.sampleCandidateCount += 1
      try self.candidates.append(
        .init(id: id, .sample, outcome, self.comparison.fields.sorted()))
    }
  }

  private func records(of batch: RecordBatch) throws -> [[UInt8]: [UInt8]] {
    var records: [[UInt8]: [UInt8]] = [:]
    try self.forEachRecord(of: batch) { records[$0] = $1 }
    return records
  }

  // MARK: Candidates

  /// Some of the records that still differed when they were last read; empty at the end of the
  /// round.
  public func candidates(beginsRound: Bool, limit: Int) throws -> [String] {
    if beginsRound { try self.candidates.close() }
    self.asked = try self.candidates.next(limit)
    if self.asked.isEmpty { try self.candidates.endRound() }
    return self.asked.map { String(decoding: $0.id, as: UTF8.self) }
  }

  /// Compares candidates that were read again. Candidates that are neither in the batch nor missing
  /// could not be read.
  ///
  /// - Parameter missing: IDs that were found neither as records nor in the recycle bin.
  public func takeAgain(_ batch: RecordBatch, missing: [String]) throws {
    let records = try self.records(of: batch)
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
      encoder.read = NDJSONEncoder.Read(
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
    let encoder = NDJSONEncoder(layout: layout, options: self.options, isOfReads: true)
    self.encoder = encoder
    return encoder
  }

  // MARK: Findings

  /// The findings, with some IDs of each kind.
  public func findings(idLimit: Int) throws -> CopyFindings {
    var findings = CopyFindings()
    findings.tooYoung = self.tally[.young] ?? 0
    findings.marked = self.tally[.marked] ?? 0
    findings.equal = (self.tally[.equal] ?? 0) - self.sampleCandidateCount
    findings.sampled = self.sampledCount
    findings.unreadable = self.unreadableCount
    for (outcome, count) in self.settled { findings.add(count, kind: outcome.kind) }
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
    findings.notComparable =
      self.columns.leftOut
      + self.absent.sorted().map {
        CopyFindings.LeftOut(field: self.columns.paths[$0], reason: "not read of every record")
      }
    return findings
  }
}
