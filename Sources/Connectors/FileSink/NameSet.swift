/// A set of names by their hashes, which holds half a million in a few megabytes. A name outside
/// the set collides with a probability of 2^-64 times the count, and a stray file would then be
/// overlooked.
struct NameSet {
  private var hashes: Set<Int> = []

  mutating func insert(_ name: UnsafeBufferPointer<UInt8>) { self.hashes.insert(Self.hash(name)) }

  mutating func insert(_ name: String) {
    var name = name
    name.withUTF8 { self.insert($0) }
  }

  mutating func remove(_ name: String) {
    var name = name
    name.withUTF8 { _ = self.hashes.remove(Self.hash($0)) }
  }

  func contains(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
    self.hashes.contains(Self.hash(name))
  }

  func contains(_ name: String) -> Bool {
    var name = name
    return name.withUTF8 { self.contains($0) }
  }

  private static func hash(_ name: UnsafeBufferPointer<UInt8>) -> Int {
    var hasher = Hasher()
    hasher.combine(bytes: UnsafeRawBufferPointer(name))
    return hasher.finalize()
  }
}
