internal import Foundation
internal import PubSubMessages
internal import SimulatedOrg

/// Publishing by clients (TheService.md#publishing).
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
