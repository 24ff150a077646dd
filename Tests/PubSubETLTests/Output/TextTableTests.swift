import Testing

@testable import PubSubETL

@Suite("Tables on a terminal") struct TextTableTests {
  @Test("Columns begin at the same place, and lines end with their last cell")
  func aligned() {
    #expect(
      TextTable.lines([["a", "bb", "c"], ["aaa", "", ""], ["a\nb", "b", ""]]) == """
        a     bb  c
        aaa
        a\\nb  b

        """)
  }
}
