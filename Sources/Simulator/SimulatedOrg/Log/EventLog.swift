/// The events that the org has published, by topic, and the schemas.
///
/// Confined to one thread at a time by its owner.
package final class EventLog {
  package private(set) var topics: [String: TopicLog] = [:]
  /// Names in the order of the catalogue.
  package let topicNames: [String]
  private let store: EventStore
  private var schemas: [String: EventSchema]

  /// - Parameters:
  ///   - createdAt: epoch milliseconds; not later than the first event.
  ///   - directory: for the nameless file that holds the events.
  package init(topics: [Topic], seed: UInt64, createdAt: Int64, directory: String) throws {
    self.store = try EventStore(directory: directory)
    self.topicNames = topics.map(\.name)
    var schemas: [String: EventSchema] = [:]
    for topic in topics {
      self.topics[topic.name] = TopicLog(topic: topic, seed: seed, createdAt: createdAt)
      for model in topic.members {
        for schema in model.versions { schemas[schema.id] = schema }
      }
    }
    self.schemas = schemas
  }

  /// A later version with the ID of an earlier one takes its place: the ID does not depend on what
  /// the schema says of types.
  func add(_ schema: EventSchema) { self.schemas[schema.id] = schema }

  package func schema(_ id: String) throws(ServiceFault) -> EventSchema {
    guard !id.isEmpty else { throw .schemaBlank }
    guard let schema = self.schemas[id] else { throw .schemaUnknown(id) }
    return schema
  }

  package func log(_ topic: String, tenant: String) throws(ServiceFault) -> TopicLog {
    guard !topic.isEmpty else { throw .topicEmpty }
    guard let log = self.topics[topic] else { throw .topicNotFound(topic, tenant: tenant) }
    return log
  }

  /// Stores the event; `place` adds it to topics.
  func store(_ event: [UInt8]) throws -> UInt64 {
    try self.store.append(event)
  }

  /// A new replay ID of the topic.
  func advance(_ topic: String) -> UInt64 {
    self.topics[topic]?.advance() ?? 0
  }

  func place(
    _ topic: String, offset: UInt64, byteCount: Int, replayNumber: UInt64, at time: Int64
  ) {
    self.topics[topic]?.append(
      TopicLog.Entry(
        offset: offset, replayNumber: replayNumber, publishedAt: time,
        byteCount: UInt32(byteCount)))
  }

  package func keepalivePosition(_ topic: String, at now: Int64) -> UInt64 {
    self.topics[topic]?.keepalivePosition(at: now) ?? 0
  }

  /// The stored `ConsumerEvent.event` field, tag and length included.
  package func bytes(of entry: TopicLog.Entry) -> UnsafeRawBufferPointer {
    self.store.bytes(at: entry.offset, count: Int(entry.byteCount))
  }
}
