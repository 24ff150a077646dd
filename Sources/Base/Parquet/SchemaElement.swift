/// An element of the tree that is a file's schema.
struct SchemaElement {
  private var physical: Int64?
  private var typeLength: Int64?
  private var repetition: Int64?
  private var name = ""
  private var childCount = 0
  private var scale: Int64 = 0
  private var precision: Int64 = 0
  /// The field of the union, and what it has.
  private var logicalType: Int16?
  private var isAdjustedToUTC = false
  private var unit: Int16 = 0

  init(_ kind: ThriftReader.Kind, _ reader: inout ThriftReader) throws(ThriftReader.Fault) {
    try reader.structure(kind) { (field, kind, reader) throws(ThriftReader.Fault) in
      switch field {
      case 1: self.physical = try reader.integer(kind)
      case 2: self.typeLength = try reader.integer(kind)
      case 3: self.repetition = try reader.integer(kind)
      case 4: self.name = try reader.text(kind)
      case 5: self.childCount = try reader.count(kind)
      case 7: self.scale = try reader.integer(kind)
      case 8: self.precision = try reader.integer(kind)
      case 10:
        try reader.structure(kind) { (field, kind, reader) throws(ThriftReader.Fault) in
          self.logicalType = field
          guard field == 7 || field == 8 else { return try reader.skip(kind) }
          try reader.structure(kind) { (field, kind, reader) throws(ThriftReader.Fault) in
            try self.readTime(field, kind, &reader)
          }
        }
      default: try reader.skip(kind)
      }
    }
  }

  /// A field of `TimeType` or `TimestampType`.
  private mutating func readTime(
    _ field: Int16, _ kind: ThriftReader.Kind, _ reader: inout ThriftReader
  ) throws(ThriftReader.Fault) {
    switch field {
    case 1: self.isAdjustedToUTC = try reader.boolean(kind)
    case 2:
      try reader.structure(kind) { (field, kind, reader) throws(ThriftReader.Fault) in
        self.unit = field
        try reader.skip(kind)
      }
    default: try reader.skip(kind)
    }
  }

  /// The columns of a schema.
  static func columns(_ elements: [SchemaElement]) throws(ParquetError) -> [ParquetColumn] {
    var rest = elements[...]
    guard let root = rest.popFirst(), root.childCount > 0 else {
      throw ParquetError(.damaged, "schema", "it has no columns")
    }
    var columns: [ParquetColumn] = []
    var names: Set<String> = []
    while let element = rest.popFirst() {
      let place = "column \(element.name) of the schema"
      guard names.insert(element.name).inserted else {
        throw ParquetError(.damaged, place, "there are two of the name")
      }
      guard element.repetition == Int64(SchemaText.Repetition.optional.rawValue) else {
        throw ParquetError(.unsupported, place, "it is not optional")
      }
      let type = element.childCount == 0 ? element.type : Self.list(element, &rest)
      guard let type else { throw ParquetError(.unsupported, place, "its type is not known") }
      columns.append(ParquetColumn(element.name, type))
    }
    guard columns.count == root.childCount else {
      throw ParquetError(
        .damaged, "schema", "it has \(columns.count) columns, but says \(root.childCount)")
    }
    return columns
  }

  /// The type of a list, whose inner elements follow.
  private static func list(
    _ element: SchemaElement, _ rest: inout ArraySlice<SchemaElement>
  ) -> ParquetType? {
    guard element.logicalType == 3, element.childCount == 1,
      let elements = rest.popFirst(),
      elements.repetition == Int64(SchemaText.Repetition.repeated.rawValue),
      elements.childCount == 1, elements.name == SchemaText.listName,
      let item = rest.popFirst(),
      item.repetition == Int64(SchemaText.Repetition.required.rawValue),
      item.childCount == 0, item.name == SchemaText.elementName, item.type == .string
    else { return nil }
    return .stringList
  }

  /// nil for a type that is not one of ours.
  private var type: ParquetType? {
    guard let type = self.namedType else { return nil }
    let physical = type.physical
    guard self.physical == Int64(physical.number) else { return nil }
    if case .fixed(let byteCount) = physical, self.typeLength != Int64(byteCount) { return nil }
    return type
  }

  private var namedType: ParquetType? {
    switch self.logicalType {
    case nil:
      switch self.physical {
      case 0: .boolean
      case 1: .int32
      case 2: .int64
      case 4: .float
      case 5: .double
      case 6: .bytes
      default: nil
      }
    case 1: .string
    case 5:
      (1...Int64(ParquetType.maxPrecision)).contains(self.precision)
        && (0...self.precision).contains(self.scale)
        ? .decimal(precision: Int(self.precision), scale: Int(self.scale)) : nil
    case 6: .date
    case 7: ParquetType.Unit(rawValue: Int(self.unit)).map { .time($0) }
    case 8:
      ParquetType.Unit(rawValue: Int(self.unit)).map {
        .timestamp($0, isLocal: !self.isAdjustedToUTC)
      }
    case 12: .json
    case 14: .uuid
    default: nil
    }
  }
}
