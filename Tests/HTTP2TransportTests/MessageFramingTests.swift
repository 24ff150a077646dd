import GRPCCore
import Testing

@testable import HTTP2Transport

@Suite("Framing of messages")
struct MessageFramingTests {
  let messages: [[UInt8]] = [[], [1], [UInt8](repeating: 2, count: 300), [3, 4]]

  var wire: [UInt8] {
    self.messages.flatMap { [0, 0, 0, UInt8($0.count >> 8), UInt8($0.count & 255)] + $0 }
  }

  func deframe(
    _ pieces: some Sequence<ArraySlice<UInt8>>, limit: Int = 1000
  ) throws -> (messages: [[UInt8]], isBetween: Bool) {
    var deframer = MessageDeframer(maxMessageBytes: limit)
    var messages: [[UInt8]] = []
    for piece in pieces {
      try Array(piece).withUnsafeBytes { try deframer.receive($0) { messages.append($0.bytes) } }
    }
    return (messages, deframer.isBetweenMessages)
  }

  @Test("A body gives the same messages wherever it is split") func splitBody() throws {
    for size in 1...self.wire.count {
      let pieces = stride(from: 0, to: self.wire.count, by: size).map {
        self.wire[$0..<min($0 + size, self.wire.count)]
      }
      let result = try self.deframe(pieces)
      #expect(result.messages == self.messages)
      #expect(result.isBetween)
    }
  }

  @Test("A body that ends in the middle of a message is recognized") func unfinishedMessage() throws
  {
    var boundaries: Set<Int> = [0]
    for message in self.messages { boundaries.insert((boundaries.max() ?? 0) + 5 + message.count) }
    for end in 0...self.wire.count {
      let result = try self.deframe([self.wire[..<end]])
      #expect(result.isBetween == boundaries.contains(end))
      #expect(result.messages == Array(self.messages.prefix(result.messages.count)))
    }
  }

  @Test("The length prefix alone is enough to refuse a message above the limit") func messageLimit()
  {
    let error = #expect(throws: RPCError.self) { try self.deframe([[0, 0, 0, 3, 233]]) }
    #expect(error?.code == .resourceExhausted)
    #expect(throws: Never.self) { try self.deframe([[0, 0, 0, 3, 232]]) }
    let largest = #expect(throws: RPCError.self) { try self.deframe([[0, 255, 255, 255, 255]]) }
    #expect(largest?.message.contains("4294967295") == true)
  }

  @Test("Unknown flags are refused", arguments: [1, 2, 255]) func unknownFlags(flag: UInt8) {
    let error = #expect(throws: RPCError.self) { try self.deframe([[flag, 0, 0, 0, 0]]) }
    #expect(error?.code == .internalError)
  }

  @Test("The compression flag of each message is kept") func compressionFlags() throws {
    var framer = MessageFramer()
    framer.append([1], isCompressed: true)
    framer.append([2])
    let wire = self.read(&framer, by: 3)
    #expect(wire == [1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 2])
    var deframer = MessageDeframer(maxMessageBytes: 10)
    deframer.acceptsCompressed = true
    var messages: [ReceivedMessage] = []
    try wire.withUnsafeBytes { try deframer.receive($0) { messages.append($0) } }
    #expect(
      messages == [
        ReceivedMessage(bytes: [1], isCompressed: true), ReceivedMessage(bytes: [2]),
      ])
    let error = #expect(throws: RPCError.self) {
      try [UInt8]([2, 0, 0, 0, 0]).withUnsafeBytes { try deframer.receive($0) { _ in } }
    }
    #expect(error?.code == .internalError)
  }

  func read(_ framer: inout MessageFramer, by size: Int) -> [UInt8] {
    var result: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: size)
    while true {
      let count = buffer.withUnsafeMutableBytes { framer.read(into: $0) }
      result += buffer.prefix(count)
      if count == 0 { return result }
    }
  }

  @Test("Messages are framed the same way with a buffer of any size") func buffers() {
    for size in 1...self.wire.count {
      var framer = MessageFramer()
      for message in self.messages { framer.append(message) }
      #expect(framer.pendingByteCount == self.wire.count)
      #expect(self.read(&framer, by: size) == self.wire)
      #expect(framer.pendingByteCount == 0)
    }
  }

  @Test("A request can be rewound from every offset until the server responds") func rewind() {
    for offset in 0...self.wire.count {
      var framer = MessageFramer()
      for message in self.messages { framer.append(message) }
      var buffer = [UInt8](repeating: 0, count: offset)
      let count = buffer.withUnsafeMutableBytes { framer.read(into: $0) }
      #expect(count == offset)
      #expect(framer.canRewind)
      var answered = framer
      framer.rewind()
      #expect(self.read(&framer, by: 7) == self.wire)
      answered.forgetSent()
      #expect(!answered.canRewind)
      #expect(self.read(&answered, by: 7) == Array(self.wire[offset...]))
    }
  }

  @Test("Little memory is kept for a rewind") func rewindMemory() {
    var framer = MessageFramer()
    for index in 0..<100 {
      framer.append([UInt8](repeating: UInt8(index), count: 10_000))
      #expect(self.read(&framer, by: 4096).suffix(10_000).allSatisfy { $0 == UInt8(index) })
    }
    #expect(!framer.canRewind)
    #expect(framer.pendingByteCount == 0)
  }

  @Test("Many messages can follow after the server has responded") func manyMessages() {
    var framer = MessageFramer()
    framer.forgetSent()
    for index in 0..<200 { framer.append([UInt8(index)]) }
    let wire = self.read(&framer, by: 13)
    #expect(wire == (0..<200).flatMap { [0, 0, 0, 0, 1, UInt8($0)] })
  }
}
