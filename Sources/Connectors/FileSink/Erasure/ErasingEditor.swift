internal import CSystem
internal import JSON
internal import Pipeline

/// Finds the lines about some records, and clears their values. The lines are not trusted.
protocol ErasingEditor {
  /// Returns what replaces a line; nil for one that stays as it is.
  ///
  /// - Parameters:
  ///   - line: without its line feed.
  ///   - number: from 1, for messages.
  /// - Throws: `SegmentLines.Fault` if the line cannot be judged.
  func edited(
    _ line: UnsafeBufferPointer<UInt8>, number: Int
  ) throws(SegmentLines.Fault) -> [UInt8]?
}

/// Clears lines of a sink: what is left says which record changed, when, how and by whom.
struct RecordEditor: ErasingEditor {
  private let records: [RecordID]
  /// The first 15 characters of each.
  private let texts: [[UInt8]]

  init(_ records: [RecordID]) {
    self.records = records
    self.texts = records.map { Array($0.description.utf8.prefix(15)) }
  }

  /// The members that stay.
  static let kept: Set<String> = [
    "_topic", "_replay_id", "_event_id", "_schema_id", "_kind", "_entity", "_change_type",
    "_record_id", "_commit_timestamp", "_commit_number", "_commit_user", "_transaction_key",
    "_sequence_number", "_change_origin", "_changed_fields", "_nulled_fields", "_diff_fields",
    ReadColumn.stamp, ReadColumn.readAt, ReadColumn.epoch, ReadColumn.ordinal,
  ]

  func edited(
    _ line: UnsafeBufferPointer<UInt8>, number: Int
  ) throws(SegmentLines.Fault) -> [UInt8]? {
    guard self.mayName(line) || !Self.has("\"_record_id\":", in: line) else { return nil }
    let limits = JSONLimits(byteCount: SegmentLines.maxLineByteCount)
    guard let json = try? JSONValue(parsing: Array(line), limits: limits),
      let members = json.members
    else { throw SegmentLines.Fault(line: number, reason: "it is not a JSON object") }
    guard let text = json["_record_id"]?.string else {
      // Lines about a whole object name no record.
      guard members.contains(where: { !Self.kept.contains($0.name) }) else { return nil }
      throw SegmentLines.Fault(
        line: number,
        reason:
          "it may be about the record, but has no _record_id, because a stage removes or changes it"
      )
    }
    guard let record = try? RecordID(text), self.records.contains(record) else { return nil }
    let kept = members.filter { Self.kept.contains($0.name) }
    guard kept.count < members.count else { return nil }
    return Array(JSONValue(.object(kept)).text(.compact).utf8)
  }

  /// Whether a line has the text of an ID, perhaps as the value of another field.
  private func mayName(_ line: UnsafeBufferPointer<UInt8>) -> Bool {
    self.texts.contains { text in
      text.withUnsafeBufferPointer { Self.has($0, in: line) }
    }
  }

  private static func has(_ text: StaticString, in line: UnsafeBufferPointer<UInt8>) -> Bool {
    text.withUTF8Buffer { Self.has($0, in: line) }
  }

  private static func has(
    _ text: UnsafeBufferPointer<UInt8>, in line: UnsafeBufferPointer<UInt8>
  ) -> Bool {
    guard let start = line.baseAddress, let text = text.baseAddress.map({ ($0, text.count) })
    else { return false }
    return c_memmem(start, line.count, text.0, text.1) != nil
  }
}

/// Changes the payloads of dead letters. A line without one says where the event was, and why it failed.
struct LetterEditor: ErasingEditor {
  /// The members for the payload of each.
  private let letters: [DeadLetterLedger.Key: [JSONMember]]

  init(_ letters: [DeadLetterLedger.Key: [JSONMember]]) { self.letters = letters }

  func edited(
    _ line: UnsafeBufferPointer<UInt8>, number: Int
  ) throws(SegmentLines.Fault) -> [UInt8]? {
    let limits = JSONLimits(byteCount: SegmentLines.maxLineByteCount)
    guard let json = try? JSONValue(parsing: Array(line), limits: limits),
      let letter = StoredDeadLetter(json: json)
    else { throw SegmentLines.Fault(line: number, reason: "it is not a dead letter") }
    guard letter.hasPayload, let members = self.letters[DeadLetterLedger.Key(letter)] else {
      return nil
    }
    let kept = (json.members ?? []).filter { !["payload", "sealed", "key_id"].contains($0.name) }
    return Array(JSONValue(.object(kept + members)).text(.compact).utf8)
  }
}
