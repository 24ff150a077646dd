internal import CShortestDecimal

extension ByteBuffer {
  /// The number whose decimal text the buffer holds, fixed or scientific, to the nearest double; nil for
  /// anything else, and for what is beyond all doubles.
  package var double: Double? {
    let text = UnsafeRawBufferPointer(self.bytes)
    guard let start = text.bindMemory(to: CChar.self).baseAddress else { return nil }
    var value = 0.0
    guard parse_decimal_double(start, text.count, &value) != 0, value.isFinite else { return nil }
    return value
  }
}
