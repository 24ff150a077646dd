internal import CEL
internal import JSON

/// Reads a column as a value of expressions.
struct ColumnReading {
  enum Form {
    case bool, int, float, double, string, bytes
    case symbols([BorrowedBytes])
    case decimal(scale: Int32)
    /// Days, or milliseconds, as midnight in UTC.
    case date(ColumnType.DateUnit)
    /// Since midnight; the factor converts the value to nanoseconds.
    case timeOfDay(Int64)
    case timestamp(unitsPerSecond: Int64)
    /// JSON text.
    case json
    case fieldSet
    indirect case record(scalar: ScalarReading?, parts: [Part])
  }

  struct ScalarReading {
    var slot: Int
    var form: Form
  }

  /// A member of a record that is not flattened.
  struct Part {
    var key: BorrowedBytes
    var reading: ColumnReading
  }

  let slot: Int
  let form: Form

  /// - Parameter arena: must keep names and symbols for as long as the reading is used.
  init(slot: Int, _ type: ColumnType, in arena: ByteArena) {
    self.slot = slot
    self.form = Self.form(of: type, in: arena)
  }

  init(recordIn slot: Int, scalar: Column.ScalarBranch?, children: [Column], in arena: ByteArena) {
    self.slot = slot
    self.form = .record(
      scalar: scalar.map { ScalarReading(slot: $0.slot, form: Self.form(of: $0.type, in: arena)) },
      parts: children.compactMap { child in
        Self.reading(of: child, in: arena).map { Part(key: arena.store(child.name), reading: $0) }
      })
  }

  /// Nil for a column without a slot.
  static func reading(of column: Column, in arena: ByteArena) -> ColumnReading? {
    switch column.content {
    case .constant: nil
    case .slot(let slot, let type): ColumnReading(slot: slot, type, in: arena)
    case .record(let slot, let scalar, let children):
      ColumnReading(recordIn: slot, scalar: scalar, children: children, in: arena)
    }
  }

  private static func form(of type: ColumnType, in arena: ByteArena) -> Form {
    switch type {
    case .boolean: .bool
    case .int32, .int64: .int
    case .float: .float
    case .double: .double
    case .string, .uuid: .string
    case .enumeration(let symbols): .symbols(symbols.map { arena.store($0) })
    case .bytes, .duration: .bytes
    case .decimal(_, let scale): .decimal(scale: Int32(scale))
    case .date(let unit): .date(unit)
    case .time(let unit): .timeOfDay(1_000_000_000 / unit.perSecond)
    case .timestamp(let unit, _): .timestamp(unitsPerSecond: unit.perSecond)
    case .stringList, .json: .json
    case .fieldSet: .fieldSet
    }
  }

  /// The type that expressions see.
  static func type(of column: Column) -> CELType {
    switch column.content {
    case .constant: .string
    case .slot(_, let type): Self.type(of: type)
    case .record(_, .some, _): .dyn
    case .record(_, nil, _): .map(.string, .dyn)
    }
  }

  private static func type(of type: ColumnType) -> CELType {
    switch type {
    case .boolean: .bool
    case .int32, .int64: .int
    case .float, .double: .double
    case .string, .uuid, .enumeration: .string
    case .bytes, .duration: .bytes
    case .decimal: .decimal
    case .date, .timestamp: .timestamp
    case .time: .duration
    case .stringList, .fieldSet: .list(.string)
    case .json: .dyn
    }
  }
}

extension ColumnType.TimeUnit {
  var perSecond: Int64 {
    switch self {
    case .milliseconds: 1000
    case .microseconds: 1_000_000
    case .nanoseconds: 1_000_000_000
    }
  }
}

extension EventKind {
  /// Whether rows have metadata about how, by whom and from where a record was changed.
  var isOfChange: Bool { self != .snapshot && !self.isOfWholeObject }

  /// Whether the line is about a whole object, not a single record.
  var isOfWholeObject: Bool { self == .overflow || self == .wildcard }
}

/// The meaning of slots without a value in a row.
struct RowCharacter {
  let kind: EventKind
  private let isUpdate: Bool

  init(of event: RecordBatch.Event, _ row: RecordBatch.Row) {
    self.kind = event.kind
    self.isUpdate = event.kind == .change && row.text(MetadataSlot.changeType).isUpdate
  }

  /// Whether fields of the row may be absent: in updates, gap rows and partial reads.
  var isPartial: Bool {
    switch self.kind {
    case .change: self.isUpdate
    case .event: false
    case .gap, .overflow, .wildcard, .snapshot: true
    }
  }

  /// Whether the row lists its fields in `_changed_fields`.
  var listsFields: Bool { self.isUpdate }

  /// The value of an empty slot.
  func missing(_ slot: Int, _ row: RecordBatch.Row) -> Value {
    guard row.presence[slot] == RecordBatch.Presence.absent else { return .null }
    if slot < MetadataSlot.count, self.kind != .snapshot { return .null }
    return self.isPartial ? .absent : .null
  }
}

extension UnsafeBufferPointer<UInt8> {
  fileprivate var isUpdate: Bool {
    // Called for every row, so it compares byte by byte without an iterator.
    self.count == 6 && self[0] == UInt8(ascii: "U") && self[1] == UInt8(ascii: "P")
      && self[2] == UInt8(ascii: "D") && self[3] == UInt8(ascii: "A")
      && self[4] == UInt8(ascii: "T") && self[5] == UInt8(ascii: "E")
  }
}
