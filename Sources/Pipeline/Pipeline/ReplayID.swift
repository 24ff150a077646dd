/// A place in the stream of one topic, as the service identifies it.
///
/// Opaque: stored and sent back exactly as received, never incremented or compared for order
/// (TheService.md#replay-ids).
public struct ReplayID: Hashable, Sendable {
  public var bytes: [UInt8]

  public init(_ bytes: [UInt8]) { self.bytes = bytes }

  public init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = [UInt8](bytes) }

  /// - Parameter hex: an even number of hexadecimal digits in either case, at least two; otherwise
  ///   the result is nil.
  public init?(hex: String) {
    var bytes: [UInt8] = []
    var high: UInt8?
    for character in hex.utf8 {
      let digit: UInt8
      switch character {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = character - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = character - UInt8(ascii: "a") + 10
      case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = character - UInt8(ascii: "A") + 10
      default: return nil
      }
      if let first = high {
        bytes.append(first << 4 | digit)
        high = nil
      } else {
        high = digit
      }
    }
    guard high == nil, !bytes.isEmpty else { return nil }
    self.bytes = bytes
  }

  /// Lowercase hexadecimal digits.
  public var hex: String {
    func digit(_ value: UInt8) -> UInt8 {
      value + (value < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10)
    }
    return String(unsafeUninitializedCapacity: 2 * self.bytes.count) { text in
      for (index, byte) in self.bytes.enumerated() {
        text[2 * index] = digit(byte >> 4)
        text[2 * index + 1] = digit(byte & 15)
      }
      return 2 * self.bytes.count
    }
  }

  /// True if both look like today's IDs (8-byte big-endian number first) and this number is lower.
  /// Use it only as a veto, so that a keepalive never moves a position backwards.
  public func isCertainlyBefore(_ other: ReplayID) -> Bool {
    guard self.bytes.count == other.bytes.count, self.bytes.count >= 8 else { return false }
    return self.bytes[..<8].lexicographicallyPrecedes(other.bytes[..<8])
  }
}

extension ReplayID: CustomStringConvertible {
  public var description: String { self.hex }
}
