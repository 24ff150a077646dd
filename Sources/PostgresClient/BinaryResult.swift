internal import CPQ

/// What a statement returned, in the binary formats of its columns' types.
package struct BinaryResult {
  private let result: PostgresResult

  init(_ result: PostgresResult) { self.result = result }

  package var rowCount: Int { Int(PQntuples(self.result.pointer)) }
  package var columnCount: Int { Int(PQnfields(self.result.pointer)) }
  package var affectedRowCount: Int { self.result.affectedRowCount }

  /// Nil when null; valid while the result is alive.
  package func withField(_ row: Int, _ column: Int) -> UnsafeBufferPointer<UInt8>? {
    let pointer = self.result.pointer
    precondition(
      row >= 0 && row < Int(PQntuples(pointer)) && column >= 0 && column < Int(PQnfields(pointer)),
      "row \(row), column \(column) of a result")
    guard PQgetisnull(pointer, Int32(row), Int32(column)) == 0 else { return nil }
    let count = Int(PQgetlength(pointer, Int32(row), Int32(column)))
    return UnsafeBufferPointer(
      start: UnsafeRawPointer(PQgetvalue(pointer, Int32(row), Int32(column)))?
        .assumingMemoryBound(to: UInt8.self), count: count)
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
