internal import Bytes

extension AvroCursor {
  @usableFromInline
  func offset(of bytes: UnsafeBufferPointer<UInt8>) -> Int {
    bytes.baseAddress.map { $0 - self.start } ?? 0
  }

  /// Takes items from the payload's allowance before they are read.
  @usableFromInline
  func spend(
    _ count: Int, of scratch: DecodeScratch, at place: UnsafePointer<UInt8>
  ) throws(AvroError) {
    guard count <= scratch.itemBudget else {
      throw self.error(
        .limitExceeded,
        "\(count) more items; \(scratch.itemBudget) are left of what one payload may have",
        at: place)
    }
    scratch.itemBudget -= count
  }

  /// Takes the text of a field from the payload's allowance.
  func spendText(
    of scratch: DecodeScratch, at place: UnsafePointer<UInt8>
  ) throws(AvroError) {
    try self.checkText(of: scratch, at: place)
    scratch.textBudget -= scratch.text.count
  }

  /// Throws if a text has become too long, before all of it is written.
  func checkText(
    of scratch: DecodeScratch, at place: UnsafePointer<UInt8>
  ) throws(AvroError) {
    guard scratch.text.count <= scratch.textBudget else {
      throw self.error(
        .limitExceeded,
        "more text than one payload may become: \(scratch.textBudget) bytes are left of it",
        at: place)
    }
  }

  /// A decimal without redundant leading bytes. One beyond its precision is refused by its length,
  /// because the time to write its text grows with the square of the length.
  @usableFromInline
  func decimal(
    _ bytes: UnsafeBufferPointer<UInt8>, maxBytes: Int
  ) throws(AvroError) -> UnsafeBufferPointer<UInt8> {
    var bytes = bytes
    while bytes.count > 1 {
      let isNegative = bytes[1] >= 0x80
      guard bytes[0] == (isNegative ? 0xFF : 0) else { break }
      bytes = UnsafeBufferPointer(rebasing: bytes[1...])
    }
    guard bytes.count <= maxBytes else {
      throw AvroError(
        .malformed, "a decimal of \(bytes.count) bytes, beyond its precision",
        byteOffset: self.offset(of: bytes))
    }
    guard bytes.count <= LogicalType.maxDecimalByteCount || maxBytes == .max else {
      throw AvroError(
        .limitExceeded,
        "a decimal of \(bytes.count) bytes; the limit is \(LogicalType.maxDecimalByteCount), "
          + "\(LogicalType.maxDecimalDigits) digits", byteOffset: self.offset(of: bytes))
    }
    return bytes
  }

  /// Writes the text of a big-decimal with all digits of its scale: `-12.50`; `1200` for a negative
  /// scale.
  ///
  /// The specification names the type but not its encoding: bytes of the unscaled number, then the
  /// scale as an int (Avro for Java, `Conversions.BigDecimalConversion`; Avro for Rust agrees).
  func writeBigDecimal(
    _ bytes: UnsafeBufferPointer<UInt8>, to text: inout ByteBuffer
  ) throws(AvroError) {
    let digits = LogicalType.maxDecimalDigits
    let start = self.offset(of: bytes)
    let number: UnsafeBufferPointer<UInt8>
    let scale: Int
    do {
      // Empty bytes hold no number, so the first read fails before an address is needed.
      guard let base = bytes.baseAddress else { throw self.noBigDecimal(at: start) }
      let inner = AvroCursor(of: self, within: bytes, from: base)
      var next = base
      number = try inner.decimal(try inner.bytes(&next), maxBytes: .max)
      scale = Int(try inner.int(&next))
      guard next == inner.end else { throw self.noBigDecimal(at: start) }
    } catch {
      throw self.noBigDecimal(at: start)
    }
    guard number.count <= maxDecimalBytes(digits), scale.magnitude <= digits else {
      throw AvroError(
        .limitExceeded, "a big-decimal of more than \(digits) digits", byteOffset: start)
    }
    text.appendDecimal(unscaled: number, scale: max(scale, 0))
    let isZero = number.count <= 1 && (number.first ?? 0) == 0
    if scale < 0, !isZero {
      for _ in 0..<(-scale) { text.append(UInt8(ascii: "0")) }
    }
  }

  private func noBigDecimal(at offset: Int) -> AvroError {
    AvroError(.malformed, "not a valid big-decimal", byteOffset: offset)
  }

  /// Reads part of a payload; offsets still count from the payload's start.
  private init(
    of payload: AvroCursor, within bytes: UnsafeBufferPointer<UInt8>,
    from base: UnsafePointer<UInt8>
  ) {
    self.start = payload.start
    self.end = base + bytes.count
  }

  /// A string that has to be a UUID (RFC 9562 section 4): 36 characters, `8-4-4-4-12` hex digits.
  @usableFromInline
  func uuid(
    _ next: inout UnsafePointer<UInt8>
  ) throws(AvroError) -> UnsafeBufferPointer<UInt8> {
    let bytes = try self.bytes(&next)
    let isValid =
      bytes.count == 36
      && bytes.enumerated().allSatisfy { index, byte in
        [8, 13, 18, 23].contains(index) ? byte == UInt8(ascii: "-") : byte.hexDigit != nil
      }
    guard isValid else {
      throw self.error(.malformed, "not a valid UUID", at: next - bytes.count)
    }
    return bytes
  }
}

extension ByteBuffer {
  /// Appends the 36 characters, in lowercase, of a UUID that is encoded as 16 bytes.
  mutating func appendUUID(_ bytes: UnsafePointer<UInt8>) {
    let digits: StaticString = "0123456789abcdef"
    for index in 0..<16 {
      if index == 4 || index == 6 || index == 8 || index == 10 { self.append(UInt8(ascii: "-")) }
      self.append(digits.utf8Start[Int(bytes[index] >> 4)])
      self.append(digits.utf8Start[Int(bytes[index] & 15)])
    }
  }
}
