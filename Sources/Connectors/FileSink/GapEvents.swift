package import JSON
internal import Pipeline

/// Gap, overflow and wildcard events, and objects of which changes went elsewhere: the files lack the
/// values of these changes until a snapshot that begins later is complete. Part of the sink's state.
package struct GapEvents: Sendable, Equatable {
  private struct Count: Sendable, Equatable {
    /// Events from before the snapshot in progress.
    var covered = 0
    var open = 0
    /// Records with gap events, and whether all of these are from before the snapshot in progress.
    /// `covered` and `open` count the other events: those that name no record, or too many.
    var records: [RecordName: Bool] = [:]
    /// Changes of the object went elsewhere; whether only before the snapshot in progress. Nil if none
    /// did.
    var leftOut: Bool?

    var total: Int { self.covered + self.open + self.records.count }

    var isEmpty: Bool { self.total == 0 && self.leftOut == nil }

    mutating func note(_ record: RecordName?, limit: Int) {
      guard let record, self.records[record] != nil || self.records.count < limit else {
        self.open += 1
        return
      }
      self.records[record] = false
    }
  }

  /// The names are part of each checkpoint.
  private static let maxRecordCount = 500

  private static let key = "gap_events"

  private var counts: [String: Count] = [:]

  init() {}

  /// - Parameter state: the sink's state; earlier versions stored no counts.
  /// - Throws: `FileSinkError.inconsistent` for a damaged state.
  package init(in state: JSONValue?) throws {
    for member in state?[Self.key]?.members ?? [] {
      func number(_ key: String) throws -> Int {
        let number = member.value[key]?.integer ?? 0
        guard ExportedFile.counts.contains(number) else { throw FilePass.damaged }
        return Int(number)
      }
      var count = Count(covered: try number("covered"), open: try number("open"))
      count.leftOut = member.value["left_out"]?.boolean
      for record in member.value["records"]?.members ?? [] {
        guard let name = Array(record.name.utf8).withUnsafeBufferPointer(RecordName.init) else {
          continue
        }
        count.records[name] = record.value.boolean == true
      }
      self.counts[member.name] = count
    }
  }

  /// Whether no object has any.
  var isEmpty: Bool { self.counts.isEmpty }

  /// The number of records, or of events that name none, of each object that has any.
  package var byObject: [String: Int] {
    self.counts.mapValues(\.total).filter { $0.value > 0 }
  }

  /// Counts an event. Gap events of a record no longer count once it is deleted, and so in no view of
  /// current records, or once an event has all its values.
  mutating func note(_ event: RecordBatch.Event, of batch: RecordBatch) {
    let entity = batch.layout.entity
    switch event.kind {
    case .event, .snapshot: return
    case .change:
      guard self.counts[entity]?.records.isEmpty == false, Self.settles(event, of: batch) else {
        return
      }
      self.settle(event, of: batch)
    case .overflow, .wildcard: self.counts[entity, default: Count()].open += 1
    case .gap where Self.settles(event, of: batch): self.settle(event, of: batch)
    case .gap:
      for row in event.firstRow..<event.firstRow + event.rowCount {
        let record = RecordName(batch.row(row).text(MetadataSlot.recordID))
        self.counts[entity, default: Count()].note(record, limit: Self.maxRecordCount)
      }
    }
  }

  /// Notes that an event, or a read of changed records, has all values of its records. Changes the counts
  /// in place: they may have a name for each of many records.
  mutating func settle(_ event: RecordBatch.Event, of batch: RecordBatch) {
    let entity = batch.layout.entity
    for row in event.firstRow..<event.firstRow + event.rowCount {
      // Asked first, because a change in place allocates, and most records have no gap event.
      guard let record = RecordName(batch.row(row).text(MetadataSlot.recordID)),
        self.counts[entity]?.records[record] != nil
      else { continue }
      self.counts[entity]?.records.removeValue(forKey: record)
    }
    if self.counts[entity]?.isEmpty == true { self.counts[entity] = nil }
  }

  private static func settles(_ event: RecordBatch.Event, of batch: RecordBatch) -> Bool {
    let type = batch.row(event.firstRow).text(MetadataSlot.changeType)
    return type.equals("DELETE") || type.equals("GAP_DELETE") || type.equals("CREATE")
      || type.equals("UNDELETE")
  }

  /// Notes that changes of an object went elsewhere.
  mutating func noteLeftOut(_ entity: String) {
    self.counts[entity, default: Count()].leftOut = false
  }

  /// Objects of which changes went elsewhere.
  package var leftOut: Set<String> { Set(self.counts.filter { $0.value.leftOut != nil }.keys) }

  mutating func beginSnapshot(of entity: String) {
    guard let count = self.counts[entity] else { return }
    self.counts[entity] = Count(
      covered: count.covered + count.open, records: count.records.mapValues { _ in true },
      leftOut: count.leftOut.map { _ in true })
  }

  mutating func completeSnapshot(of entity: String) {
    guard var count = self.counts[entity] else { return }
    count.covered = 0
    count.records = count.records.filter { !$0.value }
    if count.leftOut == true { count.leftOut = nil }
    self.counts[entity] = count.isEmpty ? nil : count
  }

  /// The state with these counts instead of its own.
  func adding(to state: JSONValue) -> JSONValue {
    guard var members = state.members else { return state }
    members.removeAll { $0.name == Self.key }
    guard !self.counts.isEmpty else { return JSONValue(.object(members)) }
    let counts = self.counts.sorted { $0.key < $1.key }.map { entity, count -> JSONMember in
      let records = count.records.map { ($0.text, $1) }.sorted { $0.0 < $1.0 }.map {
        JSONMember($0.0, .boolean($0.1))
      }
      var members = [
        JSONMember("covered", .integer(count.covered)), JSONMember("open", .integer(count.open)),
        JSONMember("records", JSONValue(.object(records))),
      ]
      if let leftOut = count.leftOut { members.append(JSONMember("left_out", .boolean(leftOut))) }
      return JSONMember(entity, JSONValue(.object(members)))
    }
    return JSONValue(.object(members + [JSONMember(Self.key, JSONValue(.object(counts)))]))
  }
}

/// A record ID without memory of its own: events of many records are compared with it.
private struct RecordName: Hashable {
  private static let maxByteCount = 24

  private var words: (UInt64, UInt64, UInt64) = (0, 0, 0)

  /// Nil for an empty text, and for one that is longer than the IDs of records.
  init?(_ utf8: UnsafeBufferPointer<UInt8>) {
    guard (1...Self.maxByteCount).contains(utf8.count) else { return nil }
    withUnsafeMutableBytes(of: &self.words) { $0.copyBytes(from: utf8) }
  }

  /// IDs have no U+0000.
  var text: String {
    withUnsafeBytes(of: self.words) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
  }

  static func == (left: Self, right: Self) -> Bool { left.words == right.words }

  func hash(into hasher: inout Hasher) {
    hasher.combine(self.words.0)
    hasher.combine(self.words.1)
    hasher.combine(self.words.2)
  }
}
