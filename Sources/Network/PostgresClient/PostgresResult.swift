internal import CPQ

/// Owner of a `PGresult`.
final class PostgresResult {
  private let pointer: OpaquePointer  // PGresult *
  private let fault: AnswerFault

  init(_ pointer: OpaquePointer, _ fault: AnswerFault) {
    self.pointer = pointer
    self.fault = fault
  }

  deinit { PQclear(self.pointer) }

  var status: ExecStatusType { PQresultStatus(self.pointer) }
  var rowCount: Int { Int(PQntuples(self.pointer)) }
  var columnCount: Int { Int(PQnfields(self.pointer)) }

  /// A value; nil when null.
  ///
  /// A row or column that the server has not sent is nil, too, and the connection then refuses every
  /// further statement, so that nothing is decided or committed by what is not there.
  func bytes(_ row: Int, _ column: Int) -> UnsafeBufferPointer<UInt8>? {
    guard (0..<self.rowCount).contains(row), (0..<self.columnCount).contains(column) else {
      self.fault.note(
        "an answer has \(self.rowCount) rows of \(self.columnCount) columns, so row \(row + 1), "
          + "column \(column + 1) is missing")
      return nil
    }
    guard PQgetisnull(self.pointer, Int32(row), Int32(column)) == 0 else { return nil }
    let count = Int(PQgetlength(self.pointer, Int32(row), Int32(column)))
    return UnsafeBufferPointer(
      start: UnsafeRawPointer(PQgetvalue(self.pointer, Int32(row), Int32(column)))?
        .assumingMemoryBound(to: UInt8.self), count: count)
  }

  func noteFault(_ message: String) { self.fault.note(message) }

  var affectedRowCount: Int { Int(String(cString: PQcmdTuples(self.pointer))) ?? 0 }

  func field(_ code: Int32) -> String? {
    PQresultErrorField(self.pointer, code).map { String(cString: $0) }
  }
}

/// What a statement returned, as text.
package struct TextResult {
  private let result: PostgresResult

  init(_ result: PostgresResult) { self.result = result }

  package var rowCount: Int { self.result.rowCount }
  package var columnCount: Int { self.result.columnCount }
  /// Rows inserted, updated, deleted, copied or selected.
  package var affectedRowCount: Int { self.result.affectedRowCount }

  /// Nil when null, and where the server has sent no value: see `PostgresConnection.checkAnswers`.
  package subscript(row: Int, column: Int) -> String? {
    self.result.bytes(row, column).map { String(decoding: $0, as: UTF8.self) }
  }

  /// A count, a position or a time in milliseconds; nil when null. Text that is not a number,
  /// or a number beyond 2^60, makes the connection refuse every further statement, as a missing value does.
  package func number(_ row: Int, _ column: Int) -> Int64? {
    guard let text = self[row, column] else { return nil }
    if let number = Int64(text), number.magnitude <= 1 << 60 { return number }
    self.result.noteFault("an answer has no number in row \(row + 1), column \(column + 1)")
    return nil
  }
}
