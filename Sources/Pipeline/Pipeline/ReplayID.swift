internal import Bytes

/// A place in the stream of one topic, as the service identifies it.
///
/// Opaque: stored and sent back exactly as received, never incremented or compared for order
/// (TheService.md#replay-ids).
package struct ReplayID: Hashable, Sendable {
  package var bytes: [UInt8]

  package init(_ bytes: [UInt8]) { self.bytes = bytes }

  package init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = [UInt8](bytes) }

  /// - Parameter hex: an even number of hexadecimal digits in either case, at least two; otherwise
  ///   the result is nil.
  package init?(hex: String) {
    guard let bytes = [UInt8](hex: hex.utf8), !bytes.isEmpty else { return nil }
    self.bytes = bytes
  }

  /// Lowercase hexadecimal digits.
  package var hex: String { self.bytes.hex }

  /// True if both look like today's IDs (8-byte big-endian number first) and this number is lower.
  /// Use it only as a veto, so that a keepalive never moves a position backwards.
  package func isCertainlyBefore(_ other: ReplayID) -> Bool {
    guard self.bytes.count == other.bytes.count, self.bytes.count >= 8 else { return false }
    return self.bytes[..<8].lexicographicallyPrecedes(other.bytes[..<8])
  }
}

extension ReplayID: CustomStringConvertible {
  package var description: String { self.hex }
}
