internal import Bytes

/// One entry of `changedFields`, `nulledFields` or `diffFields` (ChangeEvents.md#bitmaps):
/// `0x…` over the fields of the record, or `<parent>-0x…` over the fields of a compound field.
struct ChangedFieldBitmap {
  enum Fault: Error, Equatable {
    case malformed
    /// A bit is set that represents no field.
    case index(Int, fieldCount: Int)
    /// The parent is outside the schema or not a record.
    case parent(Int)
  }

  /// Index of the compound field; nil for the record itself.
  let parent: Int?
  /// Hexadecimal digits of one number, most significant first. The service writes whole bytes; an
  /// odd number of digits is unambiguous and also accepted.
  private let digits: UnsafeBufferPointer<UInt8>

  /// - Parameter text: must outlive the bitmap.
  init(_ text: UnsafeBufferPointer<UInt8>) throws(Fault) {
    var index = 0
    var parent = 0
    while index < text.count, let digit = Self.decimalDigits.firstOffset(of: text[index]) {
      parent = parent * 10 + digit
      index += 1
      // No schema has so many fields, and this prevents overflow.
      guard parent < 1 << 32 else { throw .parent(parent) }
    }
    if index > 0, index < text.count, text[index] == UInt8(ascii: "-") {
      self.parent = parent
      index += 1
    } else {
      self.parent = nil
      index = 0
    }
    guard text.count - index >= 3, text[index] == UInt8(ascii: "0"),
      text[index + 1] == UInt8(ascii: "x")
    else { throw .malformed }
    self.digits = UnsafeBufferPointer(rebasing: text[(index + 2)...])
    for digit in self.digits where digit.hexDigit == nil { throw .malformed }
  }

  /// Calls `body` for every set index, in ascending order.
  ///
  /// - Throws: `index` for an index that is not below `fieldCount`; `body` has been called for
  ///   earlier ones.
  @inline(__always)
  func forEachIndex(below fieldCount: Int, _ body: (Int) -> Void) throws(Fault) {
    var base = 0
    for digit in self.digits.reversed() {
      // Checked by `init`.
      var bits = digit.hexDigit ?? 0
      while bits != 0 {
        let index = base + bits.trailingZeroBitCount
        guard index < fieldCount else { throw .index(index, fieldCount: fieldCount) }
        body(index)
        bits &= bits &- 1
      }
      base += 4
    }
  }

  private static let decimalDigits = UInt8(ascii: "0")...UInt8(ascii: "9")
}

extension ChangedFieldBitmap {
  /// The text of an entry, as the service writes it: whole bytes, most significant first.
  ///
  /// - Parameters:
  ///   - indices: the indices of the fields; at least one.
  ///   - parent: index of the compound field; nil for fields of the record itself.
  static func text(of indices: Set<Int>, parent: Int?) -> String {
    var bytes = [UInt8](repeating: 0, count: (indices.max() ?? 0) / 8 + 1)
    for index in indices { bytes[bytes.count - 1 - index / 8] |= 1 << UInt8(index % 8) }
    let digits = bytes.map { byte in
      (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
    }
    return (parent.map { "\($0)-" } ?? "") + "0x" + digits.joined()
  }
}

extension ClosedRange<UInt8> {
  @inline(__always)
  fileprivate func firstOffset(of byte: UInt8) -> Int? {
    self.contains(byte) ? Int(byte - self.lowerBound) : nil
  }
}
