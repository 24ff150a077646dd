import SalesforceREST
import Testing

@Suite("CSV reader")
struct CSVReaderTests {
  static let bulkPage = """
    "Id","Name","Amount","Description","Account.Name"
    "006xx0000001abcAAA","The ""A"" deal","1.25E7","line 1
    line 2, still row 1",""
    "006xx0000001abdAAA","Müller 😀","","a\r\nb""\r\n""c\0d","\"""

    """

  @Test(
    "Rows and quoted values are read however the bytes are split",
    arguments: [
      ("", []),
      ("\u{FEFF}", []),
      (
        bulkPage,
        [
          ["Id", "Name", "Amount", "Description", "Account.Name"],
          [
            "006xx0000001abcAAA", "The \"A\" deal", "1.25E7", "line 1\nline 2, still row 1", "",
          ],
          ["006xx0000001abdAAA", "Müller 😀", "", "a\r\nb\"\r\n\"c\0d", "\""],
        ]
      ),
      ("a,b\n1,2\n", [["a", "b"], ["1", "2"]]),
      ("a,b\r\n1,2\r\n", [["a", "b"], ["1", "2"]]),
      ("a,b\r\n\"1\",2\n", [["a", "b"], ["1", "2"]]),
      ("a,b\n1,2", [["a", "b"], ["1", "2"]]),
      ("a,b\n1,", [["a", "b"], ["1", ""]]),
      ("a,b\n,\n\"\",\"\"\n,\"\"", [["a", "b"], ["", ""], ["", ""], ["", ""]]),
      ("\"a\",b\n\"1\",2\n3,\"4\"", [["a", "b"], ["1", "2"], ["3", "4"]]),
      ("a", [["a"]]),
      ("\"a\"", [["a"]]),
      ("\"a\"\n", [["a"]]),
      // A blank line is a row of one empty value.
      ("a\n\nb\n\n", [["a"], [""], ["b"], [""]]),
      ("\n", [[""]]),
      ("\u{FEFF}\"a\"\n\u{FEFF}b\n", [["a"], ["\u{FEFF}b"]]),
      ("\"\u{FEFF}a\"\n", [["\u{FEFF}a"]]),
      (
        "a\n\"\"\"\"\n\"\"\"\"\"\"\n\"x\"\"\"\n\"\"\"x\"",
        [["a"], ["\""], ["\"\""], ["x\""], ["\"x"]]
      ),
      ("a\n x ; y\n", [["a"], [" x ; y"]]),
      ("a\n\0\n\"\0\"\n", [["a"], ["\0"], ["\0"]]),
      ("a,b\n'x',\\\n", [["a", "b"], ["'x'", "\\"]]),
      ("NA,null\nN/A,-\n007,1.25E7\n", [["NA", "null"], ["N/A", "-"], ["007", "1.25E7"]]),
    ])
  func reads(_ text: String, as rows: [[String]]) {
    let read = CSVText(text)
    #expect(read.error == nil)
    #expect(read.texts == rows)
    #expect(CSVText.byteByByte(Array(text.utf8)) == read)
  }

  @Test("An incomplete byte order mark is an ordinary value") func partialBOM() {
    for text: [UInt8] in [[0xEF], [0xEF, 0xBB], [0xEF, 0xBB, 0x2C], [0xBB, 0xBF]] {
      let read = CSVText.byteByByte(text)
      #expect(read.error == nil)
      #expect(read.rows.first?.first == Array(text.prefix { $0 != 0x2C }))
      #expect(read == CSVText(text))
    }
  }

  @Test("Bytes that are not UTF-8 are kept") func notUTF8() {
    let text: [UInt8] = [0x61, 10, 0x22, 0xFF, 0xC3, 0x22, 10, 0xFE, 0x80, 10]
    #expect(CSVText(text).rows == [[[0x61]], [[0xFF, 0xC3]], [[0xFE, 0x80]]])
  }

  @Test(
    "Malformed text is refused with its row and byte offset",
    arguments: [
      ("a\n\"x\"y\n", CSVError.Code.malformed, 2, 5, 1),
      ("a\n\"x\" \n", .malformed, 2, 5, 1),
      ("\"a\"b", .malformed, 1, 3, 0),
      ("a\nx\"y\n", .malformed, 2, 3, 1),
      ("a\nx\ry\n", .malformed, 2, 4, 1),
      ("a\n\"x\"\ry\n", .malformed, 2, 6, 1),
      ("a\nx\r", .malformed, 2, 4, 1),
      ("a\nx\r\r\n", .malformed, 2, 4, 1),
      ("a\n\"x", .truncated, 2, 4, 1),
      ("a\n\"", .truncated, 2, 3, 1),
      ("a\n\"x\"\"", .truncated, 2, 6, 1),
      ("\u{FEFF}\"", .truncated, 1, 4, 0),
      ("a,b\n1\n", .fieldCount, 2, 6, 1),
      ("a,b\n1", .fieldCount, 2, 5, 1),
      ("a,b\n1,2,3\n", .fieldCount, 2, 9, 1),
      ("a,b\n1,2,\n", .fieldCount, 2, 8, 1),
      ("a,b\n1,2\n\n3,4\n", .fieldCount, 3, 9, 2),
    ])
  func refuses(
    _ text: String, _ code: CSVError.Code, row: Int, at offset: Int, after rows: Int
  )
    throws
  {
    let read = CSVText(text)
    let error = try #require(read.error)
    #expect(error.code == code)
    #expect(error.rowNumber == row)
    #expect(error.byteOffset == offset)
    #expect(read.rows.count == rows)
    #expect("\(error)".hasPrefix("row \(row) at byte \(offset): "))
    #expect(CSVText.byteByByte(Array(text.utf8)) == read)
  }

  @Test("An error shows no data") func noData() throws {
    for text in [
      "a\nhidden\"", "hidden\n\"hidden\"hidden", "a\n\"hidden", "a\n1,hidden", "a,b\nhidden\n",
    ] {
      let error = try #require(CSVText(text).error)
      #expect(!"\(error) \(String(reflecting: error))".contains("hidden"))
    }
  }

  @Test("A reader repeats its error") func afterError() throws {
    var reader = CSVReader()
    Array("a\nx\"\nb\n".utf8).withUnsafeBytes { reader.append($0) }
    _ = try reader.next()
    let error = try #require(throws: CSVError.self) { try reader.next() }
    Array("c\n".utf8).withUnsafeBytes { reader.append($0) }
    reader.finish()
    #expect(throws: error) { try reader.next() }
    #expect(reader.rowCount == 1)
  }

  @Test("A reader that has reached the end stays there") func afterEnd() throws {
    var reader = CSVReader()
    Array("a\nb".utf8).withUnsafeBytes { reader.append($0) }
    #expect(try reader.next() == .header)
    #expect(try reader.next() == .needsBytes)
    #expect(try reader.next() == .needsBytes)
    reader.finish()
    #expect(try reader.next() == .row)
    #expect(try reader.next() == .end)
    #expect(try reader.next() == .end)
    #expect(reader.rowCount == 2)
  }

  /// A text that ends too early is an error, or gives the rows that were there. Only the last value
  /// of an unfinished row may be shorter: whether one ends with `"` or goes on with `""` is not known.
  @Test("Truncated text is an error or gives fewer rows") func truncation() {
    let text = Array(Self.bulkPage.utf8)
    let whole = CSVText(text).rows
    for length in 0..<text.count {
      let read = CSVText(Array(text[..<length]))
      #expect(read.rows.count <= whole.count)
      #expect(read.rows.dropLast() == whole.prefix(max(0, read.rows.count - 1)))
      guard let row = read.rows.last else { continue }
      let other = whole[read.rows.count - 1]
      #expect(row.dropLast() == other.prefix(row.count - 1))
      #expect(row.last.map { other[row.count - 1].starts(with: $0) } == true)
    }
  }

  @Test("A final row without a line end may be the start of a longer row")
  func rowEnds() throws {
    for (text, ends) in [
      ("a\n1\n2\n", [true, true, true]), ("a\n1\n2", [true, true, false]),
      ("a\n\"1\"\r\n\"2\"", [true, true, true]), ("a", [false]),
    ] {
      var reader = CSVReader()
      Array(text.utf8).withUnsafeBytes { reader.append($0) }
      reader.finish()
      for end in ends {
        _ = try reader.next()
        #expect(reader.rowHasEnd == end, "\(text)")
      }
    }
  }
}
