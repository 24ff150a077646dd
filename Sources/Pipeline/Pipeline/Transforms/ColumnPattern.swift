/// A name in which `*` matches any characters and `?` matches one. Column names contain neither.
///
/// A pattern matches metadata columns only if it begins with `_`, so that `*` means every field.
struct ColumnPattern {
  let text: String
  private let bytes: [UInt8]
  private let meansMetadata: Bool

  private static let any = UInt8(ascii: "*")
  private static let one = UInt8(ascii: "?")

  /// - Returns: nil for a plain name.
  init?(_ text: String) {
    self.bytes = Array(text.utf8)
    guard self.bytes.contains(where: { $0 == Self.any || $0 == Self.one }) else { return nil }
    self.text = text
    self.meansMetadata = text.hasPrefix("_")
  }

  func fits(_ column: Column) -> Bool {
    column.isMetadata && !self.meansMetadata ? false : self.fits(Array(column.name.utf8))
  }

  /// Takes time proportional to the product of the lengths: after a mismatch, only the last `*`
  /// takes one more character.
  private func fits(_ name: [UInt8]) -> Bool {
    var place = 0
    var next = 0
    var star: (next: Int, place: Int)?
    while place < name.count {
      if next < self.bytes.count, self.bytes[next] == Self.any {
        star = (next + 1, place)
        next += 1
      } else if next < self.bytes.count,
        self.bytes[next] == Self.one || self.bytes[next] == name[place]
      {
        next += 1
        place += 1
      } else if let last = star {
        star = (last.next, last.place + 1)
        (next, place) = (last.next, last.place + 1)
      } else {
        return false
      }
    }
    return self.bytes[next...].allSatisfy { $0 == Self.any }
  }
}
