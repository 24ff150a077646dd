import Testing

@testable import PubSubSource

@Suite("Limits on delivered events") struct MaxDeliveredTests {
  @Test(
    "Topics share the limit on delivered events",
    arguments: [(20, [20]), (20, [7, 7, 6]), (3, [1, 1, 1])])
  func shares(count: Int, expected: [Int]) {
    var options = PubSubSourceOptions()
    options.maxDelivered = count
    #expect(
      expected.indices.map { options.allowance(ofTopic: $0, among: expected.count) } == expected)
  }

  @Test("A topic's own limit applies in addition to its share, and without limits there is none")
  func both() {
    var options = PubSubSourceOptions(maxEvents: 4)
    #expect(options.allowance(ofTopic: 1, among: 2) == 4)
    options.maxDelivered = 20
    #expect(options.allowance(ofTopic: 1, among: 2) == 4)
    options.maxDelivered = 5
    #expect(options.allowance(ofTopic: 1, among: 2) == 2)
    #expect(PubSubSourceOptions().allowance(ofTopic: 0, among: 1) == nil)
  }
}
