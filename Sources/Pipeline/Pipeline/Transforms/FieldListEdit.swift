/// Keeps the lists of changed, nulled and diffed fields of an update correct when a stage changes
/// its row.
struct FieldListEdit {
  private let batch: RecordBatch
  private let row: Int
  /// Only updates list their fields.
  private let isNeeded: Bool
  /// The lists of this row, which the stage may change. Other rows share the original lists.
  private var ownsLists = false

  init(of row: Int, in batch: RecordBatch, _ character: RowCharacter) {
    self.batch = batch
    self.row = row
    self.isNeeded = character.listsFields
  }

  private static let lists = [
    MetadataSlot.changedFields, MetadataSlot.nulledFields, MetadataSlot.diffFields,
  ]

  /// Notes that a slot has a new presence and its cell holds a value, not a diff.
  mutating func note(_ slot: Int, _ presence: UInt8) {
    guard self.isNeeded else { return }
    if !self.ownsLists { self.copyLists() }
    let isThere = presence != RecordBatch.Presence.absent
    self.write(isThere, slot, MetadataSlot.changedFields)
    self.write(presence == RecordBatch.Presence.null, slot, MetadataSlot.nulledFields)
    self.write(false, slot, MetadataSlot.diffFields)
  }

  /// Appends new lists with a bit for every current slot.
  private mutating func copyLists() {
    self.ownsLists = true
    let count = (self.batch.layout.slotCount + 7) / 8
    for list in Self.lists {
      let place = self.batch.reserveArena(count)
      place.update(repeating: 0, count: count)
      let row = self.batch.row(self.row)
      if let cell = row.value(list), let start = row.bytes(cell).baseAddress {
        place.update(from: start, count: min(count, row.bytes(cell).count))
      }
      row.set(list, to: self.batch.commitArena(count))
    }
  }

  private func write(_ bit: Bool, _ slot: Int, _ list: Int) {
    let row = self.batch.row(self.row)
    let bytes = self.batch.arenaBase + RecordBatch.Range(cell: row.cells[list]).offset
    let mask = UInt8(1) << UInt8(slot % 8)
    if bit { bytes[slot / 8] |= mask } else { bytes[slot / 8] &= ~mask }
  }
}
