import Testing

@testable import Pipeline

@Suite("Sets of stores") struct StoreSetTests {
  @Test("Each store is found, alone and among all others")
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

  @Test("A store beyond the limit traps instead of being ignored")
  func overflow() async {
    await #expect(processExitsWith: .failure) {
      var set = StoreSet()
      set.insert(StoreSet.capacity)
    }
  }
}
