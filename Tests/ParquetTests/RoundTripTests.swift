import Testing

@testable import Parquet

@Suite("Parquet: what is written is read") struct RoundTripTests {
  @Test("Random columns, values and sizes of pages and row groups", arguments: 0..<60)
  func random(seed: Int) throws {
    var random = Random(seed: seed + 1000)
    let columnCount = Int.random(in: 1...12, using: &random)
    let rowCount = [1, 7, 100, 1000, 3000].randomElement(using: &random) ?? 1
    var source = RandomRows(seed: seed, columnCount: columnCount)
    let rows = source.rows(rowCount)
    let file = try TestFile(
      source.columns, rows,
      rowLimit: [1, 8, 333, 122_880].randomElement(using: &random) ?? 8,
      pageByteCount: [1, 64, 1000, 1 << 17].randomElement(using: &random) ?? 64)
    let read = try file.rows()
    #expect(read.count == rows.count)
    let differing = zip(read, rows).enumerated().first { !$0.element.0.isSame(as: $0.element.1) }
    #expect(differing == nil, "seed \(seed), row \(differing?.offset ?? -1)")
    #expect(try ParquetReader(file).columns == source.columns)
  }

  @Test("A file without rows has its columns and members") func empty() throws {
    let columns = [ParquetColumn("a", .string), ParquetColumn("b", .stringList)]
    let file = try TestFile(columns, [], metadata: [("key", "värde"), ("empty", "")])
    let reader = try ParquetReader(file)
    #expect(reader.columns == columns)
    #expect(reader.rowCount == 0)
    #expect(reader.createdBy == "tests")
    #expect(reader.metadata.map(\.key) == ["key", "empty"])
    #expect(reader.metadata.map(\.value) == ["värde", ""])
    #expect(try !reader.next())
    #expect(try !reader.next())
  }

  /// A dictionary that takes no more, in the middle of a page and of a list.
  @Test("Long values leave the dictionary") func longValues() throws {
    let long = [UInt8](repeating: 0x61, count: 1 << 20)
    let columns = [ParquetColumn("s", .string), ParquetColumn("l", .stringList)]
    let short: [UInt8] = [0x62]
    var rows: [[TestValue?]] = (0..<400).map { _ in [.bytes(short), .list([short, short])] }
    rows.append([.bytes(long), .list([short, long, short])])
    rows += (0..<5).map { _ in [.bytes(short), .list([])] }
    rows.append([.bytes([]), nil])
    #expect(try TestFile(columns, rows).rows() == rows)
    #expect(try TestFile(columns, rows, pageByteCount: 100).rows() == rows)
  }

  /// 65,536 numbers fill the indices of 16 bits.
  @Test("A dictionary has at most 65,536 values", arguments: [65_535, 65_536, 65_537, 70_000])
  func fullDictionary(count: Int) throws {
    // Each twice in turn, so that the first pages find the dictionary worth it.
    let rows: [[TestValue?]] = (0..<count * 3).map { [.integer(Int64($0 / 3))] }
    #expect(try TestFile([ParquetColumn("n", .int32)], rows).rows() == rows)
  }

  @Test("A value that is too long is refused by its column and row") func tooLong() throws {
    let columns = [
      ParquetColumn("Name", .string), ParquetColumn("u", .uuid), ParquetColumn("l", .stringList),
    ]
    let writer = ParquetWriter(columns: columns, level: 1, createdBy: "tests")
    writer.endRow { _ in }
    let long = [UInt8](repeating: 0x61, count: ParquetWriter.maxValueByteCount + 1)
    func error(_ value: TestValue, _ column: Int) -> ParquetError? {
      #expect(throws: ParquetError.self) { try writer.append(value, to: column) }
    }
    #expect(error(.bytes(long), 0)?.code == .unstorable)
    #expect(error(.bytes(long), 0)?.place == "column Name, row 1")
    #expect(error(.bytes([1]), 1)?.code == .unstorable)
    #expect(error(.list([long]), 2)?.place == "column l, row 1")
  }

  @Test("A number with more digits than its type is refused") func tooManyDigits() throws {
    for precision in 1...38 {
      let columns = [ParquetColumn("d", .decimal(precision: precision, scale: 0))]
      let writer = ParquetWriter(columns: columns, level: 1, createdBy: "tests")
      let limit = Int128(columns[0].type.decimalLimit)
      #expect(throws: ParquetError.self) { try writer.append(decimal: limit, to: 0) }
      #expect(throws: ParquetError.self) { try writer.append(decimal: -limit, to: 0) }
      let rows: [[TestValue?]] = [[.decimal(limit - 1)], [.decimal(1 - limit)]]
      #expect(try TestFile(columns, rows).rows() == rows)
    }
  }
}

extension [TestValue?] {
  /// NaN equals NaN, whatever its bits: a float's are others as a double.
  func isSame(as other: [TestValue?]) -> Bool {
    self.count == other.count
      && zip(self, other).allSatisfy { left, right in
        guard case .number(let left) = left, case .number(let right) = right else {
          return left == right
        }
        return left == right
          || Double(bitPattern: left).isNaN && Double(bitPattern: right).isNaN
      }
  }
}
