internal import FoundationEssentials
internal import GRPCCore
internal import PubSubMessages

/// An event to be published.
public struct EventToPublish: Sendable, Hashable {
  /// Chosen by the publisher; consumers recognize repetitions by it.
  public var id: String
  /// The schema with which the payload was written: the topic's current one.
  public var schemaID: String
  /// Avro binary of one record, without a header.
  public var payload: [UInt8]

  /// - Parameters:
  ///   - id: identifies the event in its result; the event's UUID.
  ///   - schemaID: the ID of the schema with which the payload was written.
  ///   - payload: Avro binary of one record.
  public init(id: String, schemaID: String, payload: [UInt8]) {
    self.id = id
    self.schemaID = schemaID
    self.payload = payload
  }

  /// The maximum number of bytes that the event adds to a request.
  public var requestByteCount: Int {
    // Four tags and lengths of up to five bytes each.
    self.payload.count + self.id.utf8.count + self.schemaID.utf8.count + 4 * 6
  }
}

/// The result of publishing one event.
public enum PublishResult: Sendable, Hashable {
  /// The event is in the stream of its topic, at this position.
  case published(replayID: [UInt8])
  /// Nothing was queued. The message is the service's.
  case refused(message: String)
}

/// The service's answer to one request, checked against the request.
public struct PublishAnswer: Sendable, Hashable {
  /// One for each event of the request, in its order.
  public var results: [PublishResult]
  /// The topic's current schema; empty if the service did not say.
  public var schemaID: String
  /// To quote to the service's support.
  public var rpcID: String

  /// Limits in bytes: of a replay ID, a schema ID, a message, and the service's ID of the call.
  private static let maxReplayIDBytes = 1024
  private static let maxSchemaIDBytes = 256
  private static let maxMessageBytes = 4096
  private static let maxRPCIDBytes = 100

  /// - Parameter ids: the IDs of the request's events.
  init(
    _ response: Eventbus_V1_PublishResponse, to ids: [String], operation: String
  ) throws(PubSubError) {
    func malformed(_ reason: String) -> PubSubError {
      PubSubError(
        .malformedResponse, status: .ok, "\(operation): the response \(reason)",
        rpcID: (1...Self.maxRPCIDBytes).contains(response.rpcID.utf8.count) ? response.rpcID : nil)
    }
    guard response.results.count == ids.count else {
      throw malformed("has \(response.results.count) results for \(ids.count) events")
    }
    guard response.schemaID.utf8.count <= Self.maxSchemaIDBytes,
      response.schemaID.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
    else {
      throw malformed(
        "has a schema ID of \(response.schemaID.utf8.count) bytes, which is not valid")
    }
    var results: [PublishResult] = []
    results.reserveCapacity(ids.count)
    for (index, result) in response.results.enumerated() {
      guard result.correlationKey == ids[index] else {
        throw malformed("has a result for another event in place \(index + 1)")
      }
      guard result.hasError != !result.replayID.isEmpty else {
        throw malformed(
          "has \(result.hasError ? "both a replay ID and an error" : "neither a replay ID nor an error") "
            + "for event \(index + 1)")
      }
      guard result.replayID.count <= Self.maxReplayIDBytes else {
        throw malformed("has a replay ID of \(result.replayID.count) bytes")
      }
      results.append(
        result.hasError
          ? .refused(message: result.error.msg.bounded(byteCount: Self.maxMessageBytes))
          : .published(replayID: Array(result.replayID)))
    }
    self.results = results
    self.schemaID = response.schemaID
    self.rpcID = response.rpcID
  }
}

extension Eventbus_V1_PublishRequest {
  init(topic: String, events: [EventToPublish]) {
    self.init()
    self.topicName = topic
    self.events = events.map { event in
      var message = Eventbus_V1_ProducerEvent()
      message.id = event.id
      message.schemaID = event.schemaID
      message.payload = Data(event.payload)
      return message
    }
  }
}

extension ServiceErrorCode {
  /// The topic changed within a stream.
  public static let publishTopicMismatch = Self(rawValue: "publish.topic.mismatch")
  /// A request names no topic.
  public static let publishTopicEmpty = Self(rawValue: "publish.topic.validation.empty")
  /// A request has no events.
  public static let publishEventCountInvalid = Self(rawValue: "publish.event.count.invalid")
  /// A field that only Salesforce sets was set.
  public static let publishAuthRefreshInvalid = Self(rawValue: "publish.auth.refresh.invalid")
}
