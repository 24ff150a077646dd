internal import Bytes
internal import DurableFiles
package import JSON
internal import Pipeline

/// Objects of which the files have only a part (`source.subset`): each changed record is read again, and
/// the org says whether it belongs to the copy. Its line says what it is, or that it has left.
extension FileSink {
  static let changedKey = "changed_records"

  private static let callsKey = "changed_record_calls"

  package var readsChangedRecords: Bool { !self.changed.isEmpty }

  package func hasChangedRecords(of entity: String) -> Bool {
    self.changed[entity].map { $0.count > 0 || $0.review != nil } ?? false
  }

  /// The changed records of an object, by a sink's state.
  static func changedRecords(
    of entity: String, in state: JSONValue?, directory: String, pipeline: String,
    on fileSystem: any FileSystem
  ) throws(FileSinkError) -> ChangedRecords {
    let name =
      ".\(SegmentName.pipelinePart(pipeline)).changed-\(SegmentName.sanitized(entity))"
    return try ChangedRecords(
      path: "\(directory)/\(name)", state?[Self.changedKey]?[entity], on: fileSystem)
  }

  /// The commit time of the oldest change of a record that has not been read since, or an earlier time;
  /// nil if there is none, and the smallest number if records that have not changed are to be read.
  package static func oldestChangedRecord(
    of entity: String, in state: JSONValue?, directory: String, pipeline: String
  ) throws -> Int64? {
    try Self.changedRecords(
      of: entity, in: state, directory: directory, pipeline: pipeline, on: SystemFileSystem()
    ).oldestChange()
  }

  /// The state with these lists.
  func addingChanged(to state: JSONValue) -> JSONValue {
    guard var members = state.members, !self.changed.isEmpty else { return state }
    let lists = self.changed.sorted { $0.key < $1.key }.map { JSONMember($0.key, $0.value.json) }
    members += [
      JSONMember(Self.changedKey, JSONValue(.object(lists))),
      JSONMember(
        Self.callsKey, ["day": .integer(self.calls.day), "count": .integer(self.calls.count)]),
    ]
    return JSONValue(.object(members))
  }

  // MARK: Calls

  static func calls(in state: JSONValue?) -> (day: Int64, count: Int) {
    guard let day = state?[Self.callsKey]?["day"]?.integer,
      let count = state?[Self.callsKey]?["count"]?.integer, ExportedFile.counts.contains(count)
    else { return (0, 0) }
    return (day, Int(count))
  }

  private var today: Int64 { UTCTime.day(ofMilliseconds: self.clock.utcMilliseconds()) }

  package func callsToday() -> Int { self.calls.day == self.today ? self.calls.count : 0 }

  package func noteCalls(_ count: Int) {
    guard !self.changed.isEmpty else { return }
    self.calls = (self.today, self.callsToday() + count)
  }

  // MARK: Records

  /// Notes the records whose values have changed.
  func noteChanged(_ batch: RecordBatch) {
    guard let changed = self.changed[batch.layout.entity] else { return }
    for event in batch.events where event.kind == .change || event.kind == .gap {
      for row in event.rows {
        let type = batch.row(row).text(MetadataSlot.changeType)
        if type.equals("DELETE") || type.equals("GAP_DELETE") { continue }
        changed.note(
          batch.row(row).text(MetadataSlot.recordID), commitTime: event.commitTimestamp)
      }
    }
    guard let last = batch.events.last, !batch.isRedriven else { return }
    changed.advance(toEpoch: batch.epoch, nextOrdinal: last.ordinal + 1)
  }

  package func recordsToRead(of entity: String, limit: Int) throws -> [String] {
    guard let changed = self.changed[entity] else { return [] }
    if limit > 0, let review = changed.review { try self.review(review, of: entity, changed) }
    let wait = Int64(self.configuration.visibilityWait / .milliseconds(1))
    return try self.store.attempt { () throws(FileSystemError) in
      try changed.ask(at: self.clock.utcMilliseconds(), wait: wait, limit: limit)
    }
  }

  /// Takes the records that were asked for, as far as they were found. They are in a file of their own,
  /// because its place says which events they contain.
  func write(changedReads reads: RecordBatch) throws {
    let entity = reads.layout.entity
    guard let changed = self.changed[entity], let asked = changed.asked else { return }
    var pass = FilePass(
      beginning: ReadPass(
        entity: entity, part: FilePass.changed, number: self.passNumber(over: entity) + 1),
      reads, at: self.clock.utcMilliseconds())
    (pass.epoch, pass.nextOrdinal) = (asked.epoch, asked.nextOrdinal)
    _ = try self.readEncoder(for: reads.layout)
    try self.append(reads, pass, firstRow: 0)
    try self.store.seal { $0.pass == pass.place && $0.entity == entity }
    self.passes[pass.key] = pass
    for event in reads.events { self.gapEvents.settle(event, of: reads) }
    changed.settle()
  }

  /// Notes that a pass has returned all records that belong to the copy.
  func noteReview(after pass: FilePass) {
    guard let changed = self.changed[pass.entity] else { return }
    changed.noteReview(
      ChangedRecords.Review(
        requestedAt: pass.requestedAt ?? pass.begunAt, epoch: pass.epoch,
        nextOrdinal: pass.nextOrdinal))
  }

  /// The difference that conversions of times may make, in milliseconds.
  private static let tolerance: Int64 = 1000
  private static let reviewedCount = 10_000

  /// Finds the records that the files have and that a pass has not returned.
  private func review(
    _ review: ChangedRecords.Review, of entity: String, _ changed: ChangedRecords
  ) throws {
    // Known since the caller has asked whether records can be read.
    guard let layout = self.readLayouts[entity] else { return }
    let copy = try FileCopy.read(
      FileCopy.Source(
        directory: self.configuration.directory, pipeline: self.configuration.pipeline,
        entity: entity, topic: layout.topic, org: self.configuration.org, state: self.flushed),
      ComparedColumns(layout), scratch: ScratchFiles(directory: self.configuration.directory))
    try self.store.attempt { () throws(FileSystemError) in
      let reader = EntryReader(copy.records)
      var ids: [[UInt8]] = []
      while try reader.next() {
        let record = RecordPatch(reader.value)
        guard record.effect != .deletion, record.readAt < review.requestedAt - Self.tolerance else {
          continue
        }
        ids.append(reader.key)
        guard ids.count == Self.reviewedCount else { continue }
        try changed.add(ids, of: review)
        ids.removeAll(keepingCapacity: true)
      }
      try changed.add(ids, of: review)
    }
    changed.endReview()
  }
}
