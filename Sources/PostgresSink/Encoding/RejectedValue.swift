/// A value that its column cannot hold; the event it belongs to goes to the dead letters.
package struct RejectedValue: Error, Sendable, Equatable, CustomStringConvertible {
  /// SQL name.
  package var column: String
  /// Of the field in the schema: `BillingAddress.City`.
  package var path: String
  /// Without the value.
  package var reason: String

  package var description: String { "\(self.path): \(self.reason) (column \"\(self.column)\")" }
}
