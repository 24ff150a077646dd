/// Why an event, or every event of a schema, cannot be decoded. Goes into the dead letter.
///
/// Contains no values from the payload.
public struct EventDecodingError: Error, Sendable {
  public struct Code: Hashable, Sendable {
    private enum Value { case schema, payload, bitmap, limitExceeded, outdated }
    private var value: Value
    private init(_ value: Value) { self.value = value }
    /// The schema is not an event's. None of its events can be decoded.
    public static var schema: Self { Self(.schema) }
    /// The payload is not a record of the schema: damaged, or written with another schema.
    public static var payload: Self { Self(.payload) }
    /// A bitmap of the header does not fit the schema, so the schema is wrong. Nothing is guessed.
    public static var bitmap: Self { Self(.bitmap) }
    /// A value contradicts what the schema says of its field's meaning, which a schema ID does not
    /// depend on (EventSchemas.md#schema-id): the schema was changed after it was fetched.
    public static var outdated: Self { Self(.outdated) }
    /// The event needs more memory than the limits allow.
    public static var limitExceeded: Self { Self(.limitExceeded) }
  }

  public var code: Code
  /// What is wrong and where: `BillingAddress.City at byte 212: a value of 90 bytes, 14 left`.
  public var reason: String
  /// Field names joined by dots; empty if no field is at fault.
  public var path: String
  /// Where in the payload; nil if not at a single place.
  public var byteOffset: Int?
  public var topic: String
  public var schemaID: String
  /// `ProducerEvent.id`; nil for an error of the schema.
  public var eventID: String?
  public var cause: (any Error)?
}

extension EventDecodingError: CustomStringConvertible {
  public var description: String {
    let event = self.eventID.map { "event \($0)" } ?? "schema"
    let schema = self.schemaID.isEmpty ? "" : " (schema ID \(self.schemaID))"
    return "\(self.topic): \(event)\(schema): \(self.reason)"
  }
}
