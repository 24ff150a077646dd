import Testing

@testable import SalesforceREST

@Suite("Limits of the CSV reader")
struct CSVReaderLimitsTests {
  /// The limit counts the whole row as it is in the text.
  @Test(
    "A row may be as long as the limit",
    arguments: [
      ("\"12345678\"\n", 11), ("\"12345678\"\r\n", 12), ("\"12345678\"", 10), ("1234\n", 5),
      ("1234", 4), ("\"a\"\"\"\"b\"\n", 9), ("1,2,3,\n", 7), ("\n", 1),
    ])
  func rowLimit(_ row: String, bytes: Int) {
    for text in ["\(row)", "\u{FEFF}\(row)"] {
      let bytesOfText = Array(text.utf8)
      let fits = CSVReader.Limits(rowBytes: bytes)
      #expect(CSVText(text, limits: fits).error == nil)
      #expect(CSVText.byteByByte(bytesOfText, limits: fits) == CSVText(text, limits: fits))
      guard bytes > 1 else { continue }
      let tight = CSVReader.Limits(rowBytes: bytes - 1)
      let read = CSVText(text, limits: tight)
      #expect(read.error?.code == .limitExceeded)
      #expect(read.error?.byteOffset == bytesOfText.count - 1)
      #expect(CSVText.byteByByte(bytesOfText, limits: tight) == read)
    }
  }

  @Test("Any number of rows within the limit can follow each other") func endlessRows() {
    let text = "a,b\n" + String(repeating: "1,2\n", count: 1000)
    #expect(CSVText(text, limits: .init(rowBytes: 4)).rows.count == 1001)
  }

  @Test("The reader takes no more of a row that is too long") func longRow() throws {
    var reader = CSVReader(limits: .init(rowBytes: 1 << 20))
    let piece = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 16)
    piece.withUnsafeBytes { reader.append($0) }
    for _ in 1..<16 {
      #expect(try reader.next() == .needsBytes)
      piece.withUnsafeBytes { reader.append($0) }
    }
    #expect(try reader.next() == .needsBytes)
    piece.withUnsafeBytes { reader.append($0) }
    let held = reader.buffer.count
    #expect(held == 1 << 20)
    let error = #expect(throws: CSVError.self) { try reader.next() }
    #expect(error?.code == .limitExceeded)
    #expect(error?.byteOffset == 1 << 20)
  }

  @Test("A header may have as many columns as the limit") func columnLimit() throws {
    let fits = CSVText("a,b,c\n1,2,3\n", limits: .init(fields: 3))
    #expect(fits.error == nil)
    let read = CSVText("a,b,c\n1,2,3\n", limits: .init(fields: 2))
    let error = try #require(read.error)
    #expect(error.code == .limitExceeded)
    #expect(error.rowNumber == 1)
    #expect(error.byteOffset == 5)
  }

  @Test("Five thousand columns and long values are within the limits") func largeRows() {
    let header = (0..<5000).map { "C\($0)" }.joined(separator: ",")
    let long = String(repeating: "\"\"x", count: 1 << 20)
    let row = "\"\(long)\"" + String(repeating: ",", count: 4999)
    let read = CSVText("\(header)\n\(row)\n", pieces: Array(repeating: 65_537, count: 40))
    #expect(read.error == nil)
    #expect(read.rows.last?.count == 5000)
    #expect(read.rows.last?.first == Array(String(repeating: "\"x", count: 1 << 20).utf8))
    #expect(CSVText(header + ",D\n").error?.code == .limitExceeded)
  }
}
