import Testing

@testable import PubSubSimulator

@Suite("Messages on a stream")
struct MessageDeframerTests {
  private static let two: [UInt8] = [
    0, 0, 0, 0, 3, 1, 2, 3,  // three bytes
    0, 0, 0, 0, 0,  // an empty message
  ]

  @Test("Messages are the same, however the bytes are split", arguments: 1...13)
  func drip(step: Int) throws {
    var deframer = MessageDeframer()
    var messages: [[UInt8]] = []
    for start in stride(from: 0, to: Self.two.count, by: step) {
      deframer.append(Array(Self.two[start..<min(start + step, Self.two.count)]))
      while let message = try deframer.next() { messages.append(message) }
    }
    #expect(messages == [[1, 2, 3], []])
  }

  @Test("An unfinished message is never delivered", arguments: 0..<8)
  func truncated(count: Int) throws {
    var deframer = MessageDeframer()
    deframer.append(Array(Self.two.prefix(count)))
    #expect(try deframer.next() == nil)
  }

  @Test("A compressed message and one over 4 MiB are refused by their prefix")
  func limits() {
    var compressed = MessageDeframer()
    compressed.append([1, 0, 0, 0, 1])
    #expect(throws: MessageDeframer.Failure.compressed) { try compressed.next() }
    var large = MessageDeframer()
    large.append([0, 0, 0x40, 0, 1])
    #expect(throws: MessageDeframer.Failure.tooLarge) { try large.next() }
  }
}
