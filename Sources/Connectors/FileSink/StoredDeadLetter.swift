internal import Bytes
package import JSON
package import Pipeline

/// A dead letter as stored in its file.
package struct StoredDeadLetter: Sendable, Equatable {
  /// Identifies a letter within a pipeline: `OpportunityChangeEvent-e1-42`, topic, epoch and
  /// ordinal of the event. Stable, and printable whatever the topic's name.
  package struct ID: Hashable, Sendable, CustomStringConvertible {
    package var description: String

    package init(_ text: String) { self.description = text }

    package init(topic: String, epoch: Int, ordinal: Int64) {
      self.description = "\(SegmentName.topicPart(topic))-e\(epoch)-\(ordinal)"
    }
  }

  package var id: ID
  /// Whether the payload is present; the event cannot be restored without it.
  package var hasPayload: Bool
  /// The letter that `DeadLetterFile` has taken; without its payload if that is sealed.
  package var letter: DeadLetter
  /// The sealed payload, if it has to be opened first.
  package var sealed: SealedPayload?
  /// When it was written, `2026-02-17T04:03:15.000Z`.
  package var time: String
  /// The line as it is in the file.
  package var json: JSONValue

  /// The size of the payload; nil if there is none.
  package var payloadByteCount: Int? {
    self.sealed?.byteCount ?? (self.hasPayload ? self.letter.payload.count : nil)
  }

  /// `undecodable`, `unprocessable` or `refused`.
  package var kind: String { self.letter.kind }

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
    if let text = json["sealed"]?.string {
      guard payload == nil, let bytes = [UInt8](base64: text), let keyID = json["key_id"]?.string,
        let sealed = SealedPayload(bytes: bytes, keyID: keyID)
      else { return nil }
      self.sealed = sealed
    }
    self.hasPayload = payload != nil || self.sealed != nil
    self.time = time
    self.json = json
    self.letter = DeadLetter(
      topic: topic, replayID: replayID, eventID: eventID, schemaID: schemaID, payload: bytes,
      reason: reason, fieldPath: json["field_path"]?.string,
      byteOffset: json["offset"]?.integer.map { Int($0) },
      refusal: Self.refusal(json, reason: reason),
      isUnprocessable: json["kind"]?.string == DeadLetter.unprocessable, epoch: Int(epoch),
      ordinal: ordinal)
  }

  private static func refusal(_ json: JSONValue, reason: String) -> DeadLetter.Refusal? {
    if json["kind"]?.string == "refused", let sink = json["sink"]?.string {
      var refusal = DeadLetter.Refusal(
        sink: sink, column: json["column"]?.string, sqlState: json["sqlstate"]?.string)
      refusal.otherSinks = (json["other_sinks"]?.array ?? []).compactMap(\.string)
      return refusal
    }
    // Earlier versions stored the sink only in the reason.
    guard json["kind"] == nil, reason.hasPrefix("sink '") else { return nil }
    return DeadLetter.Refusal(sink: String(reason.dropFirst(6).prefix { $0 != "'" }))
  }
}
