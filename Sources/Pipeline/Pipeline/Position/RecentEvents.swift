internal import Bytes

/// The last events of a topic, which a resumed stream may send again, each as a hash of 8 bytes.
///
/// A collision would drop an event that was never exported, so this is what has to coincide for one.
/// Only events between a resume and the first new one are looked up, and all but the first of these
/// really are repeated. So a resume risks one event: its hash has to be one of 128, a chance of
/// 2^-57. A thousand topics that each resume once a minute for a century would lose an event with a
/// chance of less than 10^-6. The chance is the same for similar IDs, such as replay IDs that count
/// up or one event ID under two replay IDs, because SipHash spreads every bit over its result, and
/// the lengths are hashed as well, so that no byte can move from one ID to the other.
///
/// The key is the same for all, so whoever may choose event IDs can look for two of their own that
/// collide, and have their own event dropped. The hashes of others' events do not help them: a replay
/// ID is given by the service, and an event ID that was not chosen is a random UUID.
package struct RecentEvents: Sendable {
  package static let capacity = 128

  /// A ring, once it is full.
  private var hashes: [UInt64] = []
  /// The hash that is overwritten next, once the ring is full.
  private var next = 0

  package init() {}

  package mutating func append(
    replayID: UnsafeBufferPointer<UInt8>, eventID: UnsafeBufferPointer<UInt8>
  ) {
    self.append(Self.hash(replayID, eventID))
  }

  package func contains(
    replayID: UnsafeBufferPointer<UInt8>, eventID: UnsafeBufferPointer<UInt8>
  ) -> Bool {
    self.hashes.contains(Self.hash(replayID, eventID))
  }

  private mutating func append(_ hash: UInt64) {
    if self.hashes.count < Self.capacity {
      self.hashes.append(hash)
      return
    }
    self.hashes[self.next] = hash
    self.next = (self.next + 1) % Self.capacity
  }

  private static func hash(
    _ replayID: UnsafeBufferPointer<UInt8>, _ eventID: UnsafeBufferPointer<UInt8>
  ) -> UInt64 {
    var hash = SipHash()
    hash.add(replayID)
    hash.add(eventID)
    return hash.finish()
  }
}

extension RecentEvents: Equatable {
  /// Whether both hold the same events in the same order.
  package static func == (left: Self, right: Self) -> Bool {
    if left.next == right.next { return left.hashes == right.hashes }
    return left.hashes.count == right.hashes.count && left.ordered.elementsEqual(right.ordered)
  }

  /// Oldest first.
  private var ordered: [UInt64] {
    Array(self.hashes[self.next...] + self.hashes[..<self.next])
  }
}

extension RecentEvents {
  /// The stored form: the hashes, oldest first, each with its lowest byte first, in base64.
  var text: String {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(self.hashes.count * 8)
    for hash in self.ordered { withUnsafeBytes(of: hash.littleEndian) { bytes += $0 } }
    return bytes.base64
  }

  /// - Parameter text: as in `text`; anything else gives nil.
  init?(text: String) {
    guard let bytes = [UInt8](base64: text), bytes.count.isMultiple(of: 8) else { return nil }
    bytes.withUnsafeBytes { bytes in
      for offset in stride(from: 0, to: bytes.count, by: 8) {
        self.append(
          UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
      }
    }
  }
}
