/// What a statement returned, in the binary formats of its columns' types.
package struct BinaryResult {
  private let result: PostgresResult

  init(_ result: PostgresResult) { self.result = result }

  package var rowCount: Int { self.result.rowCount }
  package var columnCount: Int { self.result.columnCount }
  package var affectedRowCount: Int { self.result.affectedRowCount }

  /// Nil when null, and where the server has sent no value: see `PostgresConnection.checkAnswers`.
  /// Valid while the result is alive.
  package func withField(_ row: Int, _ column: Int) -> UnsafeBufferPointer<UInt8>? {
    self.result.bytes(row, column)
  }
}

extension PostgresConnection {
  /// Runs one statement; parameters are text, results are in binary format.
  @discardableResult
  package func queryBinary(
    _ sql: String, _ parameters: [String?] = []
  ) throws(PostgresError) -> BinaryResult {
    BinaryResult(try self.run(sql, parameters, isBinary: true))
  }
}
