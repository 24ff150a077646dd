/// The ID of a record, in the form with 18 characters that events and tables have.
///
/// The last three characters say which of the first fifteen are capital letters, five characters each.
package struct RecordID: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// 18 characters.
  package let description: String

  /// Why a text is no ID.
  package struct Fault: Error, Sendable, Equatable {
    /// A clause that follows the text.
    package var reason: String
  }

  /// - Parameter text: 15 or 18 characters.
  /// - Throws: `Fault`.
  package init(_ text: String) throws(Fault) {
    let bytes = Array(text.utf8)
    guard bytes.count == Self.shortByteCount || bytes.count == Self.byteCount else {
      throw Fault(reason: "an ID has 15 or 18 characters, and this has \(text.count)")
    }
    guard bytes.allSatisfy(Self.isPart) else {
      throw Fault(reason: "an ID has letters and digits only")
    }
    let full = bytes[..<Self.shortByteCount] + Self.check(bytes[..<Self.shortByteCount])
    if bytes.count == Self.byteCount,
      String(decoding: full, as: UTF8.self) != text.uppercasingLast(3)
    {
      throw Fault(
        reason: "its last three characters do not fit the others; small and capital letters differ")
    }
    self.description = String(decoding: full, as: UTF8.self)
  }

  /// The first three characters, which the records of an object have in common.
  package var keyPrefix: String { String(self.description.prefix(3)) }

  static let byteCount = 18
  static let shortByteCount = 15

  static func isPart(_ byte: UInt8) -> Bool {
    byte.isDigit || byte.isCapital || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
  }

  private static func check(_ short: ArraySlice<UInt8>) -> [UInt8] {
    stride(from: short.startIndex, to: short.endIndex, by: 5).map { start in
      let capitals = (0..<5).reduce(0) { bits, place in
        short[start + place].isCapital ? bits | 1 << place : bits
      }
      return capitals < 26
        ? UInt8(ascii: "A") + UInt8(capitals) : UInt8(ascii: "0") + UInt8(capitals - 26)
    }
  }

  package static func < (left: Self, right: Self) -> Bool {
    left.description < right.description
  }
}

extension UInt8 {
  fileprivate var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
  fileprivate var isCapital: Bool { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) }
}

extension String {
  /// The check characters may be written in small letters.
  fileprivate func uppercasingLast(_ count: Int) -> String {
    String(self.dropLast(count)) + self.suffix(count).uppercased()
  }
}
