internal import PostgresClient

/// One row of a binary COPY under construction; memory is reused.
struct CopyRow {
  private(set) var bytes: [UInt8] = []

  mutating func begin(fieldCount: Int) {
    self.bytes.removeAll(keepingCapacity: true)
    self.integer(Int16(fieldCount))
  }

  mutating func null() { self.integer(Int32(-1)) }

  mutating func value(_ bytes: some Collection<UInt8>) {
    self.integer(Int32(bytes.count))
    self.bytes.append(contentsOf: bytes)
  }

  mutating func value(_ bytes: UnsafeBufferPointer<UInt8>, _ range: Range<Int>?) {
    guard let range else { return self.null() }
    self.value(UnsafeBufferPointer(rebasing: bytes[range]))
  }

  /// `integer`, `bigint` or `smallint`, depending on the width.
  mutating func value(_ value: some FixedWidthInteger) {
    self.integer(Int32(value.bitWidth / 8))
    self.integer(value)
  }

  mutating func value(_ value: Bool) { self.value(value ? 1 as UInt8 : 0) }

  /// `timestamp with time zone` of milliseconds since 1970; null outside the type's range.
  mutating func time(_ milliseconds: Int64?) {
    guard let time = milliseconds.flatMap({ PostgresTimestamp(milliseconds: $0) }) else {
      return self.null()
    }
    self.value(time.microseconds)
  }

  /// `text[]`
  mutating func value(texts: [[UInt8]]) {
    self.integer(Int32(20 + texts.reduce(0) { $0 + 4 + $1.count }))
    // Dimensions, no nulls, element type text, length, lower bound.
    for word in [1, 0, 25, Int32(texts.count), 1] { self.integer(word) }
    for text in texts { self.value(text) }
  }

  private mutating func integer(_ value: some FixedWidthInteger) {
    withUnsafeBytes(of: value.bigEndian) { self.bytes.append(contentsOf: $0) }
  }

  func send(to writer: inout CopyWriter) throws(PostgresError) {
    // Typed throws do not pass through `withUnsafeBufferPointer`'s rethrow.
    var failure: PostgresError?
    self.bytes.withUnsafeBufferPointer { bytes in
      do throws(PostgresError) { try writer.raw(bytes) } catch { failure = error }
    }
    if let failure { throw failure }
  }
}
