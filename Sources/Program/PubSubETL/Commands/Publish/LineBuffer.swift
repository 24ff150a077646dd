import Glibc

/// Divides bytes that arrive in pieces into lines of limited length. Empty lines are counted and left
/// out.
struct LineBuffer {
  struct Line {
    /// Counts from 1.
    var number: Int
    /// Without the line end; nil for a line that is too long, of which nothing is kept.
    var text: [UInt8]?
  }

  private let maxLineBytes: Int
  private var bytes: [UInt8] = []
  /// Bytes before this have been returned.
  private var start = 0
  /// Bytes before this contain no line end.
  private var searched = 0
  /// The number of the last line that was returned or skipped.
  private(set) var number = 0
  private var isSkipping = false

  init(maxLineBytes: Int) { self.maxLineBytes = maxLineBytes }

  /// The number of bytes that wait for their line end or for a call of `next`.
  var byteCount: Int { self.bytes.count - self.start }

  mutating func append(_ more: [UInt8]) {
    if self.start > 0 {
      self.bytes.removeFirst(self.start)
      self.searched -= self.start
      self.start = 0
    }
    self.bytes += more
  }

  /// The next line; nil if its end has not arrived yet.
  ///
  /// - Parameter isEnd: no more bytes follow, so the last line needs no line end.
  mutating func next(isEnd: Bool) -> Line? {
    while true {
      guard let end = self.lineEnd() else {
        self.searched = self.bytes.count
        if isEnd { return self.last() }
        if self.byteCount > self.maxLineBytes {
          self.isSkipping = true
          self.bytes.removeAll()
          self.start = 0
          self.searched = 0
        }
        return nil
      }
      let text = self.bytes[self.start..<end]
      self.start = end + 1
      self.searched = self.start
      if let line = self.line(text) { return line }
    }
  }

  private mutating func last() -> Line? {
    guard self.byteCount > 0 || self.isSkipping else { return nil }
    let text = self.bytes[self.start...]
    self.start = self.bytes.count
    return self.line(text)
  }

  /// Nil for an empty line.
  private mutating func line(_ text: ArraySlice<UInt8>) -> Line? {
    self.number += 1
    if self.isSkipping || text.count > self.maxLineBytes {
      self.isSkipping = false
      return Line(number: self.number, text: nil)
    }
    let isEmpty = text.allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
    return isEmpty ? nil : Line(number: self.number, text: Array(text))
  }

  private func lineEnd() -> Int? {
    self.bytes.withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress, self.searched < bytes.count,
        let found = memchr(base + self.searched, 0x0A, bytes.count - self.searched)
      else { return nil }
      return UnsafeRawPointer(found) - base
    }
  }
}
