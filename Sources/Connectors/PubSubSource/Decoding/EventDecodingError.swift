/// Why an event, or every event of a schema, cannot be decoded. Goes into the dead letter.
///
/// Contains no values from the payload.
package struct EventDecodingError: Error, Sendable {
  package struct Code: Hashable, Sendable {
    private enum Value { case schema, payload, bitmap, limitExceeded, outdated }
    private var value: Value
    private init(_ value: Value) { self.value = value }
    /// The schema is not an event's. None of its events can be decoded.
    package static var schema: Self { Self(.schema) }
    /// The payload is not a record of the schema: damaged, or written with another schema.
    package static var payload: Self { Self(.payload) }
    /// A bitmap of the header does not fit the schema, so the schema is wrong. Nothing is guessed.
    package static var bitmap: Self { Self(.bitmap) }
    /// A value contradicts what the schema says of its field's meaning, which a schema ID does not
    /// depend on (EventSchemas.md#schema-id): the schema was changed after it was fetched.
    package static var outdated: Self { Self(.outdated) }
    /// The event needs more memory than the limits allow.
    package static var limitExceeded: Self { Self(.limitExceeded) }
  }

  package var code: Code
  /// What is wrong and where: `BillingAddress.City at byte 212: a value of 90 bytes, 14 left`.
  package var reason: String
  /// Field names joined by dots; empty if no field is at fault.
  package var path: String
  /// Where in the payload; nil if not at a single place.
  package var byteOffset: Int?
  package var topic: String
  package var schemaID: String
  /// `ProducerEvent.id`; nil for an error of the schema.
  package var eventID: String?
  package var cause: (any Error)?
}

extension EventDecodingError: CustomStringConvertible {
  package var description: String {
    let event = self.eventID.map { "event \($0)" } ?? "schema"
    let schema = self.schemaID.isEmpty ? "" : " (schema ID \(self.schemaID))"
    return "\(self.topic): \(event)\(schema): \(self.reason)"
  }
}
