extension String {
  /// The beginning of the text, of so many bytes of UTF-8 at most and without half a scalar. A limit of
  /// characters would be none: a character has any number of combining marks.
  package func bounded(byteCount: Int) -> String {
    guard self.utf8.count > byteCount else { return self }
    var end = self.utf8.index(self.startIndex, offsetBy: byteCount)
    while self.utf8[end] & 0xC0 == 0x80 { end = self.utf8.index(before: end) }
    return String(self[..<end])
  }
}
