extension Collection<UInt8> {
  /// Lowercase hexadecimal digits, two for each byte.
  @inlinable package var hex: String {
    let digits: StaticString = "0123456789abcdef"
    return String(unsafeUninitializedCapacity: self.count * 2) { text in
      for (index, byte) in self.enumerated() {
        text[index * 2] = digits.utf8Start[Int(byte >> 4)]
        text[index * 2 + 1] = digits.utf8Start[Int(byte & 15)]
      }
      return self.count * 2
    }
  }
}

extension [UInt8] {
  /// - Parameter digits: an even number of hexadecimal digits in either case; otherwise the result is
  ///   nil.
  @inlinable package init?(hex digits: some Collection<UInt8>) {
    guard digits.count.isMultiple(of: 2) else { return nil }
    self = []
    self.reserveCapacity(digits.count / 2)
    var high: UInt8?
    for digit in digits {
      guard let value = digit.hexDigit else { return nil }
      if let first = high.take() { self.append(first << 4 | value) } else { high = value }
    }
  }
}
