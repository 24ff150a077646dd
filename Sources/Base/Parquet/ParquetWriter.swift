internal import Bytes

/// Writes a file of rows, one after the other (parquet-format).
///
/// A row group is written when it is complete; the memory is that of its pages, compressed, at most
/// 64 MiB in all. What depends on the columns alone is done once; a row costs what its values cost.
package final class ParquetWriter {
  /// The most bytes of a value, or of a list with four bytes for each of its elements.
  package static let maxValueByteCount = 8 << 20
  /// The rows of a row group: what one thread of DuckDB reads at a time.
  static let rowGroupRowCount = 122_880
  /// The compressed bytes, about, at which a row group ends.
  static let rowGroupByteCount = 12 << 20

  package let columns: [ParquetColumn]
  private let metadata: [(key: String, value: String)]
  private let createdBy: String
  private let chunks: [ColumnChunkWriter]
  private let builder: PageBuilder
  private let rowLimit: Int
  private var rowGroups = ThriftWriter()
  private var rowGroupCount = 0
  /// Rows of the current row group.
  @exclusivity(unchecked) private var row = 0
  package private(set) var rowCount = 0
  /// Bytes that have been written.
  package private(set) var byteCount = 0

  /// - Parameters:
  ///   - columns: with different names, at least one.
  ///   - level: of zstd, 1…22.
  ///   - createdBy: the program, as `pubsub-etl version 1.0.0`.
  ///   - metadata: of the file as a whole.
  package convenience init(
    columns: [ParquetColumn], level: Int, createdBy: String,
    metadata: [(key: String, value: String)] = []
  ) {
    self.init(
      columns: columns, level: level, createdBy: createdBy, metadata: metadata,
      rowLimit: Self.rowGroupRowCount)
  }

  init(
    columns: [ParquetColumn], level: Int, createdBy: String,
    metadata: [(key: String, value: String)], rowLimit: Int, pageByteCount: Int? = nil
  ) {
    precondition(!columns.isEmpty, "a file without columns")
    precondition(Set(columns.map(\.name)).count == columns.count, "two columns have one name")
    self.columns = columns
    self.metadata = metadata
    self.createdBy = createdBy
    self.rowLimit = rowLimit
    let builder = PageBuilder(level: level)
    self.builder = builder
    // The pages that are being filled have at most a third of a row group's bytes.
    let share = Self.rowGroupByteCount / 3 / columns.count
    let pageByteCount = pageByteCount ?? min(max(share, 4 << 10), 128 << 10)
    self.chunks = columns.map {
      ColumnChunkWriter($0, pageByteCount: pageByteCount, builder: builder)
    }
  }

  // MARK: Values of the current row, at most one in each column, of the column's type

  package func append(boolean value: Bool, to column: Int) {
    self.chunks[column].append(boolean: value, row: self.row)
  }

  /// Values of the types with 32 and 64 bits: numbers, dates and times.
  @inline(__always)
  package func append(integer value: Int64, to column: Int) {
    self.chunks[column].append(integer: value, row: self.row)
  }

  /// Values of `float` and `double`.
  package func append(number value: Double, to column: Int) {
    self.chunks[column].append(number: value, row: self.row)
  }

  /// Text in UTF-8, bytes, or the 16 bytes of a UUID.
  package func append(
    bytes value: UnsafeRawBufferPointer, to column: Int
  ) throws(ParquetError) {
    let chunk = self.chunks[column]
    let byteCount = chunk.physical.byteCount
    guard byteCount == 0 ? value.count <= Self.maxValueByteCount : value.count == byteCount else {
      throw self.unstorable(column, "a value of \(value.count) bytes")
    }
    chunk.append(bytes: value, row: self.row)
  }

  /// - Parameter value: without its point.
  package func append(decimal value: Int128, to column: Int) throws(ParquetError) {
    let chunk = self.chunks[column]
    guard value.magnitude < chunk.decimalLimit else {
      throw self.unstorable(column, "a number with more digits than its type has")
    }
    guard case .fixed(let byteCount) = chunk.physical else {
      return chunk.append(integer: Int64(value), row: self.row)
    }
    withUnsafeBytes(of: value.bigEndian) { bytes in
      chunk.append(
        bytes: UnsafeRawBufferPointer(rebasing: bytes.suffix(byteCount)), row: self.row)
    }
  }

  /// Begins a list, which may stay empty.
  package func beginList(in column: Int) { self.chunks[column].beginList(row: self.row) }

  package func append(
    element value: UnsafeRawBufferPointer, to column: Int
  ) throws(ParquetError) {
    guard self.chunks[column].append(element: value) else {
      throw self.unstorable(column, "a list of more than \(Self.maxValueByteCount) bytes")
    }
  }

  private func unstorable(_ column: Int, _ reason: String) -> ParquetError {
    ParquetError(
      .unstorable, "column \(self.columns[column].name), row \(self.rowCount)", reason)
  }

  // MARK: Rows

  /// Ends the current row, whose columns without a value are null. Passes what is complete to `write`.
  package func endRow<Failure>(
    write: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    self.row += 1
    self.rowCount += 1
    guard
      self.row == self.rowLimit || self.builder.heldByteCount >= Self.rowGroupByteCount
    else { return }
    try self.endRowGroup(write: write)
  }

  /// Passes the rest of the file to `write`.
  package func finish<Failure>(
    write: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    if self.row > 0 { try self.endRowGroup(write: write) }
    try self.begin(write: write)
    var footer = ThriftWriter()
    self.describe(in: &footer)
    var end = ByteBuffer(capacity: footer.output.count + 8)
    end.append(footer.output.bytes)
    end.append(littleEndian: UInt32(footer.output.count))
    end.append(utf8: FileMetadata.magic)
    self.byteCount += end.count
    try write(end.raw)
  }

  private func begin<Failure>(
    write: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    guard self.byteCount == 0 else { return }
    let magic = FileMetadata.magic
    self.byteCount = magic.utf8CodeUnitCount
    try write(
      UnsafeRawBufferPointer(start: magic.utf8Start, count: magic.utf8CodeUnitCount))
  }

  private func endRowGroup<Failure>(
    write: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    try self.begin(write: write)
    let start = self.byteCount
    var uncompressedByteCount = 0
    var columns = ThriftWriter()
    for chunk in self.chunks {
      let sizes = try chunk.finish(
        rowCount: self.row, at: self.byteCount, describingIn: &columns, write: write)
      self.byteCount += sizes.byteCount
      uncompressedByteCount += sizes.uncompressedByteCount
    }
    self.rowGroups.structure { group in
      group.list(1, .structure, count: self.chunks.count)
      group.append(columns.output.bytes)
      group.integer(2, Int64(uncompressedByteCount))
      group.integer(3, Int64(self.row))
      group.integer(5, Int64(start))
      group.integer(6, Int64(self.byteCount - start))
      // Files with more row groups do not number them.
      if let number = Int16(exactly: self.rowGroupCount) { group.small(7, number) }
    }
    self.rowGroupCount += 1
    self.row = 0
    self.builder.heldByteCount = 0
  }

  private func describe(in footer: inout ThriftWriter) {
    footer.structure { file in
      file.integer(1, FileMetadata.version)
      SchemaText.write(self.columns, in: &file)
      file.integer(3, Int64(self.rowCount))
      file.list(4, .structure, count: self.rowGroupCount)
      file.append(self.rowGroups.output.bytes)
      file.list(5, .structure, count: self.metadata.count)
      for (key, value) in self.metadata {
        file.structure { member in
          member.text(1, key)
          member.text(2, value)
        }
      }
      file.text(6, self.createdBy)
      // Every column has the order of its type.
      file.list(7, .structure, count: self.columns.count)
      for _ in self.columns {
        file.structure { order in order.structure(1) { _ in } }
      }
    }
  }
}
