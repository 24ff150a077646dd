/// A mistake in an expression, or the reason why it has no value for a row.
///
/// Messages name columns, types and places in the expression, and contain no values of rows.
package struct CELError: Error, Sendable, Equatable {
  package struct Code: Hashable, Sendable {
    private enum Value { case syntax, type, unsupported, absent, nullOrdering, evaluation }
    private var value: Value
    private init(_ value: Value) { self.value = value }
    /// The text is not an expression, or is longer or deeper than the limits allow.
    package static var syntax: Self { Self(.syntax) }
    /// An unknown name, or an operator or function that does not take operands of these types.
    package static var type: Self { Self(.type) }
    /// Part of CEL, but not of the profile that is implemented here.
    package static var unsupported: Self { Self(.unsupported) }
    /// A column that the event lacks decides the result.
    package static var absent: Self { Self(.absent) }
    /// `<`, `<=`, `>` or `>=` with null on a side. A filter treats it as false.
    package static var nullOrdering: Self { Self(.nullOrdering) }
    /// Any other failure of an evaluation: division by zero, overflow, no such key.
    package static var evaluation: Self { Self(.evaluation) }
  }

  package var code: Code
  /// What is wrong and, where that helps, the choices; without the place.
  package var message: String
  package var position: SourcePosition

  init(_ code: Code, _ message: String, at position: SourcePosition) {
    self.code = code
    self.message = message
    self.position = position
  }

  /// The message with line and column, the line of the expression, and a caret under the place.
  ///
  /// - Parameter source: the text of the expression.
  package func diagram(in source: String) -> String {
    let lines = source.split(separator: "\n", omittingEmptySubsequences: false)
    guard self.position.line <= lines.count else { return self.description }
    // Part of the line, so that the caret is visible in a terminal.
    let scalars = Array(lines[self.position.line - 1].unicodeScalars)
    let first = max(0, self.position.column - 60)
    let text = scalars[min(first, scalars.count)...].prefix(100)
    let shown = String(String.UnicodeScalarView(text.map { $0.value < 0x20 ? " " : $0 }))
    let indent = String(repeating: " ", count: self.position.column - 1 - first)
    return "\(self.description)\n  \(shown)\n  \(indent)^"
  }
}

extension CELError: CustomStringConvertible {
  package var description: String {
    "line \(self.position.line), column \(self.position.column): \(self.message)"
  }
}

/// A place in the text of an expression: line and column from 1; columns count Unicode scalars.
package struct SourcePosition: Hashable, Sendable {
  package var line: Int
  package var column: Int

  /// - Parameter offset: of a byte of the text, or the text's length.
  init(offset: Int, in text: [UInt8]) {
    self.line = 1
    self.column = 1
    for byte in text.prefix(offset) {
      if byte == UInt8(ascii: "\n") {
        self.line += 1
        self.column = 1
      } else if byte & 0xC0 != 0x80 {
        self.column += 1
      }
    }
  }
}
