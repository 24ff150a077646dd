/// The schema of a file, as the elements of its tree in depth-first order (`SchemaElement`).
enum SchemaText {
  static let listName = "list"
  static let elementName = "element"

  /// The numbers of `FieldRepetitionType`.
  enum Repetition: Int32 {
    case required = 0
    case optional = 1
    case repeated = 2
  }

  static func write(_ columns: [ParquetColumn], in file: inout ThriftWriter) {
    let elementCount = columns.reduce(1) { $0 + ($1.type.isList ? 3 : 1) }
    file.list(2, .structure, count: elementCount)
    file.structure { root in
      root.text(4, "schema")
      root.integer(5, Int32(columns.count))
    }
    for column in columns {
      guard column.type.isList else {
        Self.write(column.name, column.type, .optional, in: &file)
        continue
      }
      file.structure { list in
        list.integer(3, Repetition.optional.rawValue)
        list.text(4, column.name)
        list.integer(5, Int32(1))
        list.integer(6, Int32(3))
        list.structure(10) { type in type.structure(3) { _ in } }
      }
      file.structure { elements in
        elements.integer(3, Repetition.repeated.rawValue)
        elements.text(4, Self.listName)
        elements.integer(5, Int32(1))
      }
      Self.write(Self.elementName, .string, .required, in: &file)
    }
  }

  private static func write(
    _ name: String, _ type: ParquetType, _ repetition: Repetition, in file: inout ThriftWriter
  ) {
    let physical = type.physical
    file.structure { element in
      element.integer(1, physical.number)
      if case .fixed(let byteCount) = physical { element.integer(2, Int32(byteCount)) }
      element.integer(3, repetition.rawValue)
      element.text(4, name)
      if let converted = type.convertedType { element.integer(6, converted) }
      if case .decimal(let precision, let scale) = type {
        element.integer(7, Int32(scale))
        element.integer(8, Int32(precision))
      }
      if type.hasLogicalType {
        element.structure(10) { logical in type.writeLogicalType(in: &logical) }
      }
    }
  }
}

extension ParquetColumn {
  /// The names from the root to the values.
  var pathInSchema: [String] {
    self.type.isList
      ? [self.name, SchemaText.listName, SchemaText.elementName] : [self.name]
  }
}

extension ParquetType {
  /// The older name of the type, which some readers still go by; nil if it has none.
  fileprivate var convertedType: Int32? {
    switch self {
    case .string, .stringList: 0
    case .decimal: 5
    case .date: 6
    case .timestamp(.milliseconds, isLocal: false): 9
    case .timestamp(.microseconds, isLocal: false): 10
    case .json: 19
    case .boolean, .int32, .int64, .float, .double, .bytes, .time, .timestamp, .uuid: nil
    }
  }

  fileprivate var hasLogicalType: Bool {
    switch self {
    case .boolean, .int32, .int64, .float, .double, .bytes: false
    default: true
    }
  }

  /// The field of the union `LogicalType`.
  fileprivate func writeLogicalType(in logical: inout ThriftWriter) {
    switch self {
    case .boolean, .int32, .int64, .float, .double, .bytes: break
    case .string, .stringList: logical.structure(1) { _ in }
    case .decimal(let precision, let scale):
      logical.structure(5) { decimal in
        decimal.integer(1, Int32(scale))
        decimal.integer(2, Int32(precision))
      }
    case .date: logical.structure(6) { _ in }
    case .time(let unit):
      logical.structure(7) { time in
        time.boolean(1, false)
        time.structure(2) { units in units.structure(Int16(unit.rawValue)) { _ in } }
      }
    case .timestamp(let unit, let isLocal):
      logical.structure(8) { timestamp in
        timestamp.boolean(1, !isLocal)
        timestamp.structure(2) { units in units.structure(Int16(unit.rawValue)) { _ in } }
      }
    case .json: logical.structure(12) { _ in }
    case .uuid: logical.structure(14) { _ in }
    }
  }
}
