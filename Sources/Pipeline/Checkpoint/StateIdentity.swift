internal import DurableFiles
internal import Glibc

/// The identity of a state directory: 8 random bytes in a file.
///
/// A host name and a path do not: two containers of one image have the same. A copy of a state
/// directory is equal to its original, though: an image must not bring this file with it.
enum StateIdentity {
  private static let digitCount = 16

  /// The stored identity, or a new one that is durable on return. The caller holds the pipeline's
  /// lock, so nobody else makes it at the same moment.
  static func value(
    _ path: String, in directory: String, on fileSystem: any FileSystem
  ) throws(FileSystemError) -> String {
    if try fileSystem.size(of: path) != nil {
      if let known = try Self.read(path, on: fileSystem) { return known }
      // Cut off by a crash before anybody had used it, or not made by this program.
      try fileSystem.remove(path)
    }
    var generator = SystemRandomNumberGenerator()
    let value = (0..<Self.digitCount).map { _ in
      String(UInt8.random(in: 0..<16, using: &generator), radix: 16)
    }.joined()
    let file = try OpenFile(path, [.write, .create, .exclusive, .ownerOnly], on: fileSystem)
    try file.write(Array("\(value)\n".utf8))
    try file.synchronize()
    try fileSystem.synchronizeDirectory(directory)
    return value
  }

  /// Nil when the file holds something else.
  private static func read(
    _ path: String, on fileSystem: any FileSystem
  ) throws(FileSystemError) -> String? {
    let file = try OpenFile(path, [], on: fileSystem)
    let bytes = try file.content(byteCount: Self.digitCount + 2)
    let digits = bytes.prefix { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    guard digits.count == Self.digitCount, bytes.dropFirst(digits.count) == [UInt8(ascii: "\n")]
    else { return nil }
    return String(decoding: digits, as: UTF8.self)
  }
}
