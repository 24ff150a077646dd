internal import HTTPClient

/// The rows of one page of a Bulk job, in order, and whether the page is complete.
///
/// A truncated body can have status 200 and be well-formed HTTP. So a page counts only if it has as
/// many rows as its headers say and the last one is complete. Earlier rows are complete anyway,
/// because each ends with its line.
package final class BulkRows {
  private let page: BulkPage
  private let fields: [String]
  private var reader: CSVReader
  private var hasHeader = false
  private var rowCount = 0

  /// - Parameter fields: the selected fields, in order, which the header has to name.
  package init(_ page: BulkPage, fields: [String], limits: CSVReader.Limits = .init()) {
    self.page = page
    self.fields = fields
    self.reader = CSVReader(limits: limits)
  }

  /// Rows read so far.
  package var count: Int { self.rowCount }

  /// Lends the next row; false after the last one of a complete page.
  ///
  /// Throws `RESTError` of disposition `retry` if the page is incomplete or not what was requested,
  /// and what `body` throws.
  package func next(_ body: (borrowing CSVRow) throws -> Void) async throws -> Bool {
    while true {
      switch try self.step() {
      case .row:
        if !self.reader.rowHasEnd { throw self.incomplete("ends within a row") }
        self.rowCount += 1
        guard self.rowCount <= self.page.recordCount else { throw self.wrongCount() }
        try self.reader.withRow(body)
        return true
      case .header:
        try self.checkHeader()
      case .needsBytes:
        try await self.receive()
      case .end:
        guard self.rowCount == self.page.recordCount else { throw self.wrongCount() }
        return false
      }
    }
  }

  private func step() throws(RESTError) -> CSVReader.Step {
    do {
      return try self.reader.next()
    } catch {
      throw self.incomplete("is not valid CSV: \(error)")
    }
  }

  private func receive() async throws {
    do {
      if let piece = try await self.page.body.next() {
        piece.withUnsafeBytes { self.reader.append($0) }
      } else {
        self.reader.finish()
      }
    } catch let error as HTTPError {
      throw RESTError(error)
    }
  }

  private func checkHeader() throws(RESTError) {
    let isExpected = self.reader.withRow { row in
      row.count == self.fields.count
        && row.indices.allSatisfy { index in
          row[index].elementsEqual(self.fields[index].utf8) { left, right in
            Self.lowercased(left) == Self.lowercased(right)
          }
        }
    }
    guard isExpected else {
      // The job belongs to an earlier description of the object, so repeating the call does not
      // help.
      throw RESTError(.gone, "\(self.page.name): the page has other columns than were selected")
    }
  }

  private static func lowercased(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
  }

  private func wrongCount() -> RESTError {
    self.incomplete("has \(self.rowCount) rows instead of \(self.page.recordCount)")
  }

  private func incomplete(_ what: String) -> RESTError {
    RESTError(.retry, "\(self.page.name): the page \(what)")
  }
}
