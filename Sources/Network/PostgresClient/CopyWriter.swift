/// Takes the rows of a binary `COPY … FROM STDIN` (PostgreSQL manual, COPY, "Binary Format") and
/// sends them in chunks. Lent by `PostgresConnection.copyIn`, which sends header and trailer.
@usableFromInline package struct CopyWriter: ~Copyable {
  @usableFromInline static let chunkByteCount = 64 * 1024

  private let connection: PostgresConnection
  @usableFromInline let chunk: UnsafeMutableRawBufferPointer
  @usableFromInline var used = 0
  private(set) var rowCount = 0

  init(_ connection: PostgresConnection) {
    self.connection = connection
    self.chunk = .allocate(byteCount: Self.chunkByteCount, alignment: 8)
  }

  deinit { self.chunk.deallocate() }

  /// Begins a row; as many fields have to follow.
  package mutating func row(fieldCount: Int) throws(PostgresError) {
    precondition(fieldCount >= 0 && fieldCount <= Int16.max, "a row of \(fieldCount) fields")
    try self.integer(Int16(fieldCount))
    self.rowCount += 1
  }

  // What is called for each field is inlinable: other modules would call it, and not inline it.

  /// - Parameter count: fields, 1600 at most.
  @inlinable
  package mutating func nulls(_ count: Int) throws(PostgresError) {
    // Each is the length word -1.
    let byteCount = count * 4
    try self.reserve(byteCount)
    UnsafeMutableRawBufferPointer(rebasing: self.chunk[self.used..<self.used + byteCount])
      .initializeMemory(as: UInt8.self, repeating: 0xFF)
    self.used += byteCount
  }

  /// A field in its type's binary format, without the length word.
  @inlinable
  package mutating func value(_ bytes: UnsafeBufferPointer<UInt8>) throws(PostgresError) {
    try self.integer(Int32(bytes.count))
    try self.raw(bytes)
  }

  /// Bytes of the format itself: fields with their length words.
  @inlinable
  package mutating func raw(_ bytes: UnsafeBufferPointer<UInt8>) throws(PostgresError) {
    guard bytes.count <= Self.chunkByteCount else { return try self.send(bytes) }
    try self.reserve(bytes.count)
    UnsafeMutableRawBufferPointer(rebasing: self.chunk[self.used...])
      .copyMemory(from: UnsafeRawBufferPointer(bytes))
    self.used += bytes.count
  }

  @inlinable
  mutating func integer(_ value: some FixedWidthInteger) throws(PostgresError) {
    let byteCount = value.bitWidth / 8
    try self.reserve(byteCount)
    self.chunk.storeBytes(of: value.bigEndian, toByteOffset: self.used, as: type(of: value))
    self.used += byteCount
  }

  /// Makes room for bytes in the chunk, at most `chunkByteCount`.
  @inlinable
  mutating func reserve(_ byteCount: Int) throws(PostgresError) {
    if byteCount > Self.chunkByteCount - self.used { try self.flush() }
  }

  /// Sends bytes past the chunk.
  @usableFromInline
  mutating func send(_ bytes: UnsafeBufferPointer<UInt8>) throws(PostgresError) {
    try self.flush()
    var rest = UnsafeRawBufferPointer(bytes)
    while !rest.isEmpty {
      try self.connection.sendCopyData(
        UnsafeRawBufferPointer(rebasing: rest.prefix(Self.chunkByteCount)))
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(Self.chunkByteCount))
    }
  }

  mutating func header() throws(PostgresError) {
    for byte in "PGCOPY\n".utf8 { try self.integer(byte) }
    try self.integer(0xFF as UInt8)
    try self.integer(0x0D as UInt8)
    try self.integer(0x0A as UInt8)
    try self.integer(0 as UInt8)
    // Flags, and the length of the header's extension.
    try self.integer(0 as Int32)
    try self.integer(0 as Int32)
  }

  @usableFromInline
  mutating func flush() throws(PostgresError) {
    guard self.used > 0 else { return }
    let used = self.used
    self.used = 0
    try self.connection.sendCopyData(UnsafeRawBufferPointer(rebasing: self.chunk[..<used]))
  }
}

extension PostgresConnection {
  /// A field count that ends the data.
  private static let copyTrailer: [UInt8] = [0xFF, 0xFF]

  /// Runs a `COPY … FROM STDIN (FORMAT binary)`; statements may precede it, separated by
  /// semicolons. If `body` throws, the COPY ends as failed, and the error is rethrown.
  ///
  /// - Returns: the number of rows copied.
  @discardableResult
  package func copyIn(
    _ sql: String, _ body: (inout CopyWriter) throws -> Void
  ) throws -> Int {
    try self.sendCopyIn(sql, body)
    return try self.finishCopy()
  }

  /// Begins a COPY after other statements, and does not wait for the server: see `hasRoomForCopy`.
  package func requestCopyIn(after first: String, _ sql: String) throws(PostgresError) {
    try self.requestCopy(after: first, sql, trailer: Self.copyTrailer)
  }

  /// Like `sendCopyIn` for a COPY that takes more rows, but does not wait until the server has room
  /// for them.
  package func queueCopyIn(
    _ sql: String, _ body: (inout CopyWriter) throws -> Void
  ) throws {
    precondition(self.isTakingCopy(sql), "a COPY that has yet to begin")
    try self.withoutWaiting { try self.sendCopyIn(sql, body) }
  }

  /// Like `copyIn`, but the COPY stays open for more rows. The next call has to be this one or
  /// `finishCopy`. A new COPY would make the server allocate its buffers of a thousand rows again.
  package func sendCopyIn(
    _ sql: String, _ body: (inout CopyWriter) throws -> Void
  ) throws {
    let isNew = !self.isTakingCopy(sql)
    if isNew {
      try self.finishCopy()
      try self.beginCopy(sql, trailer: Self.copyTrailer)
    }
    do {
      var writer = CopyWriter(self)
      if isNew || self.copyUnderWay?.lacksHeader == true { try writer.header() }
      self.copyUnderWay?.lacksHeader = false
      try body(&writer)
      try writer.flush()
      self.noteSentRows(writer.rowCount)
    } catch {
      do throws(PostgresError) {
        try self.giveUpCopy()
      } catch let lost {
        throw error is PostgresError ? error : lost
      }
      throw error
    }
  }
}
