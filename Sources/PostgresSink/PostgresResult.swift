internal import CPQ

/// Owner of a `PGresult`.
final class PostgresResult {
  let pointer: OpaquePointer  // PGresult *

  init(_ pointer: OpaquePointer) { self.pointer = pointer }

  deinit { PQclear(self.pointer) }

  var status: ExecStatusType { PQresultStatus(self.pointer) }

  /// Nil when null.
  func bytes(_ row: Int, _ column: Int) -> UnsafeBufferPointer<UInt8>? {
    precondition(
      row >= 0 && row < Int(PQntuples(self.pointer)) && column >= 0
        && column < Int(PQnfields(self.pointer)), "row \(row), column \(column) of a result")
    guard PQgetisnull(self.pointer, Int32(row), Int32(column)) == 0 else { return nil }
    let count = Int(PQgetlength(self.pointer, Int32(row), Int32(column)))
    return UnsafeBufferPointer(
      start: UnsafeRawPointer(PQgetvalue(self.pointer, Int32(row), Int32(column)))?
        .assumingMemoryBound(to: UInt8.self), count: count)
  }

  var affectedRowCount: Int { Int(String(cString: PQcmdTuples(self.pointer))) ?? 0 }

  func field(_ code: Int32) -> String? {
    PQresultErrorField(self.pointer, code).map { String(cString: $0) }
  }
}

/// What a statement returned, as text.
package struct TextResult {
  private let result: PostgresResult

  init(_ result: PostgresResult) { self.result = result }

  package var rowCount: Int { Int(PQntuples(self.result.pointer)) }
  package var columnCount: Int { Int(PQnfields(self.result.pointer)) }
  /// Rows inserted, updated, deleted, copied or selected.
  package var affectedRowCount: Int { self.result.affectedRowCount }

  /// Nil when null.
  package subscript(row: Int, column: Int) -> String? {
    self.result.bytes(row, column).map { String(decoding: $0, as: UTF8.self) }
  }
}

/// What a statement returned, in the binary formats of its columns' types.
package struct BinaryResult {
  private let result: PostgresResult

  init(_ result: PostgresResult) { self.result = result }

  package var rowCount: Int { Int(PQntuples(self.result.pointer)) }
  package var columnCount: Int { Int(PQnfields(self.result.pointer)) }
  package var affectedRowCount: Int { self.result.affectedRowCount }

  /// Nil when null; valid while the result is alive.
  package func withField(_ row: Int, _ column: Int) -> UnsafeBufferPointer<UInt8>? {
    self.result.bytes(row, column)
  }
}
