import Bytes
import Testing

@testable import Parquet

@Suite("Parquet: damaged and hostile files") struct DamageTests {
  private static func file(rows: Int = 60, seed: Int = 5) throws -> (TestFile, [[TestValue?]]) {
    var source = RandomRows(seed: seed, columnCount: 9)
    let rows = source.rows(rows)
    let file = try TestFile(
      source.columns, rows, rowLimit: 25, pageByteCount: 100, metadata: [("k", "v")])
    return (file, rows)
  }

  @Test("A file that ends early is refused, wherever it ends") func truncated() throws {
    let (file, _) = try Self.file()
    for count in 0..<file.byteCount {
      let error = #expect(throws: ParquetError.self, "\(count) bytes") {
        try TestFile(bytes: Array(file.bytes[..<count])).rows()
      }
      guard error != nil else { return }
    }
  }

  /// The description has no checksum of its own; the rows have.
  @Test("No changed byte changes a row, or the number of rows") func changed() throws {
    let (file, rows) = try Self.file(rows: 12)
    let footer = file.byteCount - 8 - file.footerByteCount
    var refusals = 0
    for index in file.bytes.indices {
      for change: UInt8 in [0x01, 0x80, 0xFF] {
        var bytes = file.bytes
        bytes[index] ^= change
        do throws(ParquetError) {
          let read = try TestFile(bytes: bytes).rows()
          let isSame = zip(read, rows).allSatisfy { $0.isSame(as: $1) }
          guard read.count == rows.count, isSame || index >= footer else {
            Issue.record("byte \(index) of \(footer) changed by \(change): \(read.count) rows")
            return
          }
        } catch {
          refusals += 1
          #expect(error.code == .damaged || error.code == .unsupported)
        }
      }
    }
    #expect(refusals > file.byteCount)
  }

  @Test("An error names the column, the row group and the page") func place() throws {
    let columns = [ParquetColumn("Name", .string), ParquetColumn("Amount", .int64)]
    let rows: [[TestValue?]] = (0..<20).map { [.bytes([0x61]), .integer(Int64($0))] }
    let file = try TestFile(columns, rows, rowLimit: 10)
    var places: Set<String> = []
    var reasons: Set<String> = []
    for index in 4..<file.byteCount {
      var bytes = file.bytes
      bytes[index] ^= 1
      do throws(ParquetError) { _ = try TestFile(bytes: bytes).rows() } catch {
        places.insert(error.place)
        reasons.insert(error.reason)
      }
    }
    #expect(places.contains("column Name, row group 0, page at byte 4"))
    #expect(places.contains { $0.hasPrefix("column Amount, row group 1, page at byte ") })
    #expect(reasons.contains("its checksum is not that of its bytes: they have changed"))
  }

  @Test("A source that fails is an error with its cause") func unreadable() throws {
    var (file, _) = try Self.file()
    file.unreadableFrom = file.byteCount - 8
    let atEnd = #expect(throws: ParquetError.self) { try file.rows() }
    #expect(atEnd?.code == .unreadable)
    #expect(atEnd?.cause is TestFile.Failure)
  }

  @Test(
    "Files of other kinds are refused",
    arguments: [
      [], Array("PAR1".utf8), Array("PAR1PAR1".utf8), [UInt8](repeating: 0, count: 100),
      Array("PAR1\0\0\0\0PAR1".utf8), Array("PAR1\u{15}\0\u{1}\0\0\0PAR1".utf8),
      Array("PAR1\u{7F}\u{7F}\u{7F}\u{7F}PAR1".utf8),
    ]) func others(bytes: [UInt8])
  {
    #expect(throws: ParquetError.self) { try TestFile(bytes: bytes).rows() }
  }

  /// Pages whose checksum is right, whatever they have.
  @Test("Hostile pages are errors, not traps", arguments: 0..<40) func hostilePages(
    seed: Int
  ) throws {
    var random = Random(seed: seed)
    let (file, _) = try Self.file(rows: 300, seed: seed)
    let pages = try Self.pages(file)
    var refusals = 0
    for _ in 0..<200 {
      var bytes = Array(FileMetadata.magic.description.utf8)
      let column = Int.random(in: 0..<pages.columns.count, using: &random)
      var levelCount = 0
      let output = PageBuilder(level: 1)
      var buffer = ByteBuffer()
      for (page, header) in pages.columns[column] {
        var body = page
        if !body.isEmpty {
          for _ in 0..<Int.random(in: 0...3, using: &random) {
            body[Int.random(in: 0..<body.count, using: &random)] = UInt8.random(
              in: 0...255, using: &random)
          }
          if Int.random(in: 0..<8, using: &random) == 0 {
            body.removeLast(Int.random(in: 1...body.count, using: &random))
          }
        }
        output.body.append(body)
        let encoding: PageBuilder.Encoding = header.encoding == 8 ? .dictionary : .plain
        let count =
          Int.random(in: 0..<10, using: &random) == 0 ? header.valueCount + 1 : header.valueCount
        _ = output.finish(
          header.kind == 2
            ? .dictionary(valueCount: count) : .data(levelCount: count, encoding), into: &buffer)
        if header.kind == 0 { levelCount += header.valueCount }
      }
      bytes += Array(buffer.bytes)
      var chunk = FileMetadata.Chunk()
      chunk.levelCount = levelCount
      chunk.dataStart = 4
      chunk.byteCount = buffer.count
      let cursor = ColumnCursor(pages.schema[column], PageReader(TestFile(bytes: bytes)))
      do throws(ParquetError) {
        try cursor.begin(chunk, group: 0, rowCount: 25)
        while cursor.nextRow < 25 {
          try cursor.take()
          _ = Array(cursor.bytes)
          for element in 0..<cursor.elementCount { _ = Array(cursor.element(element)) }
          try cursor.advance()
        }
      } catch {
        refusals += 1
      }
    }
    #expect(refusals > 20)
  }

  /// The pages of the first row group, by column.
  private static func pages(
    _ file: TestFile
  ) throws -> (schema: [ParquetColumn], columns: [[([UInt8], PageReader.Header)]]) {
    let length = file.footerByteCount
    let end = file.byteCount - 8 - length
    let metadata = try file.bytes[end..<end + length].withUnsafeBytes { bytes in
      try FileMetadata(parsing: bytes, end: end)
    }
    let reader = PageReader(file)
    let columns = try metadata.rowGroups[0].chunks.map { chunk in
      var pages: [([UInt8], PageReader.Header)] = []
      var offset = chunk.start
      var page = ByteBuffer()
      while offset < chunk.start + chunk.byteCount {
        let (header, next) = try reader.read(
          at: offset, end: chunk.start + chunk.byteCount, into: &page, place: "")
        pages.append((Array(page.bytes), header))
        offset = next
      }
      return pages
    }
    return (metadata.columns, columns)
  }

  @Test("Hostile descriptions are errors, not traps", arguments: 0..<20)
  func hostileFooters(seed: Int) throws {
    var random = Random(seed: seed)
    let (file, _) = try Self.file(rows: 30, seed: seed)
    let length = file.footerByteCount
    let end = file.byteCount - 8 - length
    for _ in 0..<200 {
      var bytes = file.bytes
      for _ in 0..<Int.random(in: 1...6, using: &random) {
        bytes[end + Int.random(in: 0..<length, using: &random)] = UInt8.random(
          in: 0...255, using: &random)
      }
      do throws(ParquetError) { _ = try TestFile(bytes: bytes).rows() } catch {
        #expect(!error.place.isEmpty)
      }
    }
  }
}

extension TestFile {
  /// The bytes of the description.
  fileprivate var footerByteCount: Int {
    self.bytes.suffix(8).prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
  }
}
