internal import Bytes

/// Reads the rows of a file that `ParquetWriter` has written, in their order.
///
/// The file may be hostile: whatever its bytes are, a row that is given out has passed the checksums of
/// its pages, and nothing but an error comes of the rest.
package final class ParquetReader {
  package let columns: [ParquetColumn]
  package let rowCount: Int
  package let metadata: [(key: String, value: String)]
  package let createdBy: String?
  private let rowGroups: [FileMetadata.RowGroup]
  private let cursors: [ColumnCursor]
  /// The row of the next value of each column.
  @exclusivity(unchecked) private var nextRows: [Int]
  private var group = -1
  /// In the row group.
  @exclusivity(unchecked) private var row = 0
  /// The columns that have a value in the current row, ascending.
  @exclusivity(unchecked) package private(set) var present: [Int] = []

  private static let maxFooterByteCount = 64 << 20

  package init(_ source: some ParquetSource) throws(ParquetError) {
    let metadata = try Self.metadata(of: source)
    self.columns = metadata.columns
    self.rowCount = metadata.rowCount
    self.metadata = metadata.members
    self.createdBy = metadata.createdBy
    self.rowGroups = metadata.rowGroups
    let pages = PageReader(source)
    self.cursors = metadata.columns.map { ColumnCursor($0, pages) }
    self.nextRows = metadata.columns.map { _ in Int.max }
  }

  private static func metadata(of source: some ParquetSource) throws(ParquetError) -> FileMetadata {
    let magic = FileMetadata.magic.description
    let tailByteCount = 4 + magic.utf8.count
    guard source.byteCount >= magic.utf8.count + tailByteCount else {
      throw ParquetError(
        .damaged, "end of the file", "\(source.byteCount) bytes are too few for a Parquet file")
    }
    let end = source.byteCount - tailByteCount
    let tail = try Self.read(tailByteCount, at: end, of: source)
    guard String(decoding: tail.bytes.dropFirst(4), as: UTF8.self) == magic else {
      throw ParquetError(
        .damaged, "end of the file", "it is not \(magic): the file is not complete, or not Parquet")
    }
    let byteCount = Int(UInt32(littleEndian: tail.raw.loadUnaligned(as: UInt32.self)))
    guard byteCount <= min(end - magic.utf8.count, Self.maxFooterByteCount) else {
      throw ParquetError(
        .damaged, "end of the file", "its description is longer than the file, or than 64 MiB")
    }
    let footer = try Self.read(byteCount, at: end - byteCount, of: source)
    return try FileMetadata(parsing: footer.raw, end: end - byteCount)
  }

  private static func read(
    _ byteCount: Int, at offset: Int, of source: some ParquetSource
  ) throws(ParquetError) -> ByteBuffer {
    var buffer = ByteBuffer(capacity: byteCount)
    let target = UnsafeMutableRawBufferPointer(start: buffer.reserve(byteCount), count: byteCount)
    do {
      try source.read(into: target, at: offset)
    } catch {
      throw ParquetError(.unreadable, "end of the file", "\(error)", cause: error)
    }
    buffer.commit(byteCount)
    return buffer
  }

  /// Goes to the next row. The values of the last one are no longer valid.
  ///
  /// - Returns: false after the last row.
  package func next() throws(ParquetError) -> Bool {
    for column in self.present {
      try self.cursors[column].advance()
      self.nextRows[column] = self.cursors[column].nextRow
    }
    self.present.removeAll(keepingCapacity: true)
    self.row += 1
    while self.group < 0 || self.row == self.rowGroups[self.group].rowCount {
      guard self.group + 1 < self.rowGroups.count else {
        // Stays after the last row.
        self.row -= 1
        return false
      }
      try self.beginGroup(self.group + 1)
    }
    for column in self.nextRows.indices where self.nextRows[column] == self.row {
      try self.cursors[column].take()
      self.present.append(column)
    }
    return true
  }

  private func beginGroup(_ number: Int) throws(ParquetError) {
    self.group = number
    self.row = 0
    let group = self.rowGroups[number]
    for (column, cursor) in self.cursors.enumerated() {
      try cursor.begin(group.chunks[column], group: number, rowCount: group.rowCount)
      self.nextRows[column] = cursor.nextRow
    }
  }

  // MARK: Values of the current row, in columns that are present

  package func boolean(_ column: Int) -> Bool { self.cursors[column].integer != 0 }
  /// Values of the types with 32 and 64 bits: numbers, dates and times.
  package func integer(_ column: Int) -> Int64 { self.cursors[column].integer }
  /// Values of `float` and `double`.
  package func number(_ column: Int) -> Double { self.cursors[column].number }
  /// Without its point.
  package func decimal(_ column: Int) -> Int128 { self.cursors[column].decimal }
  /// Values of text, bytes and UUIDs.
  package func bytes(_ column: Int) -> UnsafeRawBufferPointer { self.cursors[column].bytes }
  package func elementCount(_ column: Int) -> Int { self.cursors[column].elementCount }
  package func element(_ index: Int, of column: Int) -> UnsafeRawBufferPointer {
    self.cursors[column].element(index)
  }
}
