internal import CRE2

/// A compiled regular expression of RE2, which takes time linear in the text.
final class Pattern {
  private let pattern: OpaquePointer  // cre2_pattern *

  private init(_ pattern: OpaquePointer) { self.pattern = pattern }

  deinit { cre2_free(self.pattern) }

  enum Compiled {
    case pattern(Pattern)
    /// The mistake in the pattern's text.
    case mistake(String)
  }

  static func compile(_ text: BorrowedBytes) -> Compiled {
    guard text.count <= PatternLimits.byteCount else {
      return .mistake("it has \(text.count) bytes; the limit is \(PatternLimits.byteCount)")
    }
    var message = [CChar](repeating: 0, count: 256)
    let pattern = text.withChars { start, count in
      cre2_compile(start, count, PatternLimits.memoryByteCount, &message, message.count)
    }
    guard let pattern else {
      return .mistake(
        String(decoding: message.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self))
    }
    return .pattern(Pattern(pattern))
  }

  /// True if any part of the text matches.
  func matches(_ text: BorrowedBytes) -> Bool {
    text.withChars { cre2_matches(self.pattern, $0, $1) } == 1
  }
}

extension BorrowedBytes {
  fileprivate func withChars<R>(_ body: (UnsafePointer<CChar>?, Int) -> R) -> R {
    guard let start = self.start else { return body(nil, 0) }
    return start.withMemoryRebound(to: CChar.self, capacity: self.count) { body($0, self.count) }
  }
}
