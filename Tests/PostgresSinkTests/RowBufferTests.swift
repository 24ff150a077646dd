import PostgresSink
import Testing

@Suite struct RowBufferTests {
  @Test("A cell tells absent, null and a value apart")
  func presence() {
    #expect(RowBuffer.Cell.absent.isAbsent && !RowBuffer.Cell.absent.isNull)
    #expect(RowBuffer.Cell.null.isNull && !RowBuffer.Cell.null.isAbsent)
    let value = RowBuffer.Cell(offset: 0, count: 0, isDiff: false)
    #expect(!value.isNull && !value.isAbsent)
  }
}
