import Testing

@testable import Pipeline

@Suite("Layout cache") struct LayoutCacheTests {
  private func layout(_ slots: Int) -> RecordLayout {
    RecordLayout(
      topic: "/data/A", schemaID: "s", entity: "A", family: .changeEvent, slotCount: slots,
      fieldOrder: [],
      columns: [])
  }

  @Test("An entry is found by the identity of its layout, not by equality")
  func identity() {
    var cache = LayoutCache<Int>()
    let (first, second) = (self.layout(10), self.layout(10))
    cache.insert(1, for: first)
    #expect(cache[first] == 1)
    #expect(cache[second] == nil)
    cache.removeAll { $0 == 1 }
    #expect(cache[first] == nil)
  }

  @Test("The number of kept layouts is limited")
  func limit() {
    var cache = LayoutCache<Int>()
    let slots = 20_000
    let most = LayoutCache<Int>.maxSlotCount / slots
    for number in 0..<100 {
      let layout = self.layout(slots)
      cache.insert(number, for: layout)
      #expect(cache[layout] == number)
      #expect(cache.count <= most)
    }
    // Found again, counted once.
    let layout = self.layout(slots)
    for number in 0..<100 { cache.insert(number, for: layout) }
    #expect(cache[layout] == 99)
    #expect(cache.count > 1)
  }
}
