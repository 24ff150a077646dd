import Testing

@testable import PubSubSource

/// ChangeEvents.md#bitmaps.
@Suite("Bitmaps of changed fields") struct ChangedFieldBitmapTests {
  private func indexes(
    _ text: String, below fieldCount: Int = 200
  ) throws(ChangedFieldBitmap.Fault) -> (parent: Int?, indexes: [Int]) {
    let bytes = Array(text.utf8)
    let result = bytes.withUnsafeBufferPointer { bytes in
      Result<(parent: Int?, indexes: [Int]), ChangedFieldBitmap.Fault> {
        () throws(ChangedFieldBitmap.Fault) in
        let bitmap = try ChangedFieldBitmap(bytes)
        var indexes: [Int] = []
        try bitmap.forEachIndex(below: fieldCount) { indexes.append($0) }
        return (bitmap.parent, indexes)
      }
    }
    return try result.get()
  }

  /// The other direction, written for the test: minimal whole bytes, upper case.
  private func encoded(_ indexes: [Int]) -> String {
    var bytes = [UInt8](repeating: 0, count: (indexes.max() ?? 0) / 8 + 1)
    for index in indexes { bytes[bytes.count - 1 - index / 8] |= 1 << (index % 8) }
    return "0x"
      + bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }.joined()
  }

  @Test(
    "Documented examples of record bitmaps are read and written alike",
    arguments: [
      ([23], "0x800000"), ([23, 68], "0x100000000000800000"), ([1, 23], "0x800002"),
      ([6, 24], "0x01000040"), ([5, 14, 24], "0x01004020"), ([6, 24, 26], "0x05000040"),
      ([6, 26], "0x04000040"), ([26], "0x04000000"), ([26, 42], "0x040004000000"), ([5], "0x20"),
      ([12, 19, 20, 21, 22, 23, 27], "0x08F81000"), ([6, 8, 17, 18, 29, 31], "0xA0060140"),
      ([7, 13], "0x2080"), ([16, 22], "0x410000"), ([16], "0x010000"), ([0], "0x01"),
      ([7], "0x80"), ([8], "0x0100"), ([15, 16], "0x018000"), ([63], "0x8000000000000000"),
      ([64], "0x010000000000000000"), ([86], "0x4000000000000000000000"),
    ])
  func recordExamples(indexes: [Int], text: String) throws {
    let read = try self.indexes(text)
    #expect(read.parent == nil)
    #expect(read.indexes == indexes)
    #expect(self.encoded(indexes) == text)
  }

  @Test(
    "Documented examples of compound bitmaps are read",
    arguments: [
      ("6-0x01", 6, [0]), ("6-0x0180", 6, [7, 8]), ("3-0x02", 3, [1]), ("5-0x1A", 5, [1, 3, 4]),
      ("12-0x03", 12, [0, 1]), ("1-0x06", 1, [1, 2]),
    ])
  func compoundExamples(text: String, parent: Int, indexes: [Int]) throws {
    let read = try self.indexes(text)
    #expect(read.parent == parent)
    #expect(read.indexes == indexes)
    #expect("\(parent)-\(self.encoded(indexes))" == text)
  }

  @Test("Lower case, leading zero bytes and odd digit counts are read") func unusualForms() throws {
    #expect(try self.indexes("0x08f81000").indexes == [12, 19, 20, 21, 22, 23, 27])
    #expect(try self.indexes("0x00000000000001", below: 1).indexes == [0])
    #expect(try self.indexes("0x00").indexes == [])
    #expect(try self.indexes("0x123").indexes == [0, 1, 5, 8])
  }

  @Test("Random sets of any width are read back") func roundTrip() throws {
    var random = SystemRandomNumberGenerator()
    for _ in 0..<500 {
      let indexes = (0..<Int.random(in: 1...900, using: &random))
        .filter { _ in Int.random(in: 0...9, using: &random) == 0 }
      guard !indexes.isEmpty else { continue }
      #expect(try self.indexes(self.encoded(indexes), below: 900).indexes == indexes)
    }
  }

  @Test(
    "A malformed bitmap is refused",
    arguments: [
      "", "0", "0x", "x01", "01", "0xG0", "0x 1", "-0x01", "6-", "6-0x", "6-01",
      "6--0x01", "0X01", "6-6-0x01", "0x01-0x01", "a-0x01",
    ])
  func malformed(text: String) {
    #expect(throws: ChangedFieldBitmap.Fault.malformed) { try self.indexes(text) }
  }

  @Test("An index beyond the schema is refused") func beyondSchema() {
    #expect(throws: ChangedFieldBitmap.Fault.index(86, fieldCount: 86)) {
      try self.indexes("0x4000000000000000000000", below: 86)
    }
    #expect(throws: ChangedFieldBitmap.Fault.self) {
      try self.indexes("99999999999999999999-0x01")
    }
  }
}
