import Testing

@testable import PubSubSource

@Suite("Read-ahead") struct ReadAheadTests {
  @Test("The number of small events limits the read-ahead")
  func small() {
    let options = PubSubSourceOptions(readAhead: 2000)
    let weight = options.weight(eventCount: 100, byteCount: 30_000)
    #expect((20 * weight...21 * weight).contains(PubSubSourceOptions.readAheadBytes))
  }

  @Test(
    "The bytes of large events and keepalives limit the read-ahead",
    arguments: [(100, 3 << 20), (1, 1 << 20), (0, 30)])
  func large(eventCount: Int, byteCount: Int) {
    let options = PubSubSourceOptions(readAhead: 2000)
    #expect(options.weight(eventCount: eventCount, byteCount: byteCount) == byteCount + 256)
  }

  @Test("A read-ahead smaller than a response takes one response at a time")
  func tiny() {
    let options = PubSubSourceOptions(readAhead: 1)
    #expect(
      options.weight(eventCount: 1, byteCount: 300) == PubSubSourceOptions.readAheadBytes)
  }
}
