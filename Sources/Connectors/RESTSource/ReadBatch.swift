internal import Bytes
internal import Clocks
internal import Pipeline
internal import SalesforceREST

/// Collects records in a batch, each as an event of the kind `snapshot`.
struct ReadBatch {
  /// How much the clocks of an org's servers may differ, plus the time for fetching a page, in
  /// milliseconds.
  private static let clockTolerance: Int64 = 30 * 60 * 1000

  private let decoder: SnapshotDecoder
  /// The org's clock when the records arrived, milliseconds since 1970, including the rest of its
  /// second. A later stamp is stored as this time: a read cannot contain changes from after it.
  private let orgTime: Int64?
  private let make: () -> RecordBatch
  private let prefix: [UInt8]
  private let readType: StaticString
  private let readAt: ContinuousClock.Instant
  private let entity: [UInt8]
  /// Whether each line has a list of IDs.
  private let hasLists: Bool
  private var batch: RecordBatch
  private var text: [UInt8] = []
  private(set) var unreadable: [UnreadableRecord] = []
  private(set) var rowCount = 0

  init(_ read: ObjectRead, _ plan: SnapshotPlan, _ pass: ReadPass) {
    self.init(read, plan, number: pass.number, readAt: pass.requestedAt ?? read.client.clock.now)
  }

  /// - Parameter number: the number of the pass; 0 for records that belong to none.
  init(
    _ read: ObjectRead, _ plan: SnapshotPlan, number: Int, readAt: ContinuousClock.Instant
  ) {
    let now = read.client.serviceTime()
    self.decoder = SnapshotDecoder(plan, latestStamp: now.map { $0 + Self.clockTolerance })
    self.orgTime = now.map { $0 + 999 }
    self.make = read.makeBatch
    self.prefix = Array(Self.prefix(read, number: number, readAt: readAt).utf8)
    self.readType =
      read.refresh != nil ? "SNAPSHOT_REFRESH" : read.isFilling ? "SNAPSHOT_FIELDS" : "SNAPSHOT"
    self.readAt = readAt
    self.entity = Array(read.entity.utf8)
    self.hasLists = read.layout.columns.contains {
      if case .slot(MetadataSlot.recordIDs, _) = $0.content { true } else { false }
    }
    self.batch = read.makeBatch()
  }

  /// The beginning of event IDs. Fields that change without events have another value at another
  /// time, although the stamp stays; and passes over other fields count from 1 again.
  private static func prefix(
    _ read: ObjectRead, number: Int, readAt: ContinuousClock.Instant
  ) -> String {
    guard read.refresh != nil || read.isFilling else { return "snapshot:\(number):" }
    let clock = read.client.clock
    let kind = read.isFilling ? "fields" : "refresh"
    return "\(kind):\(clock.wallTime - Int64((clock.now - readAt) / .milliseconds(1))):"
  }

  /// The memory of the batch.
  var byteCount: Int { self.batch.byteCount }

  mutating func add(
    _ texts: borrowing some RecordTexts & ~Copyable, isDeleted: Bool = false
  ) {
    let (rows, arena) = (self.batch.rowCount, self.batch.arenaCount)
    self.rowCount += 1
    do throws(SnapshotRowError) {
      var identity = try self.decoder.decode(texts, into: self.batch)
      identity.stamp = self.believed(identity.stamp)
      let isDeleted =
        isDeleted || self.decoder.plan.deletedField.map { Self.isTrue(texts[$0]) } ?? false
      self.describe(identity, isDeleted ? "SNAPSHOT_DELETE" : self.readType)
    } catch {
      self.batch.truncate(rows: rows, arena: arena)
      let id = texts.count > 0 ? String(decoding: texts[SnapshotPlan.idField], as: UTF8.self) : ""
      let stamp =
        texts.count > SnapshotPlan.stampField
        ? UTCTime.timestamp(texts[SnapshotPlan.stampField]) : nil
      self.refuse(id, stamp: stamp, error)
    }
  }

  private static func isTrue(_ text: UnsafeRawBufferPointer) -> Bool {
    text.elementsEqual("true".utf8)
  }

  /// Adds a record from JSON, which has every requested field.
  mutating func add(_ record: QueryRecord, isDeleted: Bool = false) {
    var texts: [String] = []
    let fields = self.decoder.plan.fields
    for (field, text) in zip(fields, record.texts(of: fields)) {
      guard let text else {
        self.rowCount += 1
        return self.refuse(
          record["Id"] ?? "", stamp: nil,
          SnapshotRowError(field: field, "not in the response, or not a single value"))
      }
      texts.append(text)
    }
    self.add(RowTexts(texts), isDeleted: isDeleted)
  }

  private mutating func refuse(_ id: String, stamp: Int64?, _ error: SnapshotRowError) {
    self.unreadable.append(
      UnreadableRecord(
        recordID: id.utf8.count == 18 && SOQL.isRecordID(id) ? id : nil, stamp: stamp,
        reason: error.description))
  }

  /// Adds a record that is in the recycle bin.
  mutating func addDeletion(_ id: String, stamp: String) {
    guard id.utf8.count == 18, SOQL.isRecordID(id),
      let time = RowTexts([stamp]).withText({ UTCTime.timestamp($0) }),
      time <= self.decoder.latestStamp ?? .max
    else { return }
    self.rowCount += 1
    let row = self.batch.addRow()
    let recordID = Array(id.utf8).withUnsafeBufferPointer { self.batch.append($0) }
    self.batch.row(row).set(MetadataSlot.recordID, to: recordID)
    self.describe(
      SnapshotDecoder.Identity(row: row, recordID: recordID, stamp: self.believed(time)),
      "SNAPSHOT_DELETE")
  }

  private func believed(_ stamp: Int64) -> Int64 { min(stamp, self.orgTime ?? stamp) }

  /// Sets the metadata. The event ID identifies the pass, the record and the state that was read.
  private mutating func describe(
    _ identity: SnapshotDecoder.Identity, _ type: StaticString
  ) {
    self.text.removeAll(keepingCapacity: true)
    self.text += self.prefix
    self.text += self.batch.bytes(identity.recordID)
    self.text.append(UInt8(ascii: ":"))
    Self.append(identity.stamp, to: &self.text)
    let eventID = self.text.withUnsafeBufferPointer { self.batch.append($0) }
    let changeType = self.batch.append(
      UnsafeBufferPointer(start: type.utf8Start, count: type.utf8CodeUnitCount))
    let row = self.batch.row(identity.row)
    let entity = self.entity.withUnsafeBufferPointer { self.batch.append($0) }
    row.set(MetadataSlot.eventID, to: eventID)
    row.set(MetadataSlot.entity, to: entity)
    if self.hasLists {
      self.text = Array("[\"".utf8) + self.batch.bytes(identity.recordID) + Array("\"]".utf8)
      let list = self.text.withUnsafeBufferPointer { self.batch.append($0) }
      row.set(MetadataSlot.recordIDs, to: list)
    }
    row.set(MetadataSlot.kind, to: UInt64(EventKind.snapshot.rawValue))
    row.set(MetadataSlot.changeType, to: changeType)
    self.batch.events.append(
      RecordBatch.Event(
        firstRow: identity.row, rowCount: 1, replayID: RecordBatch.Range(offset: 0, count: 0),
        eventID: eventID, commitTimestamp: identity.stamp, kind: .snapshot))
  }

  /// Appends the decimal digits of a time, which is at most a few thousand years before 1970.
  private static func append(_ number: Int64, to text: inout [UInt8]) {
    if number < 0 { text.append(UInt8(ascii: "-")) }
    let start = text.count
    var rest = number.magnitude
    repeat {
      text.append(UInt8(ascii: "0") + UInt8(rest % 10))
      rest /= 10
    } while rest > 0
    text[start...].reverse()
  }

  /// Returns the batch; later rows go into another one.
  mutating func take() -> RecordBatch {
    let full = self.batch
    full.readAt = self.readAt
    self.batch = self.make()
    self.rowCount = 0
    self.unreadable.removeAll()
    return full
  }
}
