extension String {
  /// The beginning of the text, at most `byteCount` bytes of UTF-8 and without a partial scalar. A
  /// limit in characters would be useless, because a character can have any number of combining
  /// marks.
  package func bounded(byteCount: Int) -> String {
    guard self.utf8.count > byteCount else { return self }
    var end = self.utf8.index(self.startIndex, offsetBy: byteCount)
    while self.utf8[end] & 0xC0 == 0x80 { end = self.utf8.index(before: end) }
    return String(self[..<end])
  }
}
