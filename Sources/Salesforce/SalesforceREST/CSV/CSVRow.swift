/// The values of one row, in the reader's own buffer: lent by `CSVReader.withRow`.
@usableFromInline package struct CSVRow: ~Copyable {
  /// Where a value is, counted from the start of its row.
  @usableFromInline struct Extent {
    @usableFromInline var start: Int
    @usableFromInline var end: Int

    @inlinable init(start: Int, end: Int) {
      self.start = start
      self.end = end
    }
  }

  @usableFromInline let start: UnsafeRawPointer
  @usableFromInline let extents: UnsafeBufferPointer<Extent>

  @inlinable
  init(start: UnsafeRawPointer, extents: UnsafeBufferPointer<Extent>) {
    self.start = start
    self.extents = extents
  }

  /// The number of values.
  @inlinable package var count: Int { self.extents.count }
  @inlinable package var indices: Range<Int> { 0..<self.count }

  /// The bytes of a value without its quotes, valid while the row is lent.
  @inlinable
  package subscript(_ index: Int) -> UnsafeRawBufferPointer {
    precondition(index >= 0 && index < self.extents.count)
    let extent = self.extents[index]
    return UnsafeRawBufferPointer(
      start: self.start + extent.start, count: extent.end &- extent.start)
  }
}
