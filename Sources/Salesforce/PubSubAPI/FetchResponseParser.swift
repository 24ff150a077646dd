/// Parses a `FetchResponse`, or a `ManagedFetchResponse`, whose fields 1 to 4 are the same, into
/// ranges. One value per message.
struct FetchResponseParser: ~Copyable {
  typealias Field = FetchResponseView.Field

  private(set) var events: [FetchResponseView.Event] = []
  private(set) var latestReplayID = Field()
  private(set) var rpcID = Field()
  private(set) var pendingCredit: Int32 = 0
  private(set) var commitAnswer: FetchResponseView.CommitAnswer?
  private let maxEvents: Int
  /// Field 5 answers a commit; in a `FetchResponse` it is unknown.
  private let isManaged: Bool

  init(maxEvents: Int, isManaged: Bool = false) {
    self.maxEvents = maxEvents
    self.isManaged = isManaged
  }

  /// Groups and messages may nest this deep, as in SwiftProtobuf's default options.
  private static let maxDepth = 100

  mutating func readResponse(_ bytes: borrowing Span<UInt8>) throws(FetchResponseError) {
    var offset = 0
    let end = bytes.count
    while offset < end {
      let tag = try Self.readTag(bytes, &offset, end)
      switch tag {
      case .lengthDelimited(1):
        let body = try Self.readBody(bytes, &offset, end)
        guard self.events.count < self.maxEvents else {
          throw FetchResponseError(
            .limitExceeded, at: offset, "more than \(self.maxEvents) events in one response")
        }
        if self.events.isEmpty {
          // The number of events if all are as long as the first, and never more than a window.
          self.events.reserveCapacity(
            min(100, self.maxEvents, (end - offset) / max(1, body.count) + 1))
        }
        self.events.append(try Self.readConsumerEvent(bytes, body))
      case .lengthDelimited(2):
        self.latestReplayID = Field(try Self.readBody(bytes, &offset, end))
      case .lengthDelimited(3):
        self.rpcID = try Self.readString(bytes, &offset, end)
      case .varint(4):
        self.pendingCredit = Int32(truncatingIfNeeded: try Self.readVarint(bytes, &offset, end))
      case .lengthDelimited(5) where self.isManaged:
        // A second occurrence merges into the first.
        var answer = self.commitAnswer ?? FetchResponseView.CommitAnswer()
        let body = try Self.readBody(bytes, &offset, end)
        try Self.readCommitAnswer(bytes, body, into: &answer)
        self.commitAnswer = answer
      default:
        try Self.skip(tag, bytes, &offset, end, depth: 1)
      }
    }
  }

  private static func readCommitAnswer(
    _ bytes: borrowing Span<UInt8>, _ range: Range<Int>,
    into answer: inout FetchResponseView.CommitAnswer
  ) throws(FetchResponseError) {
    var offset = range.lowerBound
    let end = range.upperBound
    while offset < end {
      let tag = try Self.readTag(bytes, &offset, end)
      switch tag {
      case .lengthDelimited(1):
        answer.requestID = try Self.readString(bytes, &offset, end)
      case .lengthDelimited(2):
        answer.replayID = Field(try Self.readBody(bytes, &offset, end))
      case .lengthDelimited(3):
        var failure = answer.failure ?? FetchResponseView.CommitAnswer.Failure()
        let body = try Self.readBody(bytes, &offset, end)
        try Self.readFailure(bytes, body, into: &failure)
        answer.failure = failure
      case .varint(4):
        answer.processedAt = Int64(bitPattern: try Self.readVarint(bytes, &offset, end))
      default:
        try Self.skip(tag, bytes, &offset, end, depth: 2)
      }
    }
  }

  private static func readFailure(
    _ bytes: borrowing Span<UInt8>, _ range: Range<Int>,
    into failure: inout FetchResponseView.CommitAnswer.Failure
  ) throws(FetchResponseError) {
    var offset = range.lowerBound
    let end = range.upperBound
    while offset < end {
      let tag = try Self.readTag(bytes, &offset, end)
      switch tag {
      case .varint(1):
        failure.code = Int32(truncatingIfNeeded: try Self.readVarint(bytes, &offset, end))
      case .lengthDelimited(2):
        failure.message = try Self.readString(bytes, &offset, end)
      default:
        try Self.skip(tag, bytes, &offset, end, depth: 3)
      }
    }
  }

  private static func readConsumerEvent(
    _ bytes: borrowing Span<UInt8>, _ range: Range<Int>
  ) throws(FetchResponseError) -> FetchResponseView.Event {
    var event = FetchResponseView.Event()
    var offset = range.lowerBound
    let end = range.upperBound
    while offset < end {
      let tag = try Self.readTag(bytes, &offset, end)
      switch tag {
      case .lengthDelimited(1):
        // A second occurrence merges into the first.
        try Self.readProducerEvent(bytes, try Self.readBody(bytes, &offset, end), into: &event)
      case .lengthDelimited(2):
        event.replayID = Field(try Self.readBody(bytes, &offset, end))
      default:
        try Self.skip(tag, bytes, &offset, end, depth: 2)
      }
    }
    return event
  }

  private static func readProducerEvent(
    _ bytes: borrowing Span<UInt8>, _ range: Range<Int>, into event: inout FetchResponseView.Event
  ) throws(FetchResponseError) {
    var offset = range.lowerBound
    let end = range.upperBound
    while offset < end {
      let tag = try Self.readTag(bytes, &offset, end)
      switch tag {
      case .lengthDelimited(1):
        event.eventID = try Self.readString(bytes, &offset, end)
      case .lengthDelimited(2):
        event.schemaID = try Self.readString(bytes, &offset, end)
      case .lengthDelimited(3):
        event.payload = Field(try Self.readBody(bytes, &offset, end))
      case .lengthDelimited(4):
        try Self.checkHeader(bytes, try Self.readBody(bytes, &offset, end))
      default:
        try Self.skip(tag, bytes, &offset, end, depth: 3)
      }
    }
  }

  /// Headers are reserved by the service, so they are checked but not kept.
  private static func checkHeader(
    _ bytes: borrowing Span<UInt8>, _ range: Range<Int>
  ) throws(FetchResponseError) {
    var offset = range.lowerBound
    let end = range.upperBound
    while offset < end {
      let tag = try Self.readTag(bytes, &offset, end)
      if tag == .lengthDelimited(1) {
        _ = try Self.readString(bytes, &offset, end)
      } else {
        try Self.skip(tag, bytes, &offset, end, depth: 4)
      }
    }
  }
}

// MARK: - Protobuf encoding (protobuf.dev/programming-guides/encoding)

extension FetchResponseParser {
  /// How often a message has its field 1, up to where it is malformed.
  static func messageCount(of bytes: borrowing Span<UInt8>) -> Int {
    var count = 0
    var offset = 0
    let end = bytes.count
    do throws(FetchResponseError) {
      while offset < end {
        let tag = try Self.readTag(bytes, &offset, end)
        if tag == .lengthDelimited(1) { count += 1 }
        try Self.skip(tag, bytes, &offset, end, depth: 1)
      }
    } catch {}
    return count
  }

  /// Wire type and field number.
  private struct Tag: Equatable {
    var rawValue: UInt32
    var wireType: UInt32 { self.rawValue & 7 }
    var fieldNumber: UInt32 { self.rawValue >> 3 }

    static func varint(_ number: UInt32) -> Self { Self(rawValue: number << 3) }
    static func lengthDelimited(_ number: UInt32) -> Self { Self(rawValue: number << 3 | 2) }
    static func ~= (pattern: Self, value: Self) -> Bool { pattern.rawValue == value.rawValue }
  }

  /// - Parameter maxBytes: 32 bits fit into 5 bytes; SwiftProtobuf accepts more only inside groups.
  @inline(__always)
  private static func readTag(
    _ bytes: borrowing Span<UInt8>, _ offset: inout Int, _ end: Int, maxBytes: Int = 5
  ) throws(FetchResponseError) -> Tag {
    let start = offset
    let value = try Self.readVarint(bytes, &offset, end)
    guard value < UInt64(UInt32.max), value > 7, value & 7 < 6, offset - start <= maxBytes else {
      throw FetchResponseError(.malformed, at: start, "no tag of protobuf")
    }
    return Tag(rawValue: UInt32(truncatingIfNeeded: value))
  }

  @inline(__always)
  private static func readVarint(
    _ bytes: borrowing Span<UInt8>, _ offset: inout Int, _ end: Int
  ) throws(FetchResponseError) -> UInt64 {
    guard offset < end else { throw Self.truncated(at: offset) }
    let first = bytes[offset]
    if first < 0x80 {
      offset += 1
      return UInt64(first)
    }
    return try Self.readLongVarint(bytes, &offset, end)
  }

  @inline(never)
  private static func readLongVarint(
    _ bytes: borrowing Span<UInt8>, _ offset: inout Int, _ end: Int
  ) throws(FetchResponseError) -> UInt64 {
    var value: UInt64 = 0
    // 10 bytes hold 64 bits; bits of the tenth byte above bit 63 are dropped.
    for shift in stride(from: UInt64(0), through: 63, by: 7) {
      guard offset < end else { throw Self.truncated(at: offset) }
      let byte = bytes[offset]
      offset += 1
      value |= UInt64(byte & 0x7f) &<< shift
      if byte < 0x80 { return value }
    }
    throw FetchResponseError(.malformed, at: offset, "a varint of more than 10 bytes")
  }

  @inline(__always)
  private static func readBody(
    _ bytes: borrowing Span<UInt8>, _ offset: inout Int, _ end: Int
  ) throws(FetchResponseError) -> Range<Int> {
    let length = try Self.readVarint(bytes, &offset, end)
    guard length <= UInt64(end - offset) else {
      throw FetchResponseError(
        .truncated, at: offset, "a field of \(length) bytes, \(end - offset) left")
    }
    let start = offset
    offset += Int(length)
    return start..<offset
  }

  @inline(__always)
  private static func readString(
    _ bytes: borrowing Span<UInt8>, _ offset: inout Int, _ end: Int
  ) throws(FetchResponseError) -> Field {
    let body = try Self.readBody(bytes, &offset, end)
    do {
      _ = try UTF8Span(validating: bytes.extracting(body))
    } catch {
      throw FetchResponseError(.invalidUTF8, at: body.lowerBound, "a string that is not UTF-8")
    }
    return Field(body)
  }

  /// Skips the value of an unknown field.
  ///
  /// - Parameter depth: the number of enclosing messages and groups.
  @inline(never)
  private static func skip(
    _ tag: Tag, _ bytes: borrowing Span<UInt8>, _ offset: inout Int, _ end: Int, depth: Int
  ) throws(FetchResponseError) {
    // Numbers of the open groups. This stack is on the heap, so that no message can exhaust the
    // thread's stack.
    var groups: [UInt32] = []
    var tag = tag
    while true {
      switch tag.wireType {
      case 0: _ = try Self.readVarint(bytes, &offset, end)
      case 1: try Self.advance(&offset, by: 8, end)
      case 2: _ = try Self.readBody(bytes, &offset, end)
      case 3:
        guard depth + groups.count < Self.maxDepth else {
          throw FetchResponseError(
            .limitExceeded, at: offset, "groups nested deeper than \(Self.maxDepth)")
        }
        groups.append(tag.fieldNumber)
      case 4:
        guard groups.popLast() == tag.fieldNumber else {
          throw FetchResponseError(.malformed, at: offset, "the end of a group that is not open")
        }
      default: try Self.advance(&offset, by: 4, end)
      }
      if groups.isEmpty { return }
      tag = try Self.readTag(bytes, &offset, end, maxBytes: 10)
    }
  }

  private static func advance(
    _ offset: inout Int, by count: Int, _ end: Int
  ) throws(FetchResponseError) {
    guard end - offset >= count else { throw Self.truncated(at: offset) }
    offset += count
  }

  private static func truncated(at offset: Int) -> FetchResponseError {
    FetchResponseError(.truncated, at: offset, "the message ends inside a field")
  }
}
