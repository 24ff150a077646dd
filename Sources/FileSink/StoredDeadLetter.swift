public import JSON
public import Pipeline

/// A dead letter as its file holds it.
public struct StoredDeadLetter: Sendable, Equatable {
  /// Names a letter among all of a pipeline: `OpportunityChangeEvent-e1-42`, topic, epoch and ordinal
  /// of the event. Stable, and printable whatever the topic is called.
  public struct ID: Hashable, Sendable, CustomStringConvertible {
    public var description: String

    public init(_ text: String) { self.description = text }

    public init(topic: String, epoch: Int, ordinal: Int64) {
      self.description = "\(SegmentName.topicPart(topic))-e\(epoch)-\(ordinal)"
    }
  }

  public var id: ID
  /// Whether the payload is there; without it the event cannot be made again.
  public var hasPayload: Bool
  /// As `DeadLetterFile` was given it.
  public var letter: DeadLetter
  /// When it was written, `2026-02-17T04:03:15.000Z`.
  public var time: String
  /// The line as it is in the file.
  public var json: JSONValue

  /// `undecodable` or `refused`.
  public var kind: String { self.letter.refusal == nil ? "undecodable" : "refused" }

  /// - Returns: nil for a line that `DeadLetterFile` does not write.
  init?(json: JSONValue) {
    guard let topic = json["topic"]?.string, !topic.isEmpty,
      let replayID = json["replay_id"]?.string.flatMap({ ReplayID(hex: $0) }),
      let eventID = json["event_id"]?.string, let schemaID = json["schema_id"]?.string,
      let epoch = json["epoch"]?.integer, (1...TopicPosition.maxEpoch).contains(epoch),
      let ordinal = json["ordinal"]?.integer, (0...TopicPosition.maxOrdinal).contains(ordinal),
      let time = json["time"]?.string, let reason = json["reason"]?.string
    else { return nil }
    let payload = json["payload"]?.string
    var bytes: [UInt8] = []
    if let payload {
      guard let decoded = [UInt8](base64: payload) else { return nil }
      bytes = decoded
    }
    self.id = ID(topic: topic, epoch: Int(epoch), ordinal: ordinal)
    self.hasPayload = payload != nil
    self.time = time
    self.json = json
    self.letter = DeadLetter(
      topic: topic, replayID: replayID, eventID: eventID, schemaID: schemaID, payload: bytes,
      reason: reason, fieldPath: json["field_path"]?.string,
      byteOffset: json["offset"]?.integer.map { Int($0) },
      refusal: Self.refusal(json, reason: reason), epoch: Int(epoch), ordinal: ordinal)
  }

  private static func refusal(_ json: JSONValue, reason: String) -> DeadLetter.Refusal? {
    if json["kind"]?.string == "refused", let sink = json["sink"]?.string {
      return DeadLetter.Refusal(
        sink: sink, column: json["column"]?.string, sqlState: json["sqlstate"]?.string)
    }
    // Earlier versions said it in the reason alone.
    guard json["kind"] == nil, reason.hasPrefix("sink '") else { return nil }
    return DeadLetter.Refusal(sink: String(reason.dropFirst(6).prefix { $0 != "'" }))
  }
}

extension [UInt8] {
  /// Base64 with the standard alphabet and padding (RFC 4648 section 4); nil for anything else.
  init?(base64 text: String) {
    let digits = Array(text.utf8)
    guard digits.count.isMultiple(of: 4) else { return nil }
    let padding = digits.suffix(2).filter { $0 == UInt8(ascii: "=") }.count
    var bytes: [UInt8] = []
    bytes.reserveCapacity(digits.count / 4 * 3)
    var bits: UInt32 = 0
    for (index, digit) in digits.enumerated() {
      let value: UInt32
      switch digit {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = UInt32(digit) - 65
      case UInt8(ascii: "a")...UInt8(ascii: "z"): value = UInt32(digit) - 71
      case UInt8(ascii: "0")...UInt8(ascii: "9"): value = UInt32(digit) + 4
      case UInt8(ascii: "+"): value = 62
      case UInt8(ascii: "/"): value = 63
      case UInt8(ascii: "=") where index >= digits.count - padding: value = 0
      default: return nil
      }
      bits = bits << 6 | value
      if index % 4 == 3 {
        bytes.append(UInt8(truncatingIfNeeded: bits >> 16))
        bytes.append(UInt8(truncatingIfNeeded: bits >> 8))
        bytes.append(UInt8(truncatingIfNeeded: bits))
        bits = 0
      }
    }
    bytes.removeLast(padding)
    self = bytes
  }
}
