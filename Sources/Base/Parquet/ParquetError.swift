/// A file is not what this module writes, or a value is not what a file can hold.
///
/// All content is behind one reference, because this error is thrown in hot loops.
package struct ParquetError: Error, Sendable, CustomStringConvertible {
  package struct Code: Hashable, Sendable {
    private enum Value { case damaged, unsupported, unreadable, unstorable }
    private var value: Value
    private init(_ value: Value) { self.value = value }
    /// The bytes contradict themselves, or a checksum is wrong.
    package static var damaged: Self { Self(.damaged) }
    /// A correct file, perhaps, but none that this module writes.
    package static var unsupported: Self { Self(.unsupported) }
    /// The source of the bytes failed, as `cause` says.
    package static var unreadable: Self { Self(.unreadable) }
    /// A value is too long, or not of the column's type.
    package static var unstorable: Self { Self(.unstorable) }
  }

  private final class Content: Sendable {
    let code: Code
    let place: String
    let reason: String
    let cause: (any Error)?

    init(_ code: Code, _ place: String, _ reason: String, cause: (any Error)?) {
      self.code = code
      self.place = place
      self.reason = reason
      self.cause = cause
    }
  }

  private let content: Content

  package var code: Code { self.content.code }
  /// The part of the file: `column Amount, page at byte 1204`.
  package var place: String { self.content.place }
  /// What is wrong there, without values.
  package var reason: String { self.content.reason }
  package var cause: (any Error)? { self.content.cause }

  init(_ code: Code, _ place: String, _ reason: String, cause: (any Error)? = nil) {
    self.content = Content(code, place, reason, cause: cause)
  }

  package var description: String { "\(self.place): \(self.reason)" }
}
