/// 18-character record IDs: prefix, instance, number, check characters.
package enum RecordID {
  private static let base62 = Array(
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
  private static let checkAlphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ012345".utf8)

  package static func bytes(prefix: String, number: UInt64) -> [UInt8] {
    var id = Array(prefix.utf8) + Array("Dp000".utf8)
    var digits: [UInt8] = []
    var rest = number
    for _ in 0..<7 {
      digits.append(Self.base62[Int(rest % 62)])
      rest /= 62
    }
    id += digits.reversed()
    return Self.lengthened(id)
  }

  /// 15 → 18 characters (ServiceLogins.md#org-id).
  static func lengthened(_ id: [UInt8]) -> [UInt8] {
    precondition(id.count == 15, "a short record ID has 15 characters")
    var result = id
    for group in 0..<3 {
      var bits = 0
      for position in 0..<5 where (0x41...0x5a).contains(id[group * 5 + position]) {
        bits |= 1 << position
      }
      result.append(Self.checkAlphabet[bits])
    }
    return result
  }

  /// The number that `bytes(prefix:number:)` was given; nil for other IDs.
  static func number(_ id: [UInt8]) -> UInt64? {
    guard id.count == 18, Self.lengthened(Array(id[..<15])) == id else { return nil }
    var number: UInt64 = 0
    for byte in id[8..<15] {
      guard let digit = Self.base62.firstIndex(of: byte) else { return nil }
      number = number * 62 + UInt64(digit)
    }
    return number
  }

  private static let hex = Array("0123456789abcdef".utf8)

  /// A version 4 UUID in text form, 36 bytes.
  package static func uuid(_ random: inout RandomStream) -> [UInt8] {
    let high = random.next() & 0xffff_ffff_ffff_0fff | 0x4000
    let low = random.next() & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000
    return [UInt8](unsafeUninitializedCapacity: 36) { output, count in
      for digit in 0..<32 {
        if digit == 8 || digit == 12 || digit == 16 || digit == 20 {
          output[count] = UInt8(ascii: "-")
          count += 1
        }
        let word = digit < 16 ? high : low
        output[count] = Self.hex[Int(word >> (60 - 4 * UInt64(digit % 16)) & 15)]
        count += 1
      }
    }
  }
}
