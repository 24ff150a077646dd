/// Reads CSV (RFC 4180) as in results of Bulk API 2.0: a header, then rows with as many values.
///
/// Text is appended in pieces of any size, and rows are read one at a time. How the text is divided
/// makes no difference, not even to errors. Values are separated by commas; those in quotes may
/// contain anything. Rows end with LF or CR LF; the last one may also end with the text. A byte
/// order mark at the start is skipped. A quoted and an unquoted empty value are the same.
///
/// Nothing is allocated per row or value: values are in the reader's buffer, with doubled quotes
/// unescaped in place. The buffer holds what was appended and not yet read as rows. A caller that
/// reads rows until `needsBytes` before each `append` therefore needs memory for one incomplete row
/// and one piece.
@usableFromInline package struct CSVReader: ~Copyable {
  package struct Limits: Sendable {
    /// The longest row, in bytes of the text with all quotes and the row's end.
    package var rowBytes: Int
    /// Columns.
    package var fields: Int

    package init(rowBytes: Int = 16 << 20, fields: Int = 5_000) {
      precondition(rowBytes > 0 && rowBytes <= Int(Int32.max) && fields > 0)
      self.rowBytes = rowBytes
      self.fields = fields
    }
  }

  package enum Step: Sendable {
    /// The first row, which names the columns.
    case header
    case row
    /// Call `append` or `finish`, then `next` again.
    case needsBytes
    /// Every row has been read.
    case end
  }

  /// Where `position` is in a row.
  enum Mode {
    case byteOrderMark, valueStart, unquoted, quoted, closingQuote, carriageReturn
  }

  let limits: Limits
  var buffer: CSVBuffer
  /// The current row's first byte in the buffer.
  var rowStart = 0
  /// The next byte to look at.
  var position = 0
  /// The current value without its opening quote.
  var valueStart = 0
  /// Where the next byte of a quoted value belongs: before `position` once a quote was unescaped.
  var valueEnd = 0
  var mode = Mode.byteOrderMark
  @usableFromInline var extents: [CSVRow.Extent] = []
  /// The number of columns of the header, once it was read.
  var columnCount: Int?
  /// Whether the values of a complete row can be read.
  @usableFromInline var hasRow = false
  var isFinished = false
  /// Whether the row that `next` has announced ends with its line or, at the end of the text, with
  /// a closing quote. An unquoted value that ends with the text may be the beginning of a longer
  /// one.
  package internal(set) var rowHasEnd = false
  var failure: CSVError?

  /// The number of complete rows read, including the header.
  package internal(set) var rowCount = 0

  package init(limits: Limits = Limits()) {
    self.limits = limits
    self.buffer = CSVBuffer()
  }

  /// Adds the next bytes of the text. Invalidates the last row.
  package mutating func append(_ bytes: UnsafeRawBufferPointer) {
    precondition(!self.isFinished, "append after finish")
    guard self.failure == nil, !bytes.isEmpty else { return }
    self.forgetRow()
    // The row is incomplete and has reached the maximum length.
    if self.position == self.buffer.count, self.position - self.rowStart == self.limits.rowBytes {
      self.failure = self.tooLong()
      return
    }
    let moved = self.buffer.append(bytes, keepingFrom: self.rowStart)
    self.rowStart -= moved
    self.position -= moved
    self.valueStart -= moved
    self.valueEnd -= moved
  }

  /// Call this when no more bytes follow.
  package mutating func finish() { self.isFinished = true }

  /// Advances to the next row. After an error, every later call throws it again.
  package mutating func next() throws(CSVError) -> Step {
    if let failure = self.failure { throw failure }
    self.forgetRow()
    do throws(CSVError) {
      return try self.scan()
    } catch {
      self.failure = error
      throw error
    }
  }

  /// Lends the row that `next` has just announced.
  @inlinable
  package func withRow<Result, Failure: Error>(
    _ body: (borrowing CSVRow) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    precondition(self.hasRow, "no row to read")
    let start = self.rowAddress
    return try self.extents.withUnsafeBufferPointer { extents throws(Failure) in
      try body(CSVRow(start: start, extents: extents))
    }
  }

  @usableFromInline var rowAddress: UnsafeRawPointer {
    UnsafeRawPointer(self.buffer.start) + self.rowStart
  }

  private mutating func forgetRow() {
    guard self.hasRow else { return }
    self.hasRow = false
    self.extents.removeAll(keepingCapacity: true)
    self.rowStart = self.position
  }
}
