import FoundationEssentials
import TestSupport
import Testing

@testable import Parquet

/// What other implementations read in our files: values row by row, statistics, checksums.
@Suite("Parquet: other readers") struct PeerTests {
  /// Every type, within what all readers can show.
  private static let columns: [ParquetColumn] = [
    ParquetColumn("flag", .boolean), ParquetColumn("int", .int32), ParquetColumn("long", .int64),
    ParquetColumn("single", .float), ParquetColumn("double", .double),
    ParquetColumn("text", .string), ParquetColumn("json", .json), ParquetColumn("bytes", .bytes),
    ParquetColumn("date", .date), ParquetColumn("time_ms", .time(.milliseconds)),
    ParquetColumn("time_us", .time(.microseconds)),
    ParquetColumn("ts_ms", .timestamp(.milliseconds, isLocal: false)),
    ParquetColumn("ts_us", .timestamp(.microseconds, isLocal: false)),
    ParquetColumn("local_ms", .timestamp(.milliseconds, isLocal: true)),
    ParquetColumn("local_us", .timestamp(.microseconds, isLocal: true)),
    ParquetColumn("money", .decimal(precision: 9, scale: 2)),
    ParquetColumn("amount", .decimal(precision: 18, scale: 6)),
    ParquetColumn("huge", .decimal(precision: 38, scale: 10)),
    ParquetColumn("whole", .decimal(precision: 20, scale: 0)),
    ParquetColumn("uuid", .uuid), ParquetColumn("list", .stringList),
    ParquetColumn("never", .string), ParquetColumn("id", .string),
  ]

  private static let texts = [
    "", "a", "007", "é", "日本語", "😀👩‍👩‍👧", "\u{0}", "\u{10FFFF}", "line\nbreak\"quote\\", "NULL",
    String(repeating: "x", count: 64), String(repeating: "é", count: 33),
    String(repeating: "x", count: 65),
  ]

  private static func row(_ number: Int, _ random: inout Random) -> [TestValue?] {
    func pick<Value>(_ values: [Value]) -> Value {
      values[Int.random(in: 0..<values.count, using: &random)]
    }
    // Years 1 to 9999.
    let days = pick([-719_162, 2_932_896, 0, -1, Int.random(in: -9999...9999, using: &random)])
    let seconds = pick([-62_135_596_800, 253_402_300_799, 0, -1, number])
    let long = pick([Int64.min, .max, 0, -1, Int64(number)])
    let double = pick([
      Double.nan, -0.0, 0, .infinity, -.infinity, .greatestFiniteMagnitude, .leastNonzeroMagnitude,
      Double(number) / 7,
    ])
    let single = pick([Float.nan, -0.0, .infinity, -.infinity, .leastNonzeroMagnitude, 1.5])
    func decimal(_ precision: Int) -> TestValue {
      let limit = Int128(ParquetType.decimal(precision: precision, scale: 0).decimalLimit)
      return .decimal(pick([limit - 1, 1 - limit, 0, -1, Int128(number)]))
    }
    func text() -> [UInt8] { Array(pick(Self.texts).utf8) }
    var values: [TestValue?] = [
      .boolean(pick([true, false])), .integer(Int64(pick([Int32.min, .max, 0, Int32(number)]))),
      .integer(long), .number(bits: Double(single).bitPattern), .number(bits: double.bitPattern),
      .bytes(text()), .bytes(Array(#"{"a":[1,"\#(number % 50)",null]}"#.utf8)),
      .bytes(pick([[], [0], [255, 254, 0]])), .integer(Int64(days)),
      .integer(Int64(pick([0, 86_399_999, number]))),
      .integer(Int64(pick([0, 86_399_999_999, number]))), .integer(Int64(seconds * 1000 + 7)),
      .integer(Int64(seconds * 1_000_000 + 999_999)), .integer(Int64(seconds * 1000)),
      .integer(Int64(seconds * 1_000_000)), decimal(9), decimal(18), decimal(38), decimal(20),
      .bytes((0..<16).map { _ in UInt8.random(in: 0...255, using: &random) }),
      .list((0..<pick([0, 1, 3])).map { _ in text() }), nil,
      .bytes(Array("006\(number)".utf8)),
    ]
    for column in values.indices.dropLast() where Int.random(in: 0..<4, using: &random) == 0 {
      values[column] = nil
    }
    return values
  }

  @Test("Other readers, and Spark if installed, read every value", arguments: [0, 1, 5000])
  func everyValue(rowCount: Int) throws {
    try Self.compare(Self.columns, rowCount: rowCount)
    // Python has PySpark only where somebody has installed it; it needs Java.
    guard hasSpark else { return }
    let columns = Self.columns.filter { column in
      if case .time = column.type { return false }
      return column.type != .uuid
    }
    try Self.compare(columns, rowCount: rowCount, "--spark")
  }

  private static func compare(
    _ columns: [ParquetColumn], rowCount: Int, _ arguments: String...
  ) throws {
    var random = Random(seed: rowCount)
    var rows = (0..<rowCount).map { Self.row($0, &random) }
    if rowCount > 1 {
      let long = [UInt8](repeating: 0x7A, count: 1 << 20)
      rows[rowCount / 2][5] = .bytes(long)
      rows[rowCount / 2][20] = .list([long, [], long])
    }
    let places = columns.compactMap { Self.columns.firstIndex(of: $0) }
    rows = rows.map { row in places.map { row[$0] } }
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/file.parquet"
    let file = try TestFile(
      columns, rows, rowLimit: 2000, pageByteCount: 2000, metadata: [("key", "värde")])
    try Data(file.bytes).write(to: URL(filePath: path))
    let lines = rows.map { row in
      "[" + row.map { $0?.json ?? "null" }.joined(separator: ",") + "]\n"
    }
    try Data(lines.joined().utf8).write(to: URL(filePath: "\(directory.path)/rows.json"))
    let answer = try PythonScript.run(
      "parquet_peers.py", [path, "\(directory.path)/rows.json"] + arguments)
    #expect(answer == "\(rowCount) rows agree\n")
  }
}

private let hasSpark = (try? runProgram("python3", "-c", "import pyspark")) != nil

extension TestValue {
  /// As `parquet_peers.py` expects it.
  var json: String {
    func hexadecimal(_ bytes: [UInt8]) -> String {
      bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }
    return switch self {
    case .boolean(let value): "\(value)"
    case .integer(let value): "\(value)"
    case .number(let bits): #""\#(String(bits, radix: 16))""#
    case .decimal(let value): #""\#(value)""#
    case .bytes(let value): #""\#(hexadecimal(value))""#
    case .list(let elements):
      "[" + elements.map { #""\#(hexadecimal($0))""# }.joined(separator: ",") + "]"
    }
  }
}
