/// What a file says about itself at its end.
struct FileMetadata {
  static let magic: StaticString = "PAR1"
  /// The version of the format. Readers ignore it.
  static let version: Int32 = 2
  /// The number of the codec.
  static let zstd: Int32 = 6

  struct RowGroup {
    var rowCount = 0
    var chunks: [Chunk] = []
  }

  /// The pages of one column in a row group.
  struct Chunk {
    var path: [String] = []
    var physical: Int64 = -1
    var codec: Int64 = -1
    /// Values, nulls and empty lists.
    var levelCount = 0
    var dataStart = 0
    var dictionaryStart: Int?
    var byteCount = 0

    var start: Int { self.dictionaryStart ?? self.dataStart }
  }

  private(set) var columns: [ParquetColumn] = []
  private(set) var rowCount = 0
  private(set) var rowGroups: [RowGroup] = []
  private(set) var members: [(key: String, value: String)] = []
  private(set) var createdBy: String?

  /// - Parameters:
  ///   - bytes: the structure `FileMetaData`.
  ///   - end: where it begins in the file, so that everything else is before it.
  init(parsing bytes: UnsafeRawBufferPointer, end: Int) throws(ParquetError) {
    var elements: [SchemaElement] = []
    var hasRowGroups = false
    do throws(ThriftReader.Fault) {
      var reader = ThriftReader(bytes)
      try reader.structure { (field, kind, reader) throws(ThriftReader.Fault) in
        switch field {
        case 2:
          try reader.list(kind) { (kind, reader) throws(ThriftReader.Fault) in
            elements.append(try SchemaElement(kind, &reader))
          }
        case 3: self.rowCount = try reader.count(kind)
        case 4:
          hasRowGroups = true
          try reader.list(kind) { (kind, reader) throws(ThriftReader.Fault) in
            self.rowGroups.append(try RowGroup(kind, &reader))
          }
        case 5:
          try reader.list(kind) { (kind, reader) throws(ThriftReader.Fault) in
            var member = (key: "", value: "")
            try reader.structure(kind) { (field, kind, reader) throws(ThriftReader.Fault) in
              switch field {
              case 1: member.key = try reader.text(kind)
              case 2: member.value = try reader.text(kind)
              default: try reader.skip(kind)
              }
            }
            self.members.append(member)
          }
        case 6: self.createdBy = try reader.text(kind)
        default: try reader.skip(kind)
        }
      }
    } catch {
      throw ParquetError(.damaged, "end of the file", error.reason)
    }
    guard hasRowGroups else {
      throw ParquetError(.damaged, "end of the file", "it does not list the row groups")
    }
    self.columns = try SchemaElement.columns(elements)
    try self.check(end: end)
  }

  /// So that what reads the pages can rely on their places.
  private func check(end: Int) throws(ParquetError) {
    var rowCount = 0
    for (number, group) in self.rowGroups.enumerated() {
      let place = "row group \(number)"
      // No row group has as many rows as the sum could not hold.
      guard group.rowCount > 0, group.rowCount <= Int32.max else {
        throw ParquetError(.damaged, place, "it has \(group.rowCount) rows")
      }
      rowCount += group.rowCount
      guard group.chunks.count == self.columns.count else {
        throw ParquetError(
          .damaged, place, "it has \(group.chunks.count) of \(self.columns.count) columns")
      }
      for (column, chunk) in zip(self.columns, group.chunks) {
        let place = "column \(column.name) of \(place)"
        guard chunk.path == column.pathInSchema,
          chunk.physical == Int64(column.type.physical.number)
        else { throw ParquetError(.damaged, place, "it is another column than in the schema") }
        guard chunk.codec == Int64(Self.zstd) else {
          throw ParquetError(.unsupported, place, "it is not compressed with zstd")
        }
        guard chunk.start >= Self.magic.utf8CodeUnitCount, chunk.start <= chunk.dataStart,
          chunk.start < end, chunk.byteCount <= end - chunk.start
        else { throw ParquetError(.damaged, place, "its bytes are not in the file") }
        guard chunk.levelCount >= group.rowCount else {
          throw ParquetError(.damaged, place, "it has fewer values than rows")
        }
      }
    }
    guard rowCount == self.rowCount else {
      throw ParquetError(
        .damaged, "end of the file",
        "the row groups have \(rowCount) rows, but the file \(self.rowCount)")
    }
  }
}

extension FileMetadata.RowGroup {
  fileprivate init(
    _ kind: ThriftReader.Kind, _ reader: inout ThriftReader
  ) throws(ThriftReader.Fault) {
    try reader.structure(kind) { (field, kind, reader) throws(ThriftReader.Fault) in
      switch field {
      case 1:
        try reader.list(kind) { (kind, reader) throws(ThriftReader.Fault) in
          self.chunks.append(try FileMetadata.Chunk(kind, &reader))
        }
      case 3: self.rowCount = try reader.count(kind)
      default: try reader.skip(kind)
      }
    }
  }
}

extension FileMetadata.Chunk {
  fileprivate init(
    _ kind: ThriftReader.Kind, _ reader: inout ThriftReader
  ) throws(ThriftReader.Fault) {
    try reader.structure(kind) { (field, kind, reader) throws(ThriftReader.Fault) in
      guard field == 3 else { return try reader.skip(kind) }
      try reader.structure(kind) { (field, kind, reader) throws(ThriftReader.Fault) in
        try self.read(field, kind, &reader)
      }
    }
  }

  /// A field of `ColumnMetaData`.
  private mutating func read(
    _ field: Int16, _ kind: ThriftReader.Kind, _ reader: inout ThriftReader
  ) throws(ThriftReader.Fault) {
    switch field {
    case 1: self.physical = try reader.integer(kind)
    case 3:
      try reader.list(kind) { (kind, reader) throws(ThriftReader.Fault) in
        self.path.append(try reader.text(kind))
      }
    case 4: self.codec = try reader.integer(kind)
    case 5: self.levelCount = try reader.count(kind)
    case 7: self.byteCount = try reader.count(kind)
    case 9: self.dataStart = try reader.count(kind)
    case 11: self.dictionaryStart = try reader.count(kind)
    default: try reader.skip(kind)
    }
  }
}
