public import Avro

/// One event as the service delivered it.
public struct Event: Sendable {
  /// The topic of the subscription.
  public let topic: String
  /// ID of the event: a UUID, unless its publisher chose another.
  public let id: String
  /// Its place in the stream: opaque bytes, 10 of them at present, 1,024 at most. They neither order
  /// events nor can be calculated with. On channels (`__chn`, `/data/ChangeEvents`) several events in a
  /// row may have the same one.
  public let replayID: [UInt8]
  /// ID of the schema that the payload was written with.
  public let schemaID: String
  /// Avro binary encoding of one record.
  public let payload: [UInt8]

  private let schemas: EventSchemas

  init(
    topic: String, id: String, replayID: [UInt8], schemaID: String, payload: [UInt8],
    schemas: EventSchemas
  ) {
    self.topic = topic
    self.id = id
    self.replayID = replayID
    self.schemaID = schemaID
    self.payload = payload
    self.schemas = schemas
  }

  /// The schema of the payload: from memory, from the configured directory, or from the service.
  ///
  /// Throws `PubSubError` when it cannot be had, `AvroError` when its text is not a schema, and
  /// `CancellationError`.
  public func schema() async throws -> EventSchema { try await self.schemas.schema(self.schemaID) }

  /// The payload as the text of one JSON object, with the fields in the order of the schema.
  ///
  /// One text per Avro type (see the documentation of `Avro`): times are numbers, as the schema has
  /// them; a field of the type union is its value, without the name of the branch.
  ///
  /// Throws as `schema()`, and `AvroError` when the payload does not fit its schema.
  public func json() async throws -> String {
    try await self.schema().json(of: self.payload)
  }

  /// Decodes the payload into a visitor, by the plan of its schema.
  ///
  /// Throws as `json()`; what the visitor got before an error is void.
  ///
  /// - Parameters:
  ///   - visitor: called in the order of the payload. Which slot holds what is in `EventSchema.plan`.
  ///   - scratch: reused from event to event.
  public func decode<Visitor: FieldVisitor>(
    into visitor: inout Visitor, scratch: DecodeScratch
  ) async throws {
    let plan = try await self.schema().plan
    try self.payload.withUnsafeBufferPointer { payload throws(AvroError) in
      try plan.decode(payload, into: &visitor, scratch: scratch)
    }
  }
}

/// A schema of events, parsed and compiled.
public final class EventSchema: Sendable {
  /// The ID that the service gave it.
  public let id: String
  /// The text of the Avro schema, as the service gave it.
  public let json: String
  /// The parsed text.
  public let schema: Schema
  /// How its payloads are decoded.
  public let plan: DecodePlan

  init(id: String, json: String) throws(AvroError) {
    self.id = id
    self.json = json
    self.schema = try Schema(parsing: Array(json.utf8))
    self.plan = try DecodePlan(self.schema)
  }

  /// A payload as JSON text.
  ///
  /// - Parameter payload: Avro binary encoding of one value of this schema.
  /// - Throws: `AvroError` when the payload does not fit the schema.
  public func json(of payload: [UInt8]) throws(AvroError) -> String {
    try self.plan.json(of: payload, scratch: DecodeScratch())
  }
}
