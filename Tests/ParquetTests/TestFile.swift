import Testing

@testable import Parquet

/// A value as tests compare it: numbers by their bits.
enum TestValue: Equatable {
  case boolean(Bool)
  case integer(Int64)
  case number(bits: UInt64)
  case decimal(Int128)
  case bytes([UInt8])
  case list([[UInt8]])
}

/// A file in memory.
struct TestFile: ParquetSource {
  struct Failure: Error {}

  var bytes: [UInt8]
  /// Reads from there on fail.
  var unreadableFrom = Int.max

  var byteCount: Int { self.bytes.count }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws {
    precondition(offset >= 0 && offset + buffer.count <= self.bytes.count)
    guard offset + buffer.count <= self.unreadableFrom else { throw Failure() }
    buffer.copyBytes(from: self.bytes[offset..<offset + buffer.count])
  }

  init(bytes: [UInt8]) { self.bytes = bytes }

  /// - Parameter rows: by column, nil for null.
  init(
    _ columns: [ParquetColumn], _ rows: [[TestValue?]], rowLimit: Int = 122_880,
    pageByteCount: Int? = nil, metadata: [(key: String, value: String)] = []
  ) throws {
    let writer = ParquetWriter(
      columns: columns, level: 1, createdBy: "tests", metadata: metadata, rowLimit: rowLimit,
      pageByteCount: pageByteCount)
    var bytes: [UInt8] = []
    for row in rows {
      for (column, value) in row.enumerated() {
        if let value { try writer.append(value, to: column) }
      }
      writer.endRow { bytes += $0 }
    }
    writer.finish { bytes += $0 }
    #expect(bytes.count == writer.byteCount)
    self.bytes = bytes
  }

  /// All rows, by column.
  func rows() throws(ParquetError) -> [[TestValue?]] {
    let reader = try ParquetReader(self)
    var rows: [[TestValue?]] = []
    while try reader.next() { rows.append(reader.values) }
    return rows
  }
}

extension ParquetWriter {
  func append(_ value: TestValue, to column: Int) throws {
    switch value {
    case .boolean(let value): self.append(boolean: value, to: column)
    case .integer(let value): self.append(integer: value, to: column)
    case .number(let bits):
      self.append(number: Double(bitPattern: bits), to: column)
    case .decimal(let value): try self.append(decimal: value, to: column)
    case .bytes(let value):
      try value.withUnsafeBytes { bytes in try self.append(bytes: bytes, to: column) }
    case .list(let elements):
      self.beginList(in: column)
      for element in elements {
        try element.withUnsafeBytes { bytes in try self.append(element: bytes, to: column) }
      }
    }
  }
}

extension ParquetReader {
  /// Those of the current row.
  var values: [TestValue?] {
    var values = [TestValue?](repeating: nil, count: self.columns.count)
    for column in self.present {
      values[column] =
        switch self.columns[column].type {
        case .boolean: .boolean(self.boolean(column))
        case .int32, .int64, .date, .time, .timestamp: .integer(self.integer(column))
        case .float, .double: .number(bits: self.number(column).bitPattern)
        case .decimal: .decimal(self.decimal(column))
        case .string, .json, .bytes, .uuid: .bytes(Array(self.bytes(column)))
        case .stringList:
          .list((0..<self.elementCount(column)).map { Array(self.element($0, of: column)) })
        }
    }
    return values
  }
}
