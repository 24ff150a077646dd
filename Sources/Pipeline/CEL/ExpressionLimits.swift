/// Limits on expressions and on the cost of an evaluation.
package struct ExpressionLimits: Sendable, Equatable {
  /// Bytes of the text.
  package var byteCount = 64 << 10
  /// Nesting, from 1. The specification asks for at least 32. Parsing and evaluating recurse once per
  /// level.
  package var depth = 100
  /// Operators, calls, literals and names.
  package var nodeCount = 20_000
  /// Elements of one list or map literal, arguments of one call.
  package var elementCount = 4096
  /// Passes through macros (`all`, `map`, …) in one evaluation. A pass through a long predicate, a long
  /// text and a long pattern count as several: as one for each 64 parts, each kilobyte and each
  /// eight instructions of the pattern.
  package var iterationCount = 100_000
  /// Bytes of texts and elements of lists and maps that one evaluation makes.
  package var madeByteCount = 16 << 20

  package init() {}
}

/// The limits of `matches`.
enum PatternLimits {
  static let byteCount = 4096
  /// The memory for a pattern and the automata made from it.
  static let memoryByteCount: Int64 = 2 << 20
  /// Instructions of a pattern. Without a limit, 4 KiB may make hundreds of thousands, each of which may be
  /// a step for each byte of a text.
  static let instructionCount = 10_000
  /// Patterns of one expression, and their instructions.
  static let countPerExpression = 256
  static let instructionCountPerExpression = 100_000
  /// Passes that a pattern of a row costs which turns out to be none.
  static let mistakeCost = 4096
}
