/// A value that its column cannot hold. Its event goes to the dead letters.
package struct RejectedValue: Error, Sendable, Equatable, CustomStringConvertible {
  /// SQL name.
  package var column: String
  /// The path of the field in the schema: `BillingAddress.City`.
  package var path: String
  /// The reason, without the value.
  package var reason: String

  package var description: String { "\(self.path): \(self.reason) (column \"\(self.column)\")" }
}

extension CellEncoding.Operation {
  /// Why a value of this kind may not fit, without the value.
  var reasonForRejection: String {
    switch self {
    case .int2: "beyond the 16 bits of smallint"
    case .int4: "beyond the 32 bits of integer"
    case .int8: "beyond the 64 bits of bigint"
    case .doubleAsInt2, .doubleAsInt4, .doubleAsInt8: "not a whole number within the column's range"
    case .doubleAsFloat4: "beyond the range of real"
    case .doubleAsNumeric, .floatAsNumeric:
      "infinity, which numeric can hold only since PostgreSQL 14"
    case .decimal, .decimalText: "more digits than its schema or numeric allows"
    case .dateOfDays, .dateOfMilliseconds: "outside the dates 4713-01-01 BC to 5874897-12-31"
    case .timestampMilliseconds, .timestampMicroseconds, .timestampNanoseconds:
      "outside the times 4713-01-01 BC to 294276-12-31"
    case .timeMilliseconds, .timeMicroseconds, .timeNanoseconds: "not a time of day"
    case .interval: "more than 2147483647 months or days"
    case .uuid, .textAsUUID: "not a UUID"
    default: "not a value of the column's type"
    }
  }
}
