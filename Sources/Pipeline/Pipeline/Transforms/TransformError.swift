/// A stage cannot work with the columns that reach it.
package struct TransformError: Error, Sendable {
  package struct Code: Hashable, Sendable {
    private enum Value {
      case duplicateColumn, reservedColumn, unknownColumn, expression, maskedColumn, columnType
      case classification
    }
    private var value: Value
    private init(_ value: Value) { self.value = value }
    /// Two columns would get one name.
    package static var duplicateColumn: Self { Self(.duplicateColumn) }
    /// A column would get a name that lines use for something else.
    package static var reservedColumn: Self { Self(.reservedColumn) }
    /// A stage names a column that the schema, or every schema, does not have.
    package static var unknownColumn: Self { Self(.unknownColumn) }
    /// An expression does not fit the types of the columns.
    package static var expression: Self { Self(.expression) }
    /// A column cannot be masked in the way that the configuration says.
    package static var maskedColumn: Self { Self(.maskedColumn) }
    /// The classification of a schema's fields is unknown.
    package static var classification: Self { Self(.classification) }
    /// A stage cannot work with the type of a column, or give it the type that the configuration says.
    package static var columnType: Self { Self(.columnType) }
  }

  package var code: Code
  /// Names stage, columns with their paths, schema and topic, and says what to do.
  package var message: String
  package var fileID: String
  package var line: Int

  init(_ code: Code, _ message: String, fileID: String = #fileID, line: Int = #line) {
    (self.code, self.message, self.fileID, self.line) = (code, message, fileID, line)
  }
}

extension TransformError: CustomStringConvertible {
  package var description: String { self.message }
}
