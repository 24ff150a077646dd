internal import Bytes
internal import Cryptography

/// A long-text value that arrived as a unified diff against the previous value
/// (ChangeEvents.md#long-texts).
///
/// The header carries the SHA-256 of the complete new value: only a result with that hash is
/// returned, so a wrong guess about line breaks can never give a wrong value.
package enum TextDiff {
  /// The new value, or nil when the diff is malformed, does not fit the previous value, or no way
  /// to break its lines gives the announced hash. Both texts are UTF-8.
  ///
  /// Time and memory are proportional to the two texts, whatever their content.
  package static func apply(
    _ diff: UnsafeBufferPointer<UInt8>, to previous: UnsafeBufferPointer<UInt8>
  ) -> [UInt8]? {
    guard var reader = Reader(diff) else { return nil }
    let lines = Self.lines(of: previous)
    guard let result = reader.newLines(old: lines, in: previous) else { return nil }
    // Added lines have no line break of their own in the diff. The most likely one comes first:
    // that of their neighbours.
    for style in [LineBreaks.kept, .crLf, .lf] {
      for tail in [Tail.asIs, .broken, .unbroken] {
        guard let text = Self.join(result, previous: previous, diff: diff, style, tail) else {
          continue
        }
        if SHA256.hash(of: text).bytes == reader.hash { return text }
      }
    }
    return nil
  }

  /// How the lines of the new value end.
  private enum LineBreaks { case kept, crLf, lf }

  /// Whether the new value ends in a line break, which a diff of lines does not show.
  private enum Tail { case asIs, broken, unbroken }

  private enum Break { case none, lf, crLf }

  private struct Line {
    var content: Range<Int>
    var end: Break
    var isAdded = false
  }

  /// The text between line breaks: at least one line, the last without a break.
  private static func lines(of text: UnsafeBufferPointer<UInt8>) -> [Line] {
    var lines: [Line] = []
    var start = 0
    for index in text.indices where text[index] == UInt8(ascii: "\n") {
      let hasReturn = index > start && text[index - 1] == UInt8(ascii: "\r")
      lines.append(
        Line(content: start..<(hasReturn ? index - 1 : index), end: hasReturn ? .crLf : .lf))
      start = index + 1
    }
    lines.append(Line(content: start..<text.count, end: .none))
    return lines
  }

  /// Nil if another pair of style and tail gives the same text.
  private static func join(
    _ lines: [Line], previous: UnsafeBufferPointer<UInt8>, diff: UnsafeBufferPointer<UInt8>,
    _ style: LineBreaks, _ tail: Tail
  ) -> [UInt8]? {
    var lines = lines[...]
    guard let last = lines.last else { return tail == .asIs && style == .kept ? [] : nil }
    switch tail {
    case .asIs: break
    case .broken: if last.content.isEmpty && lines.count > 1 { return nil }
    case .unbroken:
      guard last.content.isEmpty && lines.count > 1 else { return nil }
      lines.removeLast()
    }
    var text: [UInt8] = []
    text.reserveCapacity(lines.reduce(2) { $0 + $1.content.count + 2 })
    var around = lines.first { $0.end != .none }?.end ?? .lf
    for (index, line) in zip(lines.indices, lines) {
      text.append(contentsOf: (line.isAdded ? diff : previous)[line.content])
      if line.end != .none { around = line.end }
      guard index < lines.endIndex - 1 || tail == .broken else { break }
      let isCRLF =
        switch style {
        case .kept: around == .crLf
        case .crLf: true
        case .lf: false
        }
      if isCRLF { text.append(UInt8(ascii: "\r")) }
      text.append(UInt8(ascii: "\n"))
    }
    return text
  }

  private struct Reader {
    private(set) var hash: [UInt8]
    private let diff: UnsafeBufferPointer<UInt8>
    private var offset = 0

    /// Nil without the two header lines.
    init?(_ diff: UnsafeBufferPointer<UInt8>) {
      self.diff = diff
      self.hash = []
      guard let from = self.line(), diff[from].starts(with: "---".utf8) else { return nil }
      guard let to = self.line(), diff[to].starts(with: "+++ ".utf8) else { return nil }
      var digits = diff[to].dropFirst(4)
      while let last = digits.last, last <= UInt8(ascii: " ") { digits.removeLast() }
      guard digits.count == 64, let hash = [UInt8](hex: digits) else { return nil }
      self.hash = hash
    }

    /// The next line without its LF; nil at the end.
    private mutating func line() -> Range<Int>? {
      guard self.offset < self.diff.count else { return nil }
      let start = self.offset
      let end = self.diff[start...].firstIndex(of: UInt8(ascii: "\n")) ?? self.diff.count
      self.offset = min(end + 1, self.diff.count)
      return start..<end
    }

    /// The lines of the new value; nil when a hunk is malformed or does not fit the old lines.
    mutating func newLines(old: [Line], in previous: UnsafeBufferPointer<UInt8>) -> [Line]? {
      var result: [Line] = []
      result.reserveCapacity(old.count)
      var next = 0
      while let header = self.line() {
        if header.isEmpty || self.diff[header].first == UInt8(ascii: "\\") { continue }
        guard var hunk = Hunk(self.diff[header]) else { return nil }
        // The position of a hunk without old lines is the line that it follows.
        let start = hunk.oldCount == 0 ? hunk.oldStart : hunk.oldStart - 1
        guard start >= next, start <= old.count else { return nil }
        result.append(contentsOf: old[next..<start])
        next = start
        var addedCount = 0
        while hunk.oldCount > 0 || hunk.newCount > 0 {
          guard let line = self.line() else { return nil }
          guard let sign = self.diff[line].first else { return nil }
          let content = line.dropFirst()
          switch sign {
          case UInt8(ascii: "-"), UInt8(ascii: " "):
            guard hunk.oldCount > 0, next < old.count,
              self.matches(content, old[next], in: previous)
            else { return nil }
            hunk.oldCount -= 1
            if sign == UInt8(ascii: " ") {
              guard hunk.newCount > 0 else { return nil }
              hunk.newCount -= 1
              result.append(old[next])
            }
            next += 1
          case UInt8(ascii: "+"):
            guard hunk.newCount > 0 else { return nil }
            hunk.newCount -= 1
            // Next to the line that it replaces, or otherwise the line that it follows.
            let neighbour = max(0, min(start + addedCount, next - 1))
            result.append(self.added(content, beside: old[neighbour].end))
            addedCount += 1
          case UInt8(ascii: "\\"): break
          default: return nil
          }
        }
      }
      result.append(contentsOf: old[next...])
      return result
    }

    private func matches(
      _ content: Range<Int>, _ line: Line, in previous: UnsafeBufferPointer<UInt8>
    ) -> Bool {
      let text = self.diff[content]
      if text.elementsEqual(previous[line.content]) { return true }
      return text.last == UInt8(ascii: "\r")
        && text.dropLast().elementsEqual(previous[line.content])
    }

    /// A line with a visible CR keeps it; any other takes its neighbour's line break.
    private func added(_ content: Range<Int>, beside end: Break) -> Line {
      guard self.diff[content].last == UInt8(ascii: "\r") else {
        return Line(content: content, end: end, isAdded: true)
      }
      return Line(content: content.dropLast(), end: .crLf, isAdded: true)
    }
  }

  /// `@@ -a,b +c,d @@`; a count of one may be left out.
  private struct Hunk {
    var oldStart: Int
    var oldCount: Int
    var newCount: Int

    init?(_ header: Slice<UnsafeBufferPointer<UInt8>>) {
      var rest = header
      guard Self.skip("@@ -", &rest), let oldStart = Self.number(&rest),
        let oldCount = Self.count(&rest), Self.skip(" +", &rest), Self.number(&rest) != nil,
        let newCount = Self.count(&rest), Self.skip(" @@", &rest),
        oldStart > 0 || oldCount == 0
      else { return nil }
      self.oldStart = oldStart
      self.oldCount = oldCount
      self.newCount = newCount
    }

    private static func skip(
      _ text: StaticString, _ rest: inout Slice<UnsafeBufferPointer<UInt8>>
    ) -> Bool {
      let text = UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
      guard rest.starts(with: text) else { return false }
      rest = rest.dropFirst(text.count)
      return true
    }

    private static func count(_ rest: inout Slice<UnsafeBufferPointer<UInt8>>) -> Int? {
      guard rest.first == UInt8(ascii: ",") else { return 1 }
      rest = rest.dropFirst()
      return Self.number(&rest)
    }

    /// At most nine digits; a value has far fewer lines.
    private static func number(_ rest: inout Slice<UnsafeBufferPointer<UInt8>>) -> Int? {
      var value: Int?
      for _ in 0..<9 {
        guard let digit = rest.first, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit)
        else { break }
        value = (value ?? 0) * 10 + Int(digit - UInt8(ascii: "0"))
        rest = rest.dropFirst()
      }
      return value
    }
  }
}
