internal import Bytes
internal import Glibc

/// Offsets of time zones by name, each read once.
struct TimeZoneCache {
  private var zones: [(name: [UInt8], zone: TimeZoneData?)] = []
  /// Names come from expressions or rows: the cache does not grow with the rows.
  private static let capacity = 64
  private static let directory = "/usr/share/zoneinfo/"

  /// Seconds east of UTC; nil if the zone is unknown.
  ///
  /// - Parameters:
  ///   - name: `UTC`, an offset such as `+02:00`, `-09:30` or `02:00`, or a name of the IANA database.
  ///   - seconds: since 1970-01-01T00:00:00Z.
  mutating func offset(ofZone name: BorrowedBytes, at seconds: Int64) -> Int64? {
    if name.bytes.elementsEqual("UTC".utf8) { return 0 }
    if let offset = Self.fixedOffset(name.bytes) { return offset }
    if let known = self.zones.first(where: { name.bytes.elementsEqual($0.name) }) {
      return known.zone?.offset(at: seconds)
    }
    let zone = Self.isName(name.bytes) ? Self.read(name.text) : nil
    if self.zones.count == Self.capacity { self.zones.removeFirst() }
    self.zones.append((Array(name.bytes), zone))
    return zone?.offset(at: seconds)
  }

  private static func fixedOffset(_ text: UnsafeBufferPointer<UInt8>) -> Int64? {
    guard let first = text.first else { return nil }
    let hasSign = first == UInt8(ascii: "+") || first == UInt8(ascii: "-")
    let start = hasSign ? 1 : 0
    guard text.count == start + 5, text[start + 2] == UInt8(ascii: ":"),
      let hours = Self.number(text[start], text[start + 1]), hours < 24,
      let minutes = Self.number(text[start + 3], text[start + 4]), minutes < 60
    else { return nil }
    return (hours * 3600 + minutes * 60) * (first == UInt8(ascii: "-") ? -1 : 1)
  }

  private static func number(_ tens: UInt8, _ ones: UInt8) -> Int64? {
    guard tens.isDigit, ones.isDigit else { return nil }
    return Int64(tens - UInt8(ascii: "0")) * 10 + Int64(ones - UInt8(ascii: "0"))
  }

  /// A name from a row must not lead out of the directory.
  private static func isName(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
    let other = Set("+-/".utf8)
    return text.count <= 64 && text.first?.isNameStart == true
      && text.allSatisfy { $0.isNamePart || other.contains($0) }
  }

  private static func read(_ name: String) -> TimeZoneData? {
    let file = open(Self.directory + name, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 64 << 10)
    var count = 0
    while count < bytes.count {
      let read = bytes.withUnsafeMutableBytes { buffer in
        buffer.baseAddress.map { Glibc.read(file, $0 + count, buffer.count - count) } ?? 0
      }
      if read < 0, errno == EINTR { continue }
      guard read > 0 else { break }
      count += read
    }
    return TimeZoneData(Array(bytes.prefix(count)))
  }
}
