import Testing

@testable import Pipeline

@Suite struct StoreSetTests {
  @Test("Every store that fits is found, alone and beside all others")
  func members() {
    var all = StoreSet()
    for store in 0..<StoreSet.capacity {
      var one = StoreSet()
      one.insert(store)
      #expect(!one.isEmpty && !all.contains(store))
      all.insert(store)
      for other in 0..<StoreSet.capacity {
        #expect(one.contains(other) == (other == store))
        #expect(all.contains(other) == (other <= store))
      }
    }
    #expect(!all.contains(StoreSet.capacity) && !all.contains(-1))
  }

  @Test("A store beyond the last one is a mistake of the program, not a store that gets nothing")
  func overflow() async {
    await #expect(processExitsWith: .failure) {
      var set = StoreSet()
      set.insert(StoreSet.capacity)
    }
  }
}
