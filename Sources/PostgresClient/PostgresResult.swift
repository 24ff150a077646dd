internal import CPQ

/// Owner of a `PGresult`.
final class PostgresResult {
  let pointer: OpaquePointer  // PGresult *

  init(_ pointer: OpaquePointer) { self.pointer = pointer }

  deinit { PQclear(self.pointer) }

  var status: ExecStatusType { PQresultStatus(self.pointer) }

  /// A value of a result in text format; nil when null.
  func text(_ row: Int, _ column: Int) -> String? {
    precondition(
      row >= 0 && row < Int(PQntuples(self.pointer)) && column >= 0
        && column < Int(PQnfields(self.pointer)), "row \(row), column \(column) of a result")
    guard PQgetisnull(self.pointer, Int32(row), Int32(column)) == 0 else { return nil }
    return String(cString: PQgetvalue(self.pointer, Int32(row), Int32(column)))
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
    self.result.text(row, column)
  }
}
