import Cryptography
import Testing

@testable import Pipeline

@Suite("Stages and NaN within lists and maps")
struct NonfiniteStagesTests {
  /// `[1.5, NaN, -Infinity]` and a null, as the decoder has them: text with `null`, and notes beside it.
  private static let text = #"{"a":[1.5,null,null],"b":null}"#
  private static let lost: [(offset: Int, value: Float)] = [(10, .nan), (15, -.infinity)]

  private func rows(_ stage: String, isLost: Bool = true) throws -> StageRows {
    let fixture = StageRows([("Before", .string), ("Shape", .json)])
    fixture.add(.init(cells: ["Before": .text("x"), "Shape": .text(Self.text)]))
    let slot = MetadataSlot.count + 1
    for number in isLost ? Self.lost : [] {
      fixture.batch.note(
        .init(
          text: fixture.batch.row(0).cells[slot], offset: number.offset, value: number.value))
    }
    try StageChain(json: [stage]).apply(to: fixture.batch)
    return fixture
  }

  private static let shown = #"{"a":[1.5,"NaN","-Infinity"],"b":null}"#

  @Test("cast to text writes NaN and infinities as text")
  func cast() throws {
    let rows = try self.rows(#"{"type":"cast","columns":{"Shape":"text"}}"#)
    #expect(rows.value("Shape", ofRow: 0) == .text(Self.shown))
  }

  @Test(
    "Expressions see NaN and infinities as numbers, and set writes them as text",
    arguments: [
      (#"{"expression":"Shape","type":"json"}"#, CellValue.text(Self.shown)),
      (#"{"expression":"Shape.a[2]","type":"double"}"#, .double(-.infinity)),
      (#""Shape.a[1] == Shape.a[1]""#, .bool(false)),
      (#""type(Shape.a[1]) == double && Shape.b == null""#, .bool(true)),
    ])
  func set(expression: String, expected: CellValue) throws {
    let rows = try self.rows(#"{"type":"set","columns":{"X":\#(expression)}}"#)
    #expect(rows.value("X", ofRow: 0) == expected)
  }

  @Test("The hash of a list with NaN is not that of a list with null")
  func hash() throws {
    let key = "0123456789abcdef"
    let stage = #"{"type":"mask","columns":["Shape"],"with":"hash","key":"\#(key)"}"#
    func code(_ text: String) -> CellValue {
      var code = [UInt8](repeating: 0, count: HMACSHA256.byteCount)
      Array(text.utf8).withUnsafeBufferPointer {
        HMACSHA256(key: Array(key.utf8)).authenticate($0, into: &code)
      }
      return .text(HashValue(bytes: code).hex)
    }
    #expect(try self.rows(stage).value("Shape", ofRow: 0) == code(Self.shown))
    #expect(try self.rows(stage, isLost: false).value("Shape", ofRow: 0) == code(Self.text))
  }
}
