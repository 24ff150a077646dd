internal import Avro
internal import Pipeline

/// The schema for a schema ID, or why events with this ID cannot be decoded.
///
/// Responses hold the schemas that they need, so that no schema that was dropped elsewhere is
/// missing when they are decoded.
final class ResolvedSchema: Sendable {
  let id: [UInt8]
  let content: Result<Schema, UndecodableEvent>
  /// The size of its text plus an overhead; 0 for a schema that was not requested.
  let byteCount: Int
  /// API name of the object or event, as in layouts; nil for an unusable schema.
  let entity: String?

  init(_ id: [UInt8], _ content: Result<Schema, UndecodableEvent>, byteCount: Int) {
    self.id = id
    self.content = content
    self.byteCount = byteCount
    let schema = try? content.get()
    self.entity = schema.flatMap { $0[$0.root].name?.name }
      .map { TopicName.entity(ofChangeEvent: $0) }
  }
}
