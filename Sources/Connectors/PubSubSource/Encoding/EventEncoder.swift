package import Avro
package import JSON
internal import Pipeline
internal import SchemaStore

/// Creates payloads of events from JSON, as the service would send them.
///
/// For a change event, fills in what the author of the JSON need not provide: omitted members of
/// the header, and the bitmaps of an update, which follow from the members that are present.
package struct EventEncoder {
  /// The service's ID of the schema, or the ID that it would assign.
  package let schemaID: String
  private let datum: DatumEncoder
  /// Nil for platform events.
  private let header: HeaderCompletion?
  /// The fields of an event.
  package let fieldNames: Set<String>

  /// - Parameters:
  ///   - json: the Avro schema of the events.
  ///   - schemaID: the service's ID of the schema, for errors; nil without a service.
  ///   - hasBase64: bytes are base64, as in exported lines; otherwise one character each.
  ///   - limits: the limits of one event in Avro.
  /// - Throws: code `schema` for a text that is not the schema of a record.
  package init(
    json: String, topic: String, schemaID: String? = nil, hasBase64: Bool = false,
    limits: EncodeLimits = EncodeLimits()
  ) throws(EventDecodingError) {
    func mistake(_ reason: String, cause: (any Error)? = nil) -> EventDecodingError {
      EventDecodingError(
        code: .schema, reason: reason, path: "", topic: topic,
        schemaID: schemaID ?? "", cause: cause)
    }
    let schema: Schema
    do {
      schema = try Schema(parsing: Array(json.utf8))
    } catch {
      throw mistake("\(error)", cause: error)
    }
    guard case .record(let fields) = schema[schema.root].kind else {
      throw mistake("the event's schema is not a record")
    }
    self.schemaID = schemaID ?? schema.serviceID ?? "schema"
    self.datum = DatumEncoder(
      schema, bytes: hasBase64 ? .base64 : .characters, limits: limits)
    self.fieldNames = Set(fields.map(\.name))
    var isChangeEvent = false
    if let first = fields.first, first.name == EventLayout.headerName,
      case .record = schema[first.type].kind
    {
      isChangeEvent = true
    }
    self.header = isChangeEvent ? HeaderCompletion(schema, fields: fields) : nil
  }

  /// The Avro binary of an event.
  ///
  /// - Parameters:
  ///   - value: an object with the fields that the event has.
  ///   - path: JSON pointer of the value in its document.
  /// - Returns: the bytes, which are useless if mistakes were reported.
  package func payload(_ value: JSONValue, path: String, mistakes: JSONMistakes) -> [UInt8] {
    self.datum.encode(
      self.header?.complete(value, path: path, mistakes: mistakes) ?? value, path: path,
      mistakes: mistakes)
  }
}

/// Fills in the header of a change event.
///
/// An UPDATE changes the fields in its JSON, and nulls those that are null there. Existing lists of
/// changed, nulled and diff fields are kept; they may contain field names instead of bitmaps.
private struct HeaderCompletion {
  private struct Field {
    var index: Int
    /// The places of a record's fields, by name.
    var children: [String: Int] = [:]
  }

  /// The marked fields of an event, by place.
  private struct Marks {
    var topLevel: Set<Int> = []
    /// By the place of the compound field.
    var nested: [Int: Set<Int>] = [:]

    var entries: [JSONValue] {
      let first =
        self.topLevel.isEmpty ? [] : [ChangedFieldBitmap.text(of: self.topLevel, parent: nil)]
      let rest = self.nested.sorted { $0.key < $1.key }.map {
        ChangedFieldBitmap.text(of: $0.value, parent: $0.key)
      }
      return (first + rest).map { .string($0) }
    }
  }

  private static let lists = ["nulledFields", "diffFields", "changedFields"]

  private let entity: String
  /// Fields of the header.
  private let names: Set<String>
  /// Fields of the event, by name.
  private let fields: [String: Field]

  init(_ schema: Schema, fields: [Schema.Field]) {
    self.entity = TopicName.entity(ofChangeEvent: schema[schema.root].name?.name ?? "")
    var byName: [String: Field] = [:]
    for (index, field) in fields.enumerated() {
      let children = schema.recordFields(of: field.type) ?? []
      byName[field.name] = Field(
        index: index,
        children: Dictionary(
          children.enumerated().map { ($0.element.name, $0.offset) }, uniquingKeysWith: { $1 }))
    }
    self.names = Set(byName[EventLayout.headerName]?.children.keys.map { $0 } ?? [])
    byName[EventLayout.headerName] = nil
    self.fields = byName
  }

  func complete(_ value: JSONValue, path: String, mistakes: JSONMistakes) -> JSONValue {
    guard var members = value.members,
      let place = members.firstIndex(where: { $0.name == EventLayout.headerName }),
      var header = members[place].value.members
    else { return value }
    let path = JSONReader.path(path, EventLayout.headerName)
    for index in header.indices where Self.lists.contains(header[index].name) {
      header[index].value = self.bitmaps(
        header[index].value, path: JSONReader.path(path, header[index].name), mistakes)
    }
    let isUpdate = header.contains { $0.name == "changeType" && $0.value.string == "UPDATE" }
    let defaults: [(name: String, value: JSONValue)] = [
      ("entityName", .string(self.entity)), ("changeOrigin", ""), ("transactionKey", ""),
      ("sequenceNumber", 1), ("commitTimestamp", 0), ("commitNumber", 1), ("commitUser", ""),
      ("nulledFields", isUpdate ? self.marks(of: members) { $0.content == .null } : []),
      ("diffFields", []), ("changedFields", isUpdate ? self.marks(of: members) { _ in true } : []),
    ]
    for (name, value) in defaults
    where self.names.contains(name) && !header.contains(where: { $0.name == name }) {
      header.append(JSONMember(name, value))
    }
    members[place].value.content = .object(header)
    var value = value
    value.content = .object(members)
    return value
  }

  /// The bitmaps of an event's selected members, including those of compound fields.
  private func marks(of members: [JSONMember], where counts: (JSONValue) -> Bool) -> JSONValue {
    var marks = Marks()
    for member in members {
      guard let field = self.fields[member.name] else { continue }
      if !field.children.isEmpty, let parts = member.value.members {
        for part in parts where counts(part.value) {
          if let child = field.children[part.name] {
            marks.nested[field.index, default: []].insert(child)
          }
        }
      } else if counts(member.value) {
        marks.topLevel.insert(field.index)
      }
    }
    return .array(marks.entries)
  }

  /// The field names for messages, in the order of the schema.
  private var fieldNames: String {
    listing(self.fields.sorted { $0.value.index < $1.value.index }.map(\.key))
  }

  /// A list of the header, with field names replaced by bitmaps.
  private func bitmaps(_ list: JSONValue, path: String, _ mistakes: JSONMistakes) -> JSONValue {
    guard let entries = list.array else { return list }
    var marks = Marks()
    var kept: [JSONValue] = []
    for (index, entry) in entries.enumerated() {
      guard let name = entry.string, !Self.isBitmap(name) else {
        kept.append(entry)
        continue
      }
      let parts = name.split(separator: ".", maxSplits: 1).map(String.init)
      let field = parts.first.flatMap { self.fields[$0] }
      if parts.count == 1, let field {
        marks.topLevel.insert(field.index)
      } else if parts.count == 2, let field, let child = field.children[parts[1]] {
        marks.nested[field.index, default: []].insert(child)
      } else {
        mistakes.append(
          JSONMistake(
            path: "\(path)/\(index)", position: entry.position,
            message: "\(entry.quoted) is neither a field of the schema nor a bitmap; known: "
              + self.fieldNames))
      }
    }
    var list = list
    list.content = .array(kept + marks.entries)
    return list
  }

  private static func isBitmap(_ text: String) -> Bool {
    var text = text
    return text.withUTF8 { (try? ChangedFieldBitmap($0)) != nil }
  }
}
