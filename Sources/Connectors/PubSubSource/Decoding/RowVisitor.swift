internal import Avro
internal import Pipeline

/// Writes the values of a payload to the cells of a row.
struct RowVisitor: FieldVisitor {
  /// Bytes of a payload's string: offset and length, packed.
  typealias Item = RecordBatch.Range

  private(set) var recordIDs: [Item] = []
  private(set) var changedFields: [Item] = []
  private(set) var nulledFields: [Item] = []
  private(set) var diffFields: [Item] = []
  private var cells: UnsafeMutablePointer<UInt64>
  private var presence: UnsafeMutablePointer<UInt8>
  /// Where the arena's copy of the payload begins.
  private var payload = 0
  private var batch: RecordBatch?

  init() {
    // Replaced by `begin` before anything is visited.
    self.cells = UnsafeMutablePointer(bitPattern: 8).unsafelyUnwrapped
    self.presence = UnsafeMutablePointer(bitPattern: 8).unsafelyUnwrapped
  }

  /// Sets the row to write to. Its memory must not move until the payload is decoded.
  mutating func begin(_ batch: RecordBatch, row: Int, payload: RecordBatch.Range) {
    let row = batch.row(row)
    self.cells = row.cells
    self.presence = row.presence
    self.payload = payload.offset
    self.batch = batch
    Self.empty(&self.recordIDs)
    Self.empty(&self.changedFields)
    Self.empty(&self.nulledFields)
    Self.empty(&self.diffFields)
  }

  /// Cheaper than `removeAll`, because lists have few items.
  @inline(__always)
  private static func empty(_ items: inout [Item]) {
    while !items.isEmpty { items.removeLast() }
  }

  mutating func end() { self.batch = nil }

  @inline(__always)
  mutating func scalar(_ slot: Int, _ bits: UInt64) {
    self.cells[slot] = bits
    self.presence[slot] = RecordBatch.Presence.value
  }

  @inline(__always)
  mutating func bytes(_ slot: Int, offset: Int, count: Int) {
    self.cells[slot] = Item(offset: self.payload + offset, count: count).cell
    self.presence[slot] = RecordBatch.Presence.value
  }

  @inline(__always)
  mutating func record(_ slot: Int) { self.presence[slot] = RecordBatch.Presence.value }

  mutating func item(_ slot: Int, offset: Int, count: Int) {
    let item = Item(offset: self.payload + offset, count: count)
    switch slot {
    case MetadataSlot.recordIDs: self.recordIDs.append(item)
    case MetadataSlot.changedFields: self.changedFields.append(item)
    case MetadataSlot.nulledFields: self.nulledFields.append(item)
    case MetadataSlot.diffFields: self.diffFields.append(item)
    default: preconditionFailure("slot \(slot) is not a list of the header")
    }
  }

  mutating func text(_ slot: Int, _ utf8: UnsafeBufferPointer<UInt8>) {
    guard let batch = self.batch else { preconditionFailure("visited outside begin and end") }
    // The arena may move, because the payload is decoded from the caller's bytes.
    self.cells[slot] = batch.append(utf8).cell
    self.presence[slot] = RecordBatch.Presence.value
  }

  mutating func nonfinite(_ slot: Int, offset: Int, _ value: Float) {
    self.batch?.note(
      RecordBatch.NonfiniteNumber(text: self.cells[slot], offset: offset, value: value))
  }
}
