/// The org's records as its APIs show them: as they were some time ago, since rows turn up later than
/// their stamps (RESTAndBulk.md#records-and-events).
///
/// Confined to one thread at a time by its owner.
package final class RecordStore {
  private struct Pending {
    var visibleAt: Int64
    var model: Int
    var index: Int
    var state: RecordTable.State
  }

  package private(set) var objects: [OrgObject]
  private var readers: [RecordReader]
  private var tables: [RecordTable]
  private var pending: [Pending] = []
  private var head = 0
  /// Milliseconds after which a change can be seen.
  let visibilityDelay: Int64
  /// Share of the records that the user may not see.
  private let unsharedShare: Double
  private let hasFormulas: Bool
  /// How often formulas that no event has were edited.
  private var editions: [OrgFormula: Int] = [:]
  private var image: EventImage
  /// The last of `objects`, if the org tracks changes.
  private var history: FieldHistory?
  /// Fields beyond which a query is too complicated; nil: any number.
  var maxQueryFields: Int?

  /// - Parameters:
  ///   - delay: milliseconds after which a change can be seen.
  ///   - hasFormulas: see `OrgObject`.
  ///   - tracked: the object whose changes a field history has; nil for none.
  init(
    readers: [RecordReader], delay: Int64, unsharedShare: Double, hiddenFields: Set<String>,
    hasFormulas: Bool, tracked: String? = nil
  ) {
    self.readers = readers
    self.hasFormulas = hasFormulas
    self.objects = readers.map {
      OrgObject($0.model, hidden: hiddenFields, hasFormulas: hasFormulas)
    }
    self.tables = readers.map { RecordTable(slotCount: $0.model.slots.count) }
    self.visibilityDelay = delay
    self.unsharedShare = unsharedShare
    let model = readers[0].model
    self.image = EventImage(entity: model, schema: model.versions[0])
    if let tracked, let object = self.objects.firstIndex(where: { $0.name == tracked }) {
      self.history = FieldHistory(object: object)
      self.objects.append(OrgObject(historyOf: tracked))
    }
  }

  private func isHistory(_ object: Int) -> Bool { object == self.readers.count }

  /// Takes over what has changed in a pool.
  func take(from pool: inout RecordPool, model: Int, at time: Int64) {
    for index in pool.takeChanged() {
      self.pending.append(
        Pending(
          visibleAt: time + self.visibilityDelay, model: model, index: index,
          state: pool.table.state(index)))
    }
  }

  /// Shows an object whose fields an admin changed.
  func replace(_ reader: RecordReader, model: Int, hidden: Set<String>) {
    self.readers[model] = reader
    self.objects[model] = OrgObject(
      reader.model, hidden: hidden, hasFormulas: self.hasFormulas,
      edited: Set(self.editions.keys))
  }

  /// Changes a formula that no event has, and so its value in three of four records.
  func edit(_ formula: OrgFormula) { self.editions[formula, default: 0] += 1 }

  /// As `RecordTable.fill`, also for changes that cannot be seen yet.
  func fill(_ slot: Int, with version: UInt32, model: Int) {
    self.tables[model].fill(slot, with: version)
    for index in self.head..<self.pending.count where self.pending[index].model == model {
      self.pending[index].state.fill(slot, with: version)
    }
  }

  /// Shows what can be seen by now.
  package func advance(to now: Int64) {
    while self.head < self.pending.count, self.pending[self.head].visibleAt <= now {
      let change = self.pending[self.head]
      if self.history?.object == change.model {
        self.track(change)
      } else {
        self.tables[change.model].put(change.state, at: change.index)
      }
      self.head += 1
    }
    if self.head == self.pending.count || self.head > 1 << 16 {
      self.pending.removeFirst(self.head)
      self.head = 0
    }
  }

  /// Shows a change, and notes it in the field history.
  private func track(_ change: Pending) {
    let (object, index) = (change.model, change.index)
    let fields = FieldHistory.tracked(self.objects[object].fields)
    func values() -> [FieldValue] { fields.map { self.value(object, index, $0) } }
    let isNew = index == self.tables[object].records.count
    let before = isNew ? [] : values()
    self.tables[object].put(change.state, at: index)
    let record = change.state.record
    let user = self.readers[object].users[record.modifiedBy]
    if isNew { self.history?.noteCreation(of: record, by: user) }
    for (field, (old, new)) in zip(fields, zip(before, values())) {
      var (left, right): ([UInt8], [UInt8]) = ([], [])
      old.appendJSON(to: &left)
      new.appendJSON(to: &right)
      if left != right { self.history?.note(field, from: old, to: new, of: record, by: user) }
    }
  }

  /// The index of an object, whose name is compared without case.
  package func object(named name: some StringProtocol) -> Int? {
    self.objects.firstIndex { $0.name.lowercased() == name.lowercased() }
  }

  func recordCount(_ object: Int) -> Int {
    if self.isHistory(object) { return self.history?.rows.count ?? 0 }
    return self.tables[object].records.count
  }

  func record(_ object: Int, _ index: Int) -> RecordTable.Record {
    if self.isHistory(object), let history { return history.rows[index].record }
    return self.tables[object].records[index]
  }

  /// Whether the user finds the record: without `withDeleted` only if it is not deleted.
  func isVisible(_ object: Int, _ index: Int, withDeleted: Bool) -> Bool {
    let record = self.record(object, index)
    guard !record.isPurged, withDeleted || !record.isDeleted else { return false }
    return Double(record.hash % 1_000_000) >= self.unsharedShare * 1_000_000
  }

  /// The index of the record with an ID of 15 or 18 characters.
  func index(_ object: Int, of id: [UInt8]) -> Int? {
    let long = id.count == 15 ? RecordID.lengthened(id) : id
    guard let number = RecordID.number(long), number > 1_000_000 else { return nil }
    let index = Int(number - 1_000_001)
    guard index < self.recordCount(object), self.record(object, index).id == long else {
      return nil
    }
    return index
  }

  func value(_ object: Int, _ index: Int, _ field: OrgField) -> FieldValue {
    let record = self.record(object, index)
    switch field.source {
    case .change(let column): return self.history?.value(index, column) ?? .null
    case .id: return .text(record.id)
    case .isDeleted: return .boolean(record.isDeleted)
    case .systemModstamp: return .dateTime(record.stampedAt)
    case .slot(let slot): return self.value(object, index, slot, field.type)
    case .parts(let parts):
      let values = parts.map { part in
        let type = self.readers[object].plan.kinds[part.slot] == .latitude
        let isNumber = type || self.readers[object].plan.kinds[part.slot] == .longitude
        return (part.name, self.value(object, index, part.slot, isNumber ? .double : .string))
      }
      let isEmpty = values.allSatisfy { if case .null = $0.1 { true } else { false } }
      return isEmpty ? .null : .parts(values)
    case .fullName(let slot, let first, let last):
      if case .text(let text) = self.value(object, index, slot, .string) { return .text(text) }
      let names = [first, last].compactMap { slot -> [UInt8]? in
        if case .text(let text) = self.value(object, index, slot, .string) { text } else { nil }
      }
      return names.isEmpty ? .null : .text(Array(names.joined(separator: [0x20])))
    case .formula(let formula, let sources):
      let types = self.readers[object].plan.kinds
      let values = sources.map { slot in
        self.value(object, index, slot, types[slot] == .dateOnly ? .date : .string)
      }
      let value = formula.value(id: record.id, values) { self.accountName(values.first ?? .null) }
      guard case .double(let number) = value, let edition = self.editions[formula] else {
        return value
      }
      return .double(number + Double(edition * Int(record.hash % 4)))
    }
  }

  private func accountName(_ id: FieldValue) -> FieldValue {
    guard case .text(let id) = id,
      let accounts = self.objects.firstIndex(where: { $0.name == "Account" }),
      let account = self.index(accounts, of: id), !self.record(accounts, account).isDeleted,
      let name = self.objects[accounts].index(of: "Name")
    else { return .null }
    return self.value(accounts, account, self.objects[accounts].fields[name])
  }

  private func value(
    _ object: Int, _ index: Int, _ slot: Int, _ type: OrgField.FieldType
  ) -> FieldValue {
    self.image.arena.removeAll(keepingCapacity: true)
    let cell = self.readers[object].cell(
      self.tables[object], index, slot, into: &self.image)
    switch cell {
    case .null, .record: return .null
    case .boolean(let value): return .boolean(value)
    case .int(let value): return .int(Int64(value))
    case .double(let value): return .double(value)
    case .long(let value):
      switch type {
      case .date: return .date(value)
      case .time: return .time(value)
      default: return .dateTime(value)
      }
    case .text(let start, let count):
      return .text(Self.withLineFeeds(self.image.arena[Int(start)..<Int(start + count)]))
    }
  }

  /// The API has LF where events have CR LF.
  private static func withLineFeeds(_ text: ArraySlice<UInt8>) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(text.count)
    for byte in text {
      if byte == 10, result.last == 13 { result.removeLast() }
      result.append(byte)
    }
    return result
  }
}
