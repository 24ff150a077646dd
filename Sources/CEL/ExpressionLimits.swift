/// Limits on expressions and on the cost of an evaluation.
public struct ExpressionLimits: Sendable, Equatable {
  /// Bytes of the text.
  public var byteCount = 64 << 10
  /// Nesting, from 1. The specification asks for at least 32. Parsing and evaluating recurse once per
  /// level.
  public var depth = 100
  /// Operators, calls, literals and names.
  public var nodeCount = 20_000
  /// Elements of one list or map literal, arguments of one call.
  public var elementCount = 4096
  /// Passes through macros (`all`, `map`, …) in one evaluation.
  public var iterationCount = 100_000
  /// Bytes of texts and elements of lists and maps that one evaluation makes.
  public var madeByteCount = 16 << 20

  public init() {}
}

/// The limits of `matches`.
enum PatternLimits {
  static let byteCount = 4096
  static let memoryByteCount: Int64 = 8 << 20
}
