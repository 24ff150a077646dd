/// A mistake in a JSON text, with its place.
public struct JSONError: Error, Sendable, Equatable {
  public struct Code: Hashable, Sendable {
    private enum Value { case truncated, malformed, duplicateName, invalidText, limitExceeded }
    private var value: Value
    private init(_ value: Value) { self.value = value }
    /// The text ended inside a value.
    public static var truncated: Self { Self(.truncated) }
    /// A character that the grammar of RFC 8259 does not allow at its place.
    public static var malformed: Self { Self(.malformed) }
    /// An object has one name twice.
    public static var duplicateName: Self { Self(.duplicateName) }
    /// Not UTF-8, or an escape that names no character.
    public static var invalidText: Self { Self(.invalidText) }
    /// Deeper or longer than the limits allow.
    public static var limitExceeded: Self { Self(.limitExceeded) }
  }

  public var code: Code
  /// What is wrong, without the place and without values of the text.
  public var message: String
  public var position: JSONValue.Position

  public init(_ code: Code, _ message: String, at position: JSONValue.Position) {
    self.code = code
    self.message = message
    self.position = position
  }
}

extension JSONError: CustomStringConvertible {
  public var description: String {
    "line \(self.position.line), column \(self.position.column): \(self.message)"
  }
}
