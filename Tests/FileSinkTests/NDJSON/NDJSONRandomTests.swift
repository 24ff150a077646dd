import FileSink
import Foundation
import JSON
import Pipeline
import TestSupport
import Testing

@Suite("NDJSON against Python")
struct NDJSONRandomTests {
  /// A type, the name that `check_ndjson_lines.py` has for it, and how to draw a cell.
  private struct Kind: Sendable {
    var type: ColumnType
    var name: String
    var extra: String = "null"
    var draw: @Sendable (inout SystemRandomNumberGenerator) -> TestCell

    init(
      _ type: ColumnType, _ name: String, extra: String = "null",
      draw: @escaping @Sendable (inout SystemRandomNumberGenerator) -> TestCell
    ) {
      (self.type, self.name, self.extra, self.draw) = (type, name, extra, draw)
    }
  }

  private static func bytes(
    upTo count: Int, using random: inout SystemRandomNumberGenerator
  ) -> [UInt8] {
    (0..<Int.random(in: 0...count, using: &random)).map { _ in
      UInt8.random(in: 0...255, using: &random)
    }
  }

  private static func text(using random: inout SystemRandomNumberGenerator) -> String {
    let ranges: [ClosedRange<UInt32>] = [
      0x20...0x7E, 0x20...0x7E, 0x61...0x7A, 0...0x1F, 0x22...0x22, 0x5C...0x5C, 0x80...0x7FF,
      0x2028...0x2029, 0xE000...0xFFFF, 0x10000...0x10FFFF,
    ]
    // Most strings need no escape, as in life.
    let isPlain = Bool.random(using: &random)
    var text = ""
    for _ in 0..<Int.random(in: 0...40, using: &random) {
      let range = isPlain ? ranges[0] : ranges.randomElement(using: &random) ?? ranges[0]
      let value = UInt32.random(in: range, using: &random)
      if let scalar = Unicode.Scalar(value) { text.unicodeScalars.append(scalar) }
    }
    return text
  }

  private static let kinds: [Kind] = {
    // 0001-01-01 and 9999-12-31 in seconds.
    let seconds: ClosedRange<Int64> = -62_135_596_800...253_402_300_799
    func instant(_ factor: Int64) -> @Sendable (inout SystemRandomNumberGenerator) -> TestCell {
      { random in
        let low = max(seconds.lowerBound, .min / factor + 1)
        let high = min(seconds.upperBound, .max / factor - 1)
        return .integer(
          Int64.random(in: low...high, using: &random) * factor
            + Int64.random(in: 0..<factor, using: &random))
      }
    }
    func time(_ factor: Int64) -> @Sendable (inout SystemRandomNumberGenerator) -> TestCell {
      { .integer(Int64.random(in: 0..<86_400 * factor, using: &$0)) }
    }
    return [
      Kind(.boolean, "boolean") { .integer(Bool.random(using: &$0) ? 1 : 0) },
      Kind(.int32, "int32") { .integer(Int64(Int32.random(in: .min ... .max, using: &$0))) },
      Kind(.int64, "int64") {
        .integer(
          Int64.random(in: .min ... .max, using: &$0) >> Int64.random(in: 0..<64, using: &$0))
      },
      Kind(.float, "float") { .float(Float(bitPattern: $0.next())) },
      Kind(.double, "double") { .double(Double(bitPattern: $0.next())) },
      Kind(.double, "double") {
        .double(Double(Int64.random(in: -100_000_000...100_000_000, using: &$0)) / 100)
      },
      Kind(.double, "double") { .double([.nan, .infinity, -.infinity, 0][Int($0.next() % 4)]) },
      Kind(.string, "string") { .text(Self.text(using: &$0)) },
      Kind(.string, "string") { .text(Self.text(using: &$0)) },
      Kind(.enumeration(["A", "b \"", "ü\\"]), "enumeration", extra: #"["A","b \"","ü\\"]"#) {
        .integer(Int64.random(in: 0...2, using: &$0))
      },
      Kind(.bytes, "bytes") { .bytes(Self.bytes(upTo: 50, using: &$0)) },
      Kind(.decimal(precision: 38, scale: 4), "decimal", extra: "4") {
        .bytes(Self.bytes(upTo: 8, using: &$0))
      },
      Kind(.decimal(precision: 200, scale: 30), "decimal", extra: "30") {
        .bytes(Self.bytes(upTo: 70, using: &$0))
      },
      Kind(.decimal(precision: 9, scale: 0), "decimal", extra: "0") {
        .bytes(Self.bytes(upTo: 20, using: &$0))
      },
      Kind(.date(.days), "date.days") {
        .integer(Int64.random(in: -719_162...2_932_896, using: &$0))
      },
      Kind(.date(.milliseconds), "date.milliseconds", draw: instant(1000)),
      Kind(.time(.milliseconds), "time.3", draw: time(1000)),
      Kind(.time(.microseconds), "time.6", draw: time(1_000_000)),
      Kind(.time(.nanoseconds), "time.9", draw: time(1_000_000_000)),
      Kind(.timestamp(.milliseconds, isLocal: false), "timestamp.3", draw: instant(1000)),
      Kind(.timestamp(.microseconds, isLocal: false), "timestamp.6", draw: instant(1_000_000)),
      Kind(.timestamp(.nanoseconds, isLocal: false), "timestamp.9", draw: instant(1_000_000_000)),
      Kind(.timestamp(.milliseconds, isLocal: true), "local.3", draw: instant(1000)),
      Kind(.timestamp(.microseconds, isLocal: true), "local.6", draw: instant(1_000_000)),
      Kind(.timestamp(.nanoseconds, isLocal: true), "local.9", draw: instant(1_000_000_000)),
      Kind(.duration, "duration") { random in
        .bytes((0..<12).map { _ in UInt8.random(in: 0...255, using: &random) })
      },
      Kind(.json, "json") { .text(["{\"a\":[1,2.5,null]}", "[]", "\"x\""][Int($0.next() % 3)]) },
    ]
  }()

  private static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  @Test("Python reads every value of random rows as the cell holds it")
  func randomRows() throws {
    var random = SystemRandomNumberGenerator()
    let slotCount = 90
    // Columns in random order on random slots: scans are cut everywhere.
    let columns = (0..<slotCount).shuffled(using: &random).prefix(80).enumerated().map {
      (name: $0.offset % 7 == 0 ? "k\"\($0.offset)\\é" : "Column_\($0.offset)", slot: $0.element)
    }
    let kinds = columns.indices.map { Self.kinds[$0 % Self.kinds.count] }
    let layout = RecordLayout.plain(
      zip(columns, kinds).map { Column($0.name, $0.slot, $1.type) }, slotCount: slotCount)
    let batch = RecordBatch(layout: layout)
    var raw = ""
    for _ in 0..<500 {
      var cells: [Int: TestCell] = [:]
      var parts: [String] = []
      let density = Int.random(in: 1...10, using: &random)
      for (column, kind) in zip(columns, kinds) {
        var presence = 0
        var hex = ""
        if Int.random(in: 0..<10, using: &random) < density {
          presence = Int.random(in: 1...2, using: &random)
          let cell = presence == 1 ? TestCell.null : kind.draw(&random)
          cells[column.slot] = cell
          switch cell {
          case .integer(let value):
            hex = Self.hexadecimal(withUnsafeBytes(of: value.bigEndian) { Array($0) })
          case .double(let value):
            hex = Self.hexadecimal(withUnsafeBytes(of: value.bitPattern.bigEndian) { Array($0) })
          case .float(let value):
            let wide = UInt64(value.bitPattern)
            hex = Self.hexadecimal(withUnsafeBytes(of: wide.bigEndian) { Array($0) })
          case .text(let text): hex = Self.hexadecimal(text.utf8)
          case .bytes(let bytes): hex = Self.hexadecimal(bytes)
          case .null, .slots, .record: break
          }
        }
        let name = column.name.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
        parts.append("[\"\(name)\",\"\(kind.name)\",\(presence),\"\(hex)\",\(kind.extra)]")
      }
      batch.addRow(cells)
      raw += "[\(parts.joined(separator: ","))]\n"
    }
    let directory = try TemporaryDirectory()
    try raw.write(toFile: directory.path + "/cells", atomically: false, encoding: .utf8)
    try batch.lines().write(toFile: directory.path + "/lines", atomically: false, encoding: .utf8)
    let count = try PythonScript.run(
      "check_ndjson_lines.py", [directory.path + "/cells", directory.path + "/lines"])
    #expect(try #require(Int(count.dropLast())) > 5000)
  }
}
