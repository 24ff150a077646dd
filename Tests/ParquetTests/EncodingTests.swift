import Bytes
import Testing

@testable import Parquet

@Suite("Parquet: encodings") struct EncodingTests {
  /// The check value of the CRC's definition.
  @Test("The checksum is that of gzip") func checksum() {
    let crc = CRC32()
    Array("123456789".utf8).withUnsafeBytes { #expect(crc.value(of: $0) == 0xCBF4_3926) }
    #expect(crc.value(of: UnsafeRawBufferPointer(start: nil, count: 0)) == 0)
  }

  @Test("Levels and indices read back", arguments: 1...16) func hybrid(bitWidth: Int) throws {
    var random = Random(seed: bitWidth)
    let greatest = UInt32(1 << bitWidth - 1)
    for _ in 0..<60 {
      var encoder = HybridEncoder(bitWidth: bitWidth)
      var values: [UInt32] = []
      for _ in 0..<Int.random(in: 0..<80, using: &random) {
        let value = UInt32.random(in: 0...greatest, using: &random)
        let count = [1, 1, 1, 2, 7, 8, 9, 300].randomElement(using: &random) ?? 1
        values += Array(repeating: value, count: count)
        encoder.append(value, count: count)
      }
      encoder.finish()
      let bytes = Array(encoder.output.bytes)
      var read: [UInt32] = []
      var decoder = HybridDecoder(0..<bytes.count, bitWidth: bitWidth, greatest: greatest)
      while read.count < values.count {
        let run = try bytes.withUnsafeBytes {
          try decoder.nextRun(in: $0, limit: values.count - read.count)
        }
        read += Array(repeating: run.value, count: run.count)
      }
      #expect(read == values)
    }
  }

  /// The bytes of the example in parquet-format, "Run Length Encoding / Bit-Packing Hybrid".
  @Test("Packed values have the first in the lowest bits") func packed() {
    var encoder = HybridEncoder(bitWidth: 3)
    for value in 0..<8 { encoder.append(UInt32(value)) }
    encoder.finish()
    #expect(Array(encoder.output.bytes) == [0x03, 0b1000_1000, 0b1100_0110, 0b1111_1010])
  }

  private static func bounds(
    _ type: ParquetType, _ values: [String]
  ) -> ColumnStatistics.Bounds? {
    var statistics = ColumnStatistics(type)
    for value in values { Array(value.utf8).withUnsafeBytes { statistics.note($0) } }
    return statistics.bounds
  }

  @Test("Bounds of texts are cut at a character, the greatest above all values") func texts() throws
  {
    let exact = try #require(Self.bounds(.string, ["b", "", "é"]))
    #expect(exact.least == [] && exact.isLeastExact)
    #expect(exact.greatest == Array("é".utf8) && exact.isGreatestExact)

    let x = String(repeating: "x", count: 63)
    let cut = try #require(Self.bounds(.string, [x + "é"]))
    #expect(cut.least == Array(x.utf8) && !cut.isLeastExact)
    #expect(cut.greatest == Array((x.dropLast() + "y").utf8) && !cut.isGreatestExact)

    // Nothing of the length follows the last character.
    let last = String(repeating: "\u{10FFFF}", count: 20)
    #expect(try #require(Self.bounds(.string, [last])).greatest == nil)
    let beforeLast = "a" + last
    #expect(try #require(Self.bounds(.string, [beforeLast])).greatest == Array("b".utf8))

    // U+D7FF is followed by U+E000.
    let gap = String(repeating: "\u{D7FF}", count: 22)
    let afterGap = String(repeating: "\u{D7FF}", count: 20) + "\u{E000}"
    #expect(try #require(Self.bounds(.string, [gap])).greatest == Array(afterGap.utf8))

    // Of two values with one prefix, the shorter is the least, and the longer the greatest.
    let prefix = String(repeating: "p", count: 64)
    let both = try #require(Self.bounds(.string, [prefix + "q", prefix]))
    #expect(both.least == Array(prefix.utf8) && both.isLeastExact)
    #expect(both.greatest == Array((prefix.dropLast() + "q").utf8) && !both.isGreatestExact)
  }

  @Test("Numbers: no NaN, and both zeros") func numbers() throws {
    var statistics = ColumnStatistics(.double)
    statistics.note(Double.nan)
    let ofNaN = statistics.bounds
    #expect(ofNaN == nil)
    statistics.note(0.0)
    let bounds = statistics.bounds
    let zero = try #require(bounds)
    #expect(zero.least == [0, 0, 0, 0, 0, 0, 0, 0x80])
    #expect(zero.greatest == [0, 0, 0, 0, 0, 0, 0, 0])
    statistics.note(-Double.infinity)
    let infinite = statistics.bounds
    #expect(infinite?.least == [0, 0, 0, 0, 0, 0, 0xF0, 0xFF])
  }

  /// Without a limit, a table whose keys all have one place costs the square of their number.
  @Test("A dictionary that is attacked ends") func collisions() {
    var dictionary = ValueDictionary(.int64)
    let colliding = (0..<UInt64.max).lazy.filter { ValueDictionary.mix($0) & 0x3FF == 7 }
    for (count, value) in colliding.prefix(ValueDictionary.maxProbeCount + 1).enumerated() {
      let index = dictionary.index(of: value)
      if case .new = index { continue }
      #expect(count == ValueDictionary.maxProbeCount)
      if case .full = index { return }
    }
    Issue.record("the dictionary takes them all")
  }
}
