/// The records of one object that exist now, and those in the recycle bin.
struct RecordPool: Sendable {
  /// The maximum number of live records, which bounds memory for any number of events.
  private static let usualCapacity = 4096

  let model: EntityModel
  private(set) var table: RecordTable
  /// Records that have changed since this was last taken, if anybody takes it.
  private(set) var changed: [Int] = []
  private(set) var live: [Int] = []
  private(set) var deleted: [Int] = []
  /// The place of each record in `live`.
  private var places: [Int] = []
  private var created: UInt64 = 0
  private let capacity: Int
  private let keepsAll: Bool

  /// - Parameter existing: the number of records before the first event. The pool then keeps every
  ///   record and tracks which have changed. Nil for a pool that reuses the places of records
  ///   deleted long ago.
  init(model: EntityModel, existing: Int? = nil) {
    self.model = model
    self.table = RecordTable(slotCount: model.slots.count)
    self.keepsAll = existing != nil
    self.capacity = Self.usualCapacity + 2 * (existing ?? 0)
  }

  var records: [RecordTable.Record] { self.table.records }
  var isFull: Bool { self.live.count >= self.capacity * 3 / 4 }

  subscript(record: Int, slot: Int) -> UInt32 {
    get { self.table[record, slot] }
    set {
      self.table[record, slot] = newValue
      self.note(record)
    }
  }

  private mutating func note(_ record: Int) {
    if self.keepsAll, self.changed.last != record { self.changed.append(record) }
  }

  /// An admin's change of all records, which moves no stamp.
  mutating func fill(_ slot: Int, with version: UInt32) {
    self.table.fill(slot, with: version)
  }

  mutating func takeChanged() -> [Int] {
    defer { self.changed.removeAll() }
    return self.changed
  }

  // MARK: References

  /// The distance of records that others refer to, and that are never deleted.
  private static let referenceInterval: UInt64 = 4
  private static let referenceCount: UInt64 = 512

  func isReferenced(_ record: Int) -> Bool {
    let number = self.records[record].number
    return number % Self.referenceInterval == 0
      && number <= Self.referenceInterval * Self.referenceCount
  }

  /// The version of a value that refers to a record of this pool; 0, which is null, before there is
  /// one.
  func reference(_ random: inout RandomStream) -> UInt32 {
    Self.reference(count: min(self.created / Self.referenceInterval, Self.referenceCount), &random)
  }

  /// The version of a value that refers to an object that is not generated.
  static func foreignReference(_ random: inout RandomStream) -> UInt32 {
    Self.reference(count: Self.referenceCount, &random)
  }

  private static func reference(count: UInt64, _ random: inout RandomStream) -> UInt32 {
    guard count > 0 else { return 0 }
    return UInt32(Self.referenceInterval * UInt64(1 + random.below(Int(count))))
  }

  /// The ID that a version refers to.
  static func id(_ prefix: String, of version: UInt32) -> [UInt8] {
    RecordID.bytes(
      prefix: prefix, number: 1_000_000 + UInt64(version & ~ValueSource.Version.shared))
  }

  // MARK: Changes

  /// A new record without values, alive. May take the place of the one deleted longest ago.
  ///
  /// - Parameter mayBePerson: whether some accounts are persons.
  mutating func create(
    seed: UInt64, at time: Int64, by user: Int, mayBePerson: Bool = true
  ) -> Int {
    self.created += 1
    let hash = RandomStream.mix(seed ^ RandomStream.hash(self.model.entity) &+ self.created)
    let record = RecordTable.Record(
      number: self.created,
      id: RecordID.bytes(prefix: self.model.keyPrefix, number: 1_000_000 + self.created),
      hash: hash, isPerson: mayBePerson && hash & 3 == 0, createdAt: time, modifiedAt: time,
      createdBy: user,
      modifiedBy: user, stampedAt: time)
    let index: Int
    if self.keepsAll || self.records.count < self.capacity || self.deleted.isEmpty {
      index = self.table.append(record)
      self.places.append(0)
    } else {
      index = self.deleted.removeFirst()
      self.table.replace(index, by: record)
    }
    self.revive(index)
    return index
  }

  private mutating func revive(_ record: Int) {
    self.places[record] = self.live.count
    self.live.append(record)
    self.table.records[record].isDeleted = false
    self.note(record)
  }

  mutating func delete(_ record: Int) {
    let place = self.places[record]
    precondition(
      place < self.live.count && self.live[place] == record,
      "\(self.model.entity): record \(record) is not alive")
    let last = self.live.removeLast()
    if last != record {
      self.live[place] = last
      self.places[last] = place
    }
    self.deleted.append(record)
    self.table.records[record].isDeleted = true
    self.note(record)
    // what is beyond the recycle bin's size can no longer be undeleted, but its place can be reused
  }

  mutating func undelete(_ random: inout RandomStream) -> Int? {
    guard !self.deleted.isEmpty else { return nil }
    let record = self.deleted.remove(at: random.below(self.deleted.count))
    self.revive(record)
    return record
  }

  /// Purged from the recycle bin.
  mutating func purge(_ random: inout RandomStream) {
    guard !self.deleted.isEmpty else { return }
    let record = self.deleted.remove(at: random.below(self.deleted.count))
    self.table.records[record].isPurged = true
    self.note(record)
  }

  mutating func touch(_ record: Int, at time: Int64, by user: Int) {
    self.table.records[record].modifiedAt = time
    self.table.records[record].modifiedBy = user
    self.note(record)
  }

  /// Sets `SystemModstamp`, which never goes back.
  mutating func stamp(_ record: Int, at time: Int64) {
    self.table.records[record].stampedAt = max(time, self.table.records[record].stampedAt)
    self.note(record)
  }
}
