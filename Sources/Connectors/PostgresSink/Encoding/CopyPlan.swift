internal import Bytes
internal import Pipeline

/// The steps of a `CopyEncoder` for each row, compiled from a layout and the columns of its tables.
struct CopyPlan {
  struct Piece {
    var offset: Int
    var count: Int
  }

  /// A field that may be named in `_changed_fields` and similar lists.
  struct ListedField {
    var slot: Int
    var column: Int
    /// Its element of a `text[]`, including the length word.
    var element: Piece
  }

  /// A record of the schema, and the columns that it has under other schemas or another
  /// configuration.
  struct Compound {
    /// The slot of its bit in sets of fields.
    var slot: Int
    var columns: [Int]
    /// Their elements of a `text[]`, including the length words.
    var elements: [Piece]
  }

  /// One per column that is written, in the order of the table.
  private(set) var entries: [CellEncoding] = []
  /// Slots by index of the entry; -1 for columns with the same text in every row, whose `argument`
  /// and `count` locate that text.
  private(set) var slotOfEntry: [Int] = []
  /// Index of a slot's entry; -1 for slots without a column.
  private(set) var entryOfSlot: [Int32]
  /// One per 8 slots: all bits of the bytes whose slots have an entry.
  private(set) var masks: [UInt64]
  /// One bit per entry, in words of 64, set for entries that every row has.
  private(set) var constants: [UInt64]
  private(set) var records: [RecordJSONWriter] = []
  private(set) var symbols: [Piece] = []
  /// By index of the column, for messages.
  private(set) var fieldOfColumn: [Int: (name: String, path: String)] = [:]
  /// In the order of the lists.
  private(set) var listedFields: [ListedField] = []
  /// Records with columns that this layout does not write.
  private(set) var compounds: [Compound] = []
  /// The tables have columns that only reads bring, and reads of this layout do not.
  private(set) var lacksOnlyRead = false
  let unions: UnionColumns
  private(set) var pool: [UInt8] = []
  private(set) var topic = Piece(offset: 0, count: 0)
  private(set) var schemaID = Piece(offset: 0, count: 0)
  private(set) var entity = Piece(offset: 0, count: 0)
  let columnCount: Int

  init(layout: RecordLayout, tables: LayoutTables) {
    self.columnCount = tables.dataColumns.count
    self.unions = UnionColumns(tables.dataColumns)
    self.entryOfSlot = Array(repeating: -1, count: (layout.slotCount + 7) & ~7)
    self.masks = Array(repeating: 0, count: (layout.slotCount + 7) / 8)
    self.constants = Array(repeating: 0, count: (self.columnCount + 63) / 64)
    self.topic = self.piece(layout.topic)
    self.schemaID = self.piece(layout.schemaID)
    self.entity = self.piece(layout.entity)

    let columns = layout.columns.filter { !$0.isMetadata }
    precondition(columns.count == tables.columnIndices.count, "tables of another layout")
    var columnOfSlot: [Int: Int] = [:]
    var pending: [(slot: Int, entry: CellEncoding)] = []
    for (column, index) in zip(columns, tables.columnIndices) {
      guard let index else { continue }
      let target = tables.dataColumns[index]
      guard let operation = CellEncoding.operation(from: column, to: target.type) else {
        preconditionFailure("\(column.name) as \(target.type): the catalogue has let it pass")
      }
      self.fieldOfColumn[index] = (target.name, column.path.joined(separator: "."))
      var entry = CellEncoding(operation: operation, column: index)
      switch column.content {
      case .constant(let text):
        let piece = self.piece(text)
        entry.argument = piece.offset
        entry.count = piece.count
        pending.append((-1, entry))
      case .slot(let slot, let type):
        self.describe(type, &entry)
        pending.append((slot, entry))
        columnOfSlot[slot] = index
      case .record(let slot, _, _):
        entry.argument = self.records.count
        self.records.append(RecordJSONWriter(column))
        pending.append((slot, entry))
        for slot in Self.slots(column) { columnOfSlot[slot] = index }
      }
    }
    for (index, (slot, entry)) in pending.sorted(by: { $0.entry.column < $1.entry.column })
      .enumerated()
    {
      self.entries.append(entry)
      self.slotOfEntry.append(slot)
      guard slot >= 0 else {
        self.constants[index / 64] |= 1 << UInt64(index % 64)
        continue
      }
      precondition(self.entryOfSlot[slot] < 0, "slot \(slot) is that of two columns")
      self.entryOfSlot[slot] = Int32(index)
      self.masks[slot / 8] |= 0xFF << UInt64(slot % 8 * 8)
    }
    let written = Set(self.entries.map(\.column))
    let gone = (tables.current ?? tables.history)?.goneColumns ?? []
    self.lacksOnlyRead = tables.dataColumns.indices.contains { index in
      let column = tables.dataColumns[index]
      return column.isOnlyRead && !written.contains(index) && !gone.contains(column.name)
    }
    for compound in layout.compounds {
      let path = compound.path.joined(separator: ".")
      let others = tables.dataColumns.indices.filter { index in
        let column = tables.dataColumns[index]
        return !written.contains(index)
          && (column.path == path || column.path.hasPrefix(path + "."))
      }
      guard !others.isEmpty else { continue }
      self.compounds.append(
        Compound(
          slot: compound.slot, columns: others,
          elements: others.map { self.element(tables.listedName($0)) }))
    }
    for slot in layout.fieldOrder {
      guard let column = columnOfSlot[slot] else { continue }
      self.listedFields.append(
        ListedField(
          slot: slot, column: column, element: self.element(tables.listedName(column))))
    }
  }

  private mutating func describe(_ type: ColumnType, _ entry: inout CellEncoding) {
    switch type {
    case .decimal(let precision, let scale):
      entry.argument = scale
      entry.count = precision
    case .enumeration(let symbols):
      entry.argument = self.symbols.count
      entry.count = symbols.count
      for symbol in symbols { self.symbols.append(self.piece(symbol)) }
    default: break
    }
  }

  /// The slots of the record and of everything inside it.
  private static func slots(_ column: Column) -> [Int] {
    switch column.content {
    case .constant: []
    case .slot(let slot, _): [slot]
    case .record(let slot, let scalar, let children):
      [slot] + (scalar.map { [$0.slot] } ?? []) + children.flatMap { Self.slots($0) }
    }
  }

  /// A constant text in the server's format.
  private mutating func piece(_ text: String) -> Piece {
    var buffer = ByteBuffer(capacity: 16)
    var text = text
    _ = text.withUTF8 { buffer.appendPostgresText($0) }
    let offset = self.pool.count
    self.pool += buffer.bytes
    return Piece(offset: offset, count: buffer.count)
  }

  private mutating func element(_ name: String) -> Piece {
    let offset = self.pool.count
    withUnsafeBytes(of: Int32(name.utf8.count).bigEndian) { self.pool += $0 }
    self.pool += name.utf8
    return Piece(offset: offset, count: self.pool.count - offset)
  }
}
