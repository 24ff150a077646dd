internal import Foundation
internal import PubSubMessages
internal import SimulatedOrg

/// Publishing by clients, `contract/semantics.md` section 10.
enum Publication {
  static func response(
    to request: Eventbus_V1_PublishRequest, _ context: CallContext
  ) throws(ServiceFault) -> Eventbus_V1_PublishResponse {
    let org = context.org
    guard !request.topicName.isEmpty else {
      throw ServiceFault(
        status: .invalidArgument, code: "publish.topic.validation.empty",
        message: "The topic name can't be empty.")
    }
    let topic = try org.log.log(request.topicName, tenant: org.tokens.tenantGUID).topic
    guard topic.canPublish else {
      throw ServiceFault(
        status: .permissionDenied, code: "topic.meta.permission",
        message: "Events can't be published to \(topic.name).")
    }
    guard !request.events.isEmpty else {
      throw ServiceFault(
        status: .invalidArgument, code: "publish.event.count.invalid",
        message: "A publish request must contain at least one event.")
    }
    let model = topic.members[0]
    guard let schema = org.publisher.currentSchema(of: model) else {
      throw .schemaUnknown(request.topicName)
    }
    var response = Eventbus_V1_PublishResponse()
    response.schemaID = schema.id
    response.rpcID = context.rpcID
    for event in request.events {
      let id = event.id.isEmpty ? org.newEventID() : event.id
      var result = Eventbus_V1_PublishResult()
      result.correlationKey = id
      do {
        result.replayID = Data(
          ReplayPosition.bytes(
            try Self.publish(event, id: id, model: model, schema: schema, topic, context)))
      } catch {
        var failure = Eventbus_V1_Error()
        failure.code = .publish
        failure.msg = "\(error)"
        result.error = failure
      }
      response.results.append(result)
    }
    org.eventsWerePublished()
    return response
  }

  private static func publish(
    _ event: Eventbus_V1_ProducerEvent, id: String, model: EntityModel, schema: EventSchema,
    _ topic: Topic, _ context: CallContext
  ) throws -> UInt64 {
    guard event.schemaID == schema.id else {
      throw SimulatorError(
        .configuration, "The schema ID must be the current one of the topic, \(schema.id).")
    }
    guard event.payload.count <= 1 << 20 else {
      throw SimulatorError(.configuration, "An event can have at most 1 MB.")
    }
    let payload = Array(event.payload)
    let image = try PublishedPayload.image(payload, model: model, schema: schema)
    return try context.org.publish(image, payload: payload, id: id, topic: topic.name)
  }
}

/// Reads the payload of a published platform event, as a check and for the truth file.
struct PublishedPayload {
  private var bytes: ArraySlice<UInt8>

  /// The values, or an error that says what is wrong.
  static func image(
    _ payload: [UInt8], model: EntityModel, schema: EventSchema
  ) throws -> EventImage {
    var reader = PublishedPayload(bytes: payload[...])
    var image = EventImage(entity: model, schema: schema)
    image.reset(entity: model, schema: schema)
    for step in schema.steps {
      switch step {
      case .required(let slot, let type):
        image.cells[slot] = try reader.value(type, &image)
      case .nullable(let slot, let type):
        switch try reader.long() {
        case 0: break
        case 1: image.cells[slot] = try reader.value(type, &image)
        default: throw Self.malformed("a union has no such branch")
        }
      case .compound, .switchableName:
        preconditionFailure("platform events have no compound fields")
      }
    }
    guard reader.bytes.isEmpty else { throw Self.malformed("bytes are left at the end") }
    return image
  }

  private static func malformed(_ what: String) -> SimulatorError {
    SimulatorError(.configuration, "The payload is not valid for the schema: \(what).")
  }

  private mutating func long() throws -> Int64 {
    var value: UInt64 = 0
    for shift in stride(from: UInt64(0), to: 70, by: 7) {
      guard let byte = self.bytes.popFirst() else { throw Self.malformed("it ends in a number") }
      value |= UInt64(byte & 0x7f) << shift
      if byte & 0x80 == 0 { return Int64(bitPattern: value >> 1) ^ -Int64(value & 1) }
    }
    throw Self.malformed("a number has more than ten bytes")
  }

  private mutating func take(_ count: Int64) throws -> ArraySlice<UInt8> {
    guard count >= 0, count <= Int64(self.bytes.count) else {
      throw Self.malformed("it ends in a value")
    }
    defer { self.bytes = self.bytes.dropFirst(Int(count)) }
    return self.bytes.prefix(Int(count))
  }

  private mutating func value(_ type: ScalarType, _ image: inout EventImage) throws -> Cell {
    switch type {
    case .long: return .long(try self.long())
    case .int:
      guard let value = Int32(exactly: try self.long()) else {
        throw Self.malformed("an int is out of range")
      }
      return .int(value)
    case .boolean: return .boolean(try self.take(1).first != 0)
    case .double:
      let bits = try self.take(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      return .double(Double(bitPattern: bits))
    case .string:
      let text = try self.take(try self.long())
      guard String(validating: text, as: UTF8.self) != nil else {
        throw Self.malformed("a text is not UTF-8")
      }
      return image.text(text)
    }
  }
}
