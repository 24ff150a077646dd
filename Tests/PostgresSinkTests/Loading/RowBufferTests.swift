import PostgresSink
import Testing

@Suite("Row buffer") struct RowBufferTests {
  @Test("A cell distinguishes null from an empty value")
  func presence() {
    #expect(RowBuffer.Cell(nullOf: 3).isNull)
    #expect(!RowBuffer.Cell(column: 3, 7..<7).isNull)
  }

  @Test("Memory is kept while in use and released by a transaction that did not need it")
  func givesBack() {
    var buffer = RowBuffer(columnCount: 100)
    for _ in 1...2 {
      buffer.bytes.append(contentsOf: repeatElement(1, count: 1 << 20))
      buffer.cells.append(contentsOf: repeatElement(.init(nullOf: 3), count: 10_000))
      buffer.removeAll()
      #expect(buffer.bytes.isEmpty && buffer.bytes.capacity >= 1 << 20)
      #expect(buffer.cells.isEmpty && buffer.cells.capacity >= 10_000)
    }
    buffer.bytes.append(1)
    buffer.removeAll()
    #expect(buffer.bytes.capacity < 1 << 10)
    #expect(buffer.cells.capacity < 100)
  }
}
