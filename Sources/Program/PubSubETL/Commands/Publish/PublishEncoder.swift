internal import Bytes
import JSON
import Pipeline
import PubSubAPI
import PubSubSource

/// Creates events of a topic from lines of JSON.
struct PublishEncoder {
  struct Options: Sendable {
    /// The member with the event's ID; nil for `EventUuid`, which a line may omit.
    var idField: String?
    /// The value of `CreatedById` for lines without one.
    var createdBy: String?
  }

  let schemaID: String
  private let encoder: EventEncoder
  private let options: Options

  private static let defaultIDField = "EventUuid"
  private static let maxIDBytes = 255
  /// The maximum number of reported mistakes per line.
  private static let maxMistakes = 5
  /// The maximum number of bytes kept of a line's mistakes, because all lines of a batch may have
  /// some; twice what is shown.
  private static let maxReasonBytes = 2000

  /// - Throws: `EventDecodingError` of code `schema`.
  init(json: String, schemaID: String, topic: String, options: Options) throws {
    self.schemaID = schemaID
    self.encoder = try EventEncoder(
      json: json, topic: topic, schemaID: schemaID, hasBase64: true,
      limits: PublishLimits.encoding)
    self.options = options
  }

  /// Sets the line's event, or its outcome if the line is malformed.
  func encode(_ line: inout PublishLine) {
    line.encodings += 1
    line.event = nil
    let mistakes = JSONMistakes()
    do throws(JSONError) {
      let limits = JSONLimits(depth: 64, byteCount: PublishLimits.lineBytes, valueCount: 200_000)
      let value = try JSONValue(parsing: line.text, limits: limits)
      if let members = value.members {
        line.isObject = true
        self.encode(members, at: value.position, &line, mistakes)
      } else {
        mistakes.append(
          JSONMistake(
            path: "", position: value.position,
            message: "expected an object with the fields of the event, found \(value.kind)"))
      }
    } catch {
      let reason = "column \(error.position.column): \(error.message)"
      line.outcome = line.refused(reason.bounded(byteCount: Self.maxReasonBytes))
      return
    }
    guard !mistakes.isEmpty else { return }
    var reasons = mistakes.all.prefix(Self.maxMistakes).map {
      $0.description.bounded(byteCount: Self.maxReasonBytes)
    }
    let rest = mistakes.all.count - reasons.count
    if rest > 0 { reasons.append("\(rest) more") }
    line.event = nil
    line.outcome = line.refused(
      reasons.joined(separator: "; ").bounded(byteCount: Self.maxReasonBytes))
  }

  private func encode(
    _ members: [JSONMember], at position: JSONValue.Position, _ line: inout PublishLine,
    _ mistakes: JSONMistakes
  ) {
    var members = members
    let field = self.options.idField ?? Self.defaultIDField
    let given = members.first { $0.name == field }
    if !self.encoder.fieldNames.contains(field) { members.removeAll { $0.name == field } }
    let id = line.id ?? self.id(given?.value, field, position, mistakes)
    line.id = id
    self.complete(&members, position, mistakes)
    let payload = self.encoder.payload(
      JSONValue(.object(members), at: position), path: "", mistakes: mistakes)
    guard mistakes.isEmpty, let id else { return }
    guard payload.count <= PublishLimits.eventBytes else {
      mistakes.append(
        JSONMistake(
          path: "", position: position,
          message: "the event has \(payload.count) bytes; the service takes at most "
            + "\(PublishLimits.eventBytes)"))
      return
    }
    line.event = EventToPublish(id: id, schemaID: self.schemaID, payload: payload)
  }

  /// The ID in the line, or a new one; nil for a mistake.
  private func id(
    _ value: JSONValue?, _ field: String, _ position: JSONValue.Position, _ mistakes: JSONMistakes
  ) -> String? {
    func report(_ message: String) {
      mistakes.append(
        JSONMistake(
          path: JSONReader.path("", field), position: value?.position ?? position,
          message: message))
    }
    guard let value else {
      guard self.options.idField != nil else { return EventUUID.random() }
      report("is required: it holds the event's ID (--id-field)")
      return nil
    }
    guard let text = value.string, (1...Self.maxIDBytes).contains(text.utf8.count),
      text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
    else {
      report("expected the event's ID: 1 to \(Self.maxIDBytes) visible ASCII characters")
      return nil
    }
    return text
  }

  /// Fills in fields that the org fills in for records, but not for published events
  /// (TheService.md#publishing).
  private func complete(
    _ members: inout [JSONMember], _ position: JSONValue.Position, _ mistakes: JSONMistakes
  ) {
    func lacks(_ name: String) -> Bool {
      self.encoder.fieldNames.contains(name) && !members.contains { $0.name == name }
    }
    if lacks("CreatedDate") {
      members.append(JSONMember("CreatedDate", .integer(UTCTime.now())))
    }
    guard lacks("CreatedById") else { return }
    // The service would accept empty text, but triggers and flows would not run.
    members.append(JSONMember("CreatedById", .string(self.options.createdBy ?? "")))
    if self.options.createdBy == nil {
      mistakes.append(
        JSONMistake(
          path: "/CreatedById", position: position,
          message: "is required: the login does not return the user's ID; add the member, or give "
            + "--created-by"))
    }
  }
}
