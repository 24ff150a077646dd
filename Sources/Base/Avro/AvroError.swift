/// What is wrong with a schema or payload, and where.
///
/// All content is behind one reference, because hot loops throw this error, and a one-word error is
/// returned in a register instead of memory.
public struct AvroError: Error, Sendable {
  /// What went wrong.
  public struct Code: Hashable, Sendable {
    private enum Value { case schema, truncated, malformed, limitExceeded, trailing }
    private var value: Value
    private init(_ value: Value) { self.value = value }
    /// The schema breaks a rule of the specification; `path` is a JSON pointer into its text.
    public static var schema: Self { Self(.schema) }
    /// The payload ended inside a value. Not retried, because the payload will not change.
    public static var truncated: Self { Self(.truncated) }
    /// The bytes are not the encoding of any value of the schema.
    public static var malformed: Self { Self(.malformed) }
    /// Items are nested more deeply, longer or more numerous than the limits allow.
    public static var limitExceeded: Self { Self(.limitExceeded) }
    /// Bytes are left after the value, so the payload was written with a different schema.
    public static var trailing: Self { Self(.trailing) }
  }

  private final class Content: Sendable {
    let code: Code
    let message: String
    let path: String
    let byteOffset: Int?
    let position: String?

    init(_ code: Code, _ message: String, path: String, byteOffset: Int?, position: String?) {
      self.code = code
      self.message = message
      self.path = path
      self.byteOffset = byteOffset
      self.position = position
    }
  }

  private let content: Content

  /// What went wrong.
  public var code: Code { self.content.code }
  /// What is wrong, without the place and without values of the payload.
  public var message: String { self.content.message }
  /// Where the error is. In a payload: field names joined by dots, `Items[3].Name`; empty for the root.
  /// In a schema: a JSON pointer, `/fields/3/type`.
  public var path: String { self.content.path }
  /// The offset in the payload, from 0; nil for a schema.
  public var byteOffset: Int? { self.content.byteOffset }

  init(
    _ code: Code, _ message: String, path: String = "", byteOffset: Int? = nil,
    position: String? = nil
  ) {
    self.content = Content(
      code, message, path: path, byteOffset: byteOffset, position: position)
  }

  /// The same error, seen from the next outer level.
  @usableFromInline
  func inside(_ component: String) -> AvroError {
    let separator = self.path.isEmpty || self.path.hasPrefix("[") ? "" : "."
    return AvroError(
      self.code, self.message, path: component + separator + self.path,
      byteOffset: self.byteOffset, position: self.content.position)
  }
}

extension AvroError: CustomStringConvertible {
  /// `BillingAddress.City at byte 212: string of 90 bytes, 14 left`
  public var description: String {
    if let offset = self.byteOffset {
      return "\(self.path.isEmpty ? "" : self.path + " ")at byte \(offset): \(self.message)"
    }
    let position = self.content.position.map { " (\($0))" } ?? ""
    return "schema \(self.path.isEmpty ? "/" : self.path)\(position): \(self.message)"
  }
}
