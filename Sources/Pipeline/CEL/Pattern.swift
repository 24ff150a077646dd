internal import CRE2

/// A compiled regular expression of RE2, which takes time linear in the text.
final class Pattern {
  private let pattern: OpaquePointer  // cre2_pattern *
  let instructionCount: Int

  private init(_ pattern: OpaquePointer) {
    self.pattern = pattern
    self.instructionCount = Int(cre2_size(pattern))
  }

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
    let compiled = Pattern(pattern)
    guard compiled.instructionCount <= PatternLimits.instructionCount else {
      return .mistake(
        "it makes an automaton of \(compiled.instructionCount) instructions; the limit is "
          + "\(PatternLimits.instructionCount), so use smaller repetitions")
    }
    return .pattern(compiled)
  }

  /// The passes that a search counts as: for most patterns the text is read once, but some take a step for
  /// each instruction and byte.
  func cost(ofSearching text: BorrowedBytes) -> Int {
    (1 + text.count >> 10) * (1 + self.instructionCount >> 3)
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
