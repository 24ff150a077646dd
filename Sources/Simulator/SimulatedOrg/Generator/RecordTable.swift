/// Records of one object: their identities, and for each value a version number from which
/// `RecordReader` makes it.
struct RecordTable: Sendable {
  struct Record: Sendable {
    /// Counted from 1.
    var number: UInt64
    var id: [UInt8]
    var hash: UInt64
    var isPerson: Bool
    /// `CreatedDate` and `LastModifiedDate`, epoch milliseconds of whole seconds.
    var createdAt: Int64
    var modifiedAt: Int64
    var createdBy: Int
    var modifiedBy: Int
    /// `SystemModstamp`, the same.
    var stampedAt: Int64
    /// In the recycle bin, or purged from it.
    var isDeleted = false
    var isPurged = false
  }

  var records: [Record] = []
  private var versions: [UInt32] = []
  private(set) var slotCount: Int

  init(slotCount: Int) { self.slotCount = slotCount }

  subscript(record: Int, slot: Int) -> UInt32 {
    get { self.versions[record * self.slotCount + slot] }
    set { self.versions[record * self.slotCount + slot] = newValue }
  }

  /// Adds a record without values and returns its index.
  mutating func append(_ record: Record) -> Int {
    self.records.append(record)
    self.versions += repeatElement(0, count: self.slotCount)
    return self.records.count - 1
  }

  /// Puts a record without values in the place of another.
  mutating func replace(_ index: Int, by record: Record) {
    self.records[index] = record
    for slot in 0..<self.slotCount { self[index, slot] = 0 }
  }

  /// Gives every record the same value in one slot, which may be one more than there are.
  mutating func fill(_ slot: Int, with version: UInt32) {
    if slot == self.slotCount {
      var wider: [UInt32] = []
      wider.reserveCapacity(self.records.count * (self.slotCount + 1))
      for record in self.records.indices {
        wider += self.versions[record * self.slotCount..<(record + 1) * self.slotCount]
        wider.append(version)
      }
      self.versions = wider
      self.slotCount += 1
    } else {
      for record in self.records.indices { self[record, slot] = version }
    }
  }

  /// Everything about one record.
  struct State: Sendable {
    var record: Record
    /// A copy: a slice would keep the whole table as it was.
    var versions: [UInt32]

    /// As `RecordTable.fill`.
    mutating func fill(_ slot: Int, with version: UInt32) {
      if slot == self.versions.count {
        self.versions.append(version)
      } else {
        self.versions[slot] = version
      }
    }
  }

  func state(_ index: Int) -> State {
    State(
      record: self.records[index],
      versions: Array(
        self.versions[index * self.slotCount..<(index + 1) * self.slotCount]))
  }

  /// Puts a record there, which may be one more than there are.
  mutating func put(_ state: State, at index: Int) {
    if index == self.records.count {
      self.records.append(state.record)
      self.versions += state.versions
    } else {
      self.records[index] = state.record
      self.versions.replaceSubrange(
        index * self.slotCount..<(index + 1) * self.slotCount, with: state.versions)
    }
  }
}
