import DurableFiles
import TestSupport
import Testing

@testable import FileSink

/// Sorting of what does not fit into memory.
@Suite("Entry sorter") struct EntrySorterTests {
  private let directory = try! TemporaryDirectory()  // A machine without /tmp runs no tests.

  private func scratch() -> ScratchFiles { ScratchFiles(directory: "\(self.directory.path)/state") }

  private static func key(_ random: inout SplitMix, _ number: Int) -> [UInt8] {
    let prefix = (0..<Int.random(in: 0...6, using: &random)).map { _ in
      UInt8.random(in: 0...3, using: &random)
    }
    var key = prefix
    key.appendSortable(Int64(number))
    return key
  }

  @Test(
    "Any number of entries is sorted by key, several times",
    arguments: [(0, 2), (1, 2), (700, 2), (700, 3), (3000, 48)])
  func sorts(count: Int, fanIn: Int) throws {
    var random = SplitMix(seed: UInt64(count + fanIn))
    let scratch = self.scratch()
    var sorter = EntrySorter(scratch, limits: .init(byteCount: 2000, fanIn: fanIn))
    var expected: [(key: [UInt8], value: [UInt8])] = []
    for number in 0..<count {
      let key = Self.key(&random, number)
      let value = Array(repeating: UInt8(truncatingIfNeeded: number), count: number % 90)
      try sorter.append(key: key, value: value)
      expected.append((key, value))
    }
    expected.sort { $0.key.lexicographicallyPrecedes($1.key) }
    let sorted = try sorter.finish()
    #expect(sorted.count == count)
    for _ in 0..<2 {
      let reader = try sorted.reader()
      for entry in expected {
        try #require(try reader.next())
        #expect(reader.key == entry.key && reader.value == entry.value)
      }
      #expect(try !reader.next())
    }
  }

  @Test("A value larger than the sorting memory is returned complete")
  func large() throws {
    var sorter = EntrySorter(self.scratch(), limits: .init(byteCount: 1000, fanIn: 2))
    let large = (0..<700_000).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 7) }
    try sorter.append(key: [2], value: large)
    try sorter.append(key: [1], value: [])
    let reader = try sorter.finish().reader()
    #expect(try reader.next() && reader.key == [1] && reader.value.isEmpty)
    #expect(try reader.next() && reader.key == [2] && reader.value == large)
  }

  @Test("Scratch files have no name while in use, and only their owner can read them")
  func scratchFiles() throws {
    var sorter = EntrySorter(self.scratch(), limits: .init(byteCount: 100, fanIn: 3))
    for number in 0..<100 { try sorter.append(key: [UInt8(number)], value: [1, 2, 3]) }
    let sorted = try sorter.finish()
    #expect(sorted.count == 100)
    #expect(try SystemFileSystem().list("\(self.directory.path)/state") == [])
  }
}
