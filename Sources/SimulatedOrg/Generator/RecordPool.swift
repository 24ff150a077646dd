/// The records of one object that exist now, and those in the recycle bin.
struct RecordPool: Sendable {
  struct Record: Sendable {
    /// Counted from 1.
    var number: UInt64
    var id: [UInt8]
    var hash: UInt64
    var isPerson: Bool
    var createdAt: Int64
    var modifiedAt: Int64
    var createdBy: Int
    var modifiedBy: Int
  }

  /// More records than this are never alive at once: memory stays the same for any number of events.
  static let capacity = 4096

  let model: EntityModel
  private(set) var records: [Record] = []
  private(set) var live: [Int] = []
  private(set) var deleted: [Int] = []
  private var versions: [UInt32] = []
  private var created: UInt64 = 0
  private let slotCount: Int

  init(model: EntityModel) {
    self.model = model
    self.slotCount = model.slots.count
  }

  var isFull: Bool { self.live.count >= Self.capacity * 3 / 4 }

  subscript(record: Int, slot: Int) -> UInt32 {
    get { self.versions[record * self.slotCount + slot] }
    set { self.versions[record * self.slotCount + slot] = newValue }
  }

  // MARK: References

  /// Every so many records there is one that others refer to, and that is never deleted.
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

  /// The same where the object is not generated.
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
  mutating func create(seed: UInt64, at time: Int64, by user: Int) -> Int {
    self.created += 1
    let hash = RandomStream.mix(seed ^ RandomStream.hash(self.model.entity) &+ self.created)
    let record = Record(
      number: self.created,
      id: RecordID.bytes(prefix: self.model.keyPrefix, number: 1_000_000 + self.created),
      hash: hash, isPerson: hash & 3 == 0, createdAt: time, modifiedAt: time, createdBy: user,
      modifiedBy: user)
    let index: Int
    if self.records.count < Self.capacity || self.deleted.isEmpty {
      index = self.records.count
      self.records.append(record)
      self.versions += [UInt32](repeating: 0, count: self.slotCount)
    } else {
      index = self.deleted.removeFirst()
      self.records[index] = record
      for slot in 0..<self.slotCount { self[index, slot] = 0 }
    }
    self.live.append(index)
    return index
  }

  mutating func delete(_ record: Int) {
    guard let position = self.live.firstIndex(of: record) else {
      preconditionFailure("\(self.model.entity): record \(record) is not alive")
    }
    self.live.swapAt(position, self.live.count - 1)
    self.live.removeLast()
    self.deleted.append(record)
    // what is beyond the recycle bin's size can no longer be undeleted, but its place can be reused
  }

  mutating func undelete(_ random: inout RandomStream) -> Int? {
    guard !self.deleted.isEmpty else { return nil }
    let record = self.deleted.remove(at: random.below(self.deleted.count))
    self.live.append(record)
    return record
  }

  mutating func touch(_ record: Int, at time: Int64, by user: Int) {
    self.records[record].modifiedAt = time
    self.records[record].modifiedBy = user
  }
}
