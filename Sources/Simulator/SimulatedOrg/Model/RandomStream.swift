/// A reproducible stream of numbers (SplitMix64): equal seeds give equal events on every machine.
package struct RandomStream {
  private var state: UInt64

  package init(seed: UInt64) {
    self.state = seed
  }

  package mutating func next() -> UInt64 {
    self.state &+= 0x9e37_79b9_7f4a_7c15
    return Self.mix(self.state)
  }

  /// Uniform enough in `0 ..< bound` for test data. `bound` must be positive.
  package mutating func below(_ bound: Int) -> Int {
    Int(truncatingIfNeeded: UInt64(bound).multipliedFullWidth(by: self.next()).high)
  }

  /// True with probability `share` (0…1).
  package mutating func chance(_ share: Double) -> Bool {
    Double(self.next() >> 11) * 0x1p-53 < share
  }

  package static func mix(_ value: UInt64) -> UInt64 {
    var z = value
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }

  /// FNV-1a, so that streams can be seeded by name.
  package static func hash(_ text: String) -> UInt64 {
    text.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3 }
  }
}
