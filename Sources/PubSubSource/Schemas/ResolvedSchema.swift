internal import Avro
internal import Pipeline

/// What is known of a schema ID: the schema, or why events that name it cannot be decoded.
///
/// Responses hold the schemas that they need, so that nothing which is dropped elsewhere can be
/// missing when they are decoded.
final class ResolvedSchema: Sendable {
  let id: [UInt8]
  let content: Result<Schema, UndecodableEvent>
  /// The size of its text, and something for each; 0 for one that was not asked for.
  let byteCount: Int
  /// API name of the object or event, as layouts have it; nil for a schema that cannot be used.
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
