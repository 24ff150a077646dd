/// A received `FetchResponse`: its bytes, and where each event is in them.
///
/// Accepts and refuses the same messages as SwiftProtobuf (fields in any order, the last of a
/// repeated singular field counts, repeated sub-messages merge, unknown fields and groups are
/// skipped, strings are valid UTF-8), but copies nothing: strings and payloads are ranges of
/// `bytes`. Field numbers: TheService.md#wire-format.
public struct FetchResponseView: Sendable {
  /// A field of type string or bytes: a range of `bytes`; empty if the field is missing.
  public struct Field: Sendable, Hashable {
    // 32 bits, because a message is shorter than 4 GiB, and events are kept by the hundred.
    private var start: UInt32 = 0
    private var length: UInt32 = 0

    init() {}

    init(_ range: Range<Int>) {
      self.start = UInt32(truncatingIfNeeded: range.lowerBound)
      self.length = UInt32(truncatingIfNeeded: range.count)
    }

    /// In bytes from the start of the message.
    public var offset: Int { Int(self.start) }
    /// In bytes.
    public var count: Int { Int(self.length) }
    /// The field's range in the message.
    public var range: Range<Int> { self.offset..<self.offset + self.count }
    /// Whether the field is empty or missing.
    public var isEmpty: Bool { self.length == 0 }
  }

  /// The fields of one event.
  public struct Event: Sendable, Hashable {
    /// `ProducerEvent.id`, valid UTF-8.
    public internal(set) var eventID = Field()
    /// ID of the schema with which the payload was written, valid UTF-8.
    public internal(set) var schemaID = Field()
    /// Avro binary of one record.
    public internal(set) var payload = Field()
    /// The event's place in the stream: 1 to 1,024 opaque bytes.
    public internal(set) var replayID = Field()
  }

  /// The answer of a managed subscription to a commit.
  public struct CommitAnswer: Sendable, Hashable {
    /// Why the position could not be stored. The call continues.
    public struct Failure: Sendable, Hashable {
      /// A value of `ErrorCode`; 2 is a failed commit.
      public internal(set) var code: Int32 = 0
      /// Valid UTF-8.
      public internal(set) var message = Field()
    }

    /// The commit that is answered, along with all earlier ones; valid UTF-8.
    public internal(set) var requestID = Field()
    /// The position that the service stored, or would have stored.
    public internal(set) var replayID = Field()
    /// Why the commit failed; nil if it succeeded.
    public internal(set) var failure: Failure?
    /// When the service received the commit, milliseconds since 1970.
    public internal(set) var processedAt: Int64 = 0
  }

  /// The whole message as it was received.
  public let bytes: [UInt8]
  /// In the order of the stream; empty in a keepalive.
  public private(set) var events: [Event]
  /// The position of the subscription after this response; may be empty.
  public let latestReplayIDField: Field
  /// An ID for the service's support; valid UTF-8.
  public let rpcID: Field
  /// Credit still open after this response, according to the service.
  public let pendingCredit: Int
  /// The service's answer to a commit, on managed subscriptions only; nil if the response has none.
  public let commitAnswer: CommitAnswer?

  /// - Parameters:
  ///   - bytes: one message without its gRPC prefix.
  ///   - isManaged: a `ManagedFetchResponse`, which may answer a commit.
  ///   - maxEvents: more are refused, so that a small message cannot ask for much memory. A stream
  ///     never has more than 100 events outstanding, and groups of equal replay IDs are short.
  public init(
    parsing bytes: [UInt8], isManaged: Bool = false, maxEvents: Int = 16_384
  ) throws(FetchResponseError) {
    var parser = FetchResponseParser(maxEvents: maxEvents, isManaged: isManaged)
    guard bytes.count < Int(Int32.max) else {
      throw FetchResponseError(.limitExceeded, at: 0, "a message of \(bytes.count) bytes")
    }
    try parser.readResponse(bytes.span)
    self.bytes = bytes
    self.events = parser.events
    self.latestReplayIDField = parser.latestReplayID
    self.rpcID = parser.rpcID
    self.pendingCredit = Int(parser.pendingCredit)
    self.commitAnswer = parser.commitAnswer
  }

  /// The same response without its first events.
  public func dropFirstEvents(_ count: Int) -> Self {
    var rest = self
    rest.events.removeFirst(min(count, rest.events.count))
    return rest
  }

  /// Whether the response only says that the stream is alive, and its position.
  public var isKeepalive: Bool { self.events.isEmpty }

  /// The longest accepted replay ID. The service's have 10 bytes.
  public static var maxReplayIDByteCount: Int { 1024 }

  /// Checks that every event has a replay ID that can be stored and sent back. Without one, the
  /// stream could not be resumed after the event.
  func checkReplayIDs() throws(FetchResponseError) {
    for (index, event) in self.events.enumerated() {
      guard !event.replayID.isEmpty else {
        throw FetchResponseError(
          .noReplayID, at: event.payload.offset,
          "event \(index + 1) of \(self.events.count) has no replay ID")
      }
      try Self.check(event.replayID)
    }
    try Self.check(self.latestReplayIDField)
    if let answer = self.commitAnswer { try Self.check(answer.replayID) }
  }

  private static func check(_ replayID: Field) throws(FetchResponseError) {
    guard replayID.count <= Self.maxReplayIDByteCount else {
      throw FetchResponseError(
        .limitExceeded, at: replayID.offset,
        "a replay ID of \(replayID.count) bytes; the limit is \(Self.maxReplayIDByteCount)")
    }
  }

  /// The text of a field with valid UTF-8.
  public func string(_ field: Field) -> String {
    String(decoding: self.bytes[field.range], as: UTF8.self)
  }

  /// The bytes of a field.
  public subscript(_ field: Field) -> ArraySlice<UInt8> { self.bytes[field.range] }
}

/// A `FetchResponse` is not a protobuf message or cannot be part of a stream.
public struct FetchResponseError: Error, Sendable, Hashable {
  /// What is wrong with a message.
  public struct Code: Hashable, Sendable {
    private enum Value { case truncated, malformed, invalidUTF8, limitExceeded, noReplayID }
    private var value: Value
    private init(_ value: Value) { self.value = value }
    /// The message ended inside a field.
    public static var truncated: Self { Self(.truncated) }
    /// A tag, varint or group that protobuf does not allow.
    public static var malformed: Self { Self(.malformed) }
    /// A string field is not valid UTF-8.
    public static var invalidUTF8: Self { Self(.invalidUTF8) }
    /// More events, deeper groups or longer IDs than are accepted.
    public static var limitExceeded: Self { Self(.limitExceeded) }
    /// An event that has no place in the stream.
    public static var noReplayID: Self { Self(.noReplayID) }
  }
  /// What is wrong.
  public var code: Code
  /// In bytes from the start of the message.
  public var offset: Int
  /// What is wrong, with counts but without contents.
  public var message: String

  init(_ code: Code, at offset: Int, _ message: String) {
    self.code = code
    self.offset = offset
    self.message = message
  }
}

extension FetchResponseError: CustomStringConvertible {
  public var description: String {
    "FetchResponse unreadable at byte \(self.offset): \(self.message)"
  }
}
