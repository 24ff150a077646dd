import FileSink
import JSON
import Pipeline
import PubSubAPI
import PubSubSource
import RESTSource
import SalesforceREST

/// The columns of a topic's events, as they would arrive, and the fields of the object that no event
/// has.
struct TopicFields: Equatable {
  struct Field: Equatable {
    var name: String
    /// The name in the event, with a point before the part of a compound field.
    var path: String
    /// As in `_columns.json`; nil for a field that no event has.
    var type: String?
    /// `Data:Currency` and the like, from the schema; of a field that no event has, its type in the
    /// org, such as `currency`.
    var salesforceType: String?
    /// As Setup shows it; nil if it is not known.
    var label: String?
    /// Whether the run-as user may read the field; nil if it is not known.
    var isReadable: Bool?
    /// Its value can change without an event.
    var isBlind = false
  }

  var topic: String
  var schemaID: String
  /// The fields of events in their order, then those that no event has.
  var fields: [Field] = []

  /// - Parameters:
  ///   - layout: the layout of the events as decoded, before any stage.
  ///   - object: the object or platform event as the run-as user sees it; nil if it is not known.
  ///   - naming: of the parts of compound fields.
  /// - Throws: `TransformError` if two columns would have the same name.
  init(_ layout: RecordLayout, _ object: ObjectDescription?, naming: FlattenNaming) throws {
    (self.topic, self.schemaID) = (layout.topic, layout.schemaID)
    let isChange = layout.family == .changeEvent
    let access = object.map { FieldAccess.known(layout.fieldNames, in: $0) } ?? [:]
    for column in try Flatten(naming: naming).layout(for: layout).columns where !column.isMetadata {
      let path = column.path.joined(separator: ".")
      let described = object?.field(Self.describedName(column.path))
      self.fields.append(
        Field(
          name: column.name, path: path, type: column.content.typeName,
          salesforceType: column.salesforceType, label: described?.label,
          isReadable: Self.isReadable(access[path], isChange: isChange),
          isBlind: access[path] == .calculated))
    }
    guard isChange, let object else { return }
    let blind = BlindFields(layout, object)
    let known = Set(self.fields.map(\.path))
    for name in blind.calculated + blind.notCarried where !known.contains(name) {
      let described = object.field(name)
      self.fields.append(
        Field(
          name: name, path: name, salesforceType: described?.type, label: described?.label,
          isReadable: true, isBlind: true))
    }
  }

  /// The name in REST of a field of the schema (ChangeEvents.md#compound-fields).
  private static func describedName(_ path: [String]) -> String {
    guard path.count == 2 else { return path.joined(separator: ".") }
    return FlattenNaming.sobject.name(of: path[1], in: path[0])
  }

  /// Platform events have no field-level security, and REST lacks some fields whoever asks.
  private static func isReadable(_ access: FieldAccess?, isChange: Bool) -> Bool? {
    switch access {
    case .readable, .calculated: true
    case .hidden: isChange ? false : nil
    case .unreadable, nil: nil
    }
  }

  /// - Parameter naming: of the parts of compound fields.
  /// - Returns: the fields; and why labels and rights are not known, if they are not.
  static func read(
    _ topic: String, naming: FlattenNaming = .path, _ connection: OrgConnection
  ) async throws -> (fields: Self, remark: String?) {
    let found = try await connection.subscribableTopic(topic)
    let schema = try await connection.service.schema(
      id: found.schemaID, credentials: try await connection.credentials.credentials())
    let layout = try AvroEventDecoder(
      json: schema.json, schemaID: found.schemaID, topic: topic, options: EventDecodingOptions()
    ).layout
    let object: ObjectDescription?
    var remark: String?
    do {
      object = try await connection.makeRESTClient().describe(layout.entity)
    } catch {
      object = nil
      remark =
        "labels, rights and fields without events are not known: \(RunFailure(error).message)"
    }
    return (try Self(layout, object, naming: naming), remark)
  }
}

extension TopicFields {
  /// A heading and a line per field.
  var text: String {
    TextTable.lines(
      [["COLUMN", "TYPE", "SALESFORCE TYPE", "READABLE", "LABEL", "REMARK"]]
        + self.fields.map { field in
          [
            field.name, field.type ?? "-", field.salesforceType ?? "-",
            field.isReadable.map { $0 ? "yes" : "no" } ?? "-", field.label ?? "-", field.remark,
          ]
        })
  }

  var json: JSONValue {
    func text(_ value: String?) -> JSONValue { JSONValue(value.map { .string($0) } ?? .null) }
    return [
      "topic": .string(self.topic), "schema_id": .string(self.schemaID),
      "fields": .array(
        self.fields.map { field in
          [
            "name": .string(field.name), "field": .string(field.path), "type": text(field.type),
            "salesforce_type": text(field.salesforceType), "label": text(field.label),
            "readable": JSONValue(field.isReadable.map { .boolean($0) } ?? .null),
            "blind": .boolean(field.isBlind),
          ]
        }),
    ]
  }
}

extension TopicFields.Field {
  fileprivate var remark: String {
    if self.isReadable == false { return "always empty: the run-as user may not read it" }
    guard self.isBlind else { return "" }
    return self.type == nil ? "not in events" : "formula: may change without an event"
  }
}
