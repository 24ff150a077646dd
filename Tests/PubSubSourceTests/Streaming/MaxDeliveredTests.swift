import Testing

@testable import PubSubSource

@Suite struct MaxDeliveredTests {
  @Test(
    "Topics share the events that may be delivered",
    arguments: [(20, [20]), (20, [7, 7, 6]), (3, [1, 1, 1])])
  func shares(count: Int, expected: [Int]) {
    var options = PubSubSourceOptions()
    options.maxDelivered = count
    #expect(
      expected.indices.map { options.allowance(ofTopic: $0, among: expected.count) } == expected)
  }

  @Test("The limit of a topic holds beside its share; without limits there is none")
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
