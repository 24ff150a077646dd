import GRPCCore
import PubSubAPI
import SchemaStore

extension TopicInformation {
  /// Throws `PubSubError` if this cannot be the answer to the request.
  func checked(_ topic: String) throws(PubSubError) -> Self {
    guard self.name.utf8.count <= 1024, self.name.lowercased() == topic.lowercased() else {
      throw PubSubError(
        .malformedResponse, status: .ok, "GetTopic \(topic): the response is about another topic")
    }
    // A channel has no schema ID.
    guard self.schemaID.isEmpty || SchemaID.isValid(self.schemaID.utf8) else {
      throw PubSubError(
        .malformedResponse, status: .ok,
        "GetTopic \(topic): the response has a schema ID of \(self.schemaID.utf8.count) bytes that is "
          + "none")
    }
    return self
  }
}

extension SchemaInformation {
  /// Throws `PubSubError` if this is not the requested schema.
  func checked(_ id: String) throws(PubSubError) -> Self {
    guard self.id == id else {
      throw PubSubError(
        .malformedResponse, status: .ok, "GetSchema \(id): the response is about another schema")
    }
    return self
  }
}
