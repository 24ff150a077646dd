/// Why a CSV text cannot be read, and where. Never contains the text.
package struct CSVError: Error, Sendable, Equatable {
  package struct Code: Hashable, Sendable {
    private enum Value { case malformed, truncated, fieldCount, limitExceeded }
    private var value: Value
    private init(_ value: Value) { self.value = value }
    /// Bytes that RFC 4180 does not allow at this place.
    package static var malformed: Self { Self(.malformed) }
    /// The text ended inside quotes.
    package static var truncated: Self { Self(.truncated) }
    /// A row with more or fewer values than the header.
    package static var fieldCount: Self { Self(.fieldCount) }
    /// A row is longer, or there are more columns, than the limits allow.
    package static var limitExceeded: Self { Self(.limitExceeded) }
  }

  package var code: Code
  /// What is wrong, without the place.
  package var message: String
  /// Counts from 1, which is the header.
  package var rowNumber: Int
  /// Counts from 0 at the start of the text, including a byte order mark.
  package var byteOffset: Int
}

extension CSVError: CustomStringConvertible {
  /// `row 17 at byte 1234: a character follows the closing quote`
  package var description: String {
    "row \(self.rowNumber) at byte \(self.byteOffset): \(self.message)"
  }
}
