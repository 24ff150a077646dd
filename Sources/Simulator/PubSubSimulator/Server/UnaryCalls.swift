internal import Foundation
internal import PubSubMessages
internal import SimulatedOrg
internal import SwiftProtobuf

/// A call with one request and one answer, made by `answer`.
final class UnaryCall: Call {
  private let context: CallContext
  private let answer: ([UInt8], CallContext) throws(ServiceFault) -> [UInt8]
  private var isAnswered = false

  init(
    context: CallContext,
    answer: @escaping ([UInt8], CallContext) throws(ServiceFault) -> [UInt8]
  ) {
    self.context = context
    self.answer = answer
  }

  func received(_ message: [UInt8]) {
    guard !self.isAnswered else { return }
    self.isAnswered = true
    self.context.org.calls[self.context.method, default: 0] += 1
    do throws(ServiceFault) {
      let call = FaultQueue.Call(method: self.context.method, at: self.context.now)
      if let fault = self.context.org.faults.take(call) {
        if try self.perform(fault, message) { return }
      }
      let queue = ResponseQueue()
      queue.send(try self.answer(message, self.context))
      queue.finish(.end(trailers: CallContext.okTrailers()))
      self.context.connection.respond(
        self.context.stream, headers: CallContext.responseHeaders, source: queue)
    } catch {
      self.context.connection.respondWithTrailersOnly(
        self.context.stream, self.context.trailers(of: error))
    }
  }

  /// Returns whether the call is over.
  private func perform(_ fault: Fault, _ message: [UInt8]) throws(ServiceFault) -> Bool {
    switch fault.action {
    case .status(let status, let code, let message):
      throw ServiceFault(
        status: ServiceFault.Status(rawValue: status) ?? .unknown, code: code, message: message)
    case .reset(let code): self.context.connection.reset(self.context.stream, code: code)
    case .goAway:
      self.context.connection.goAway()
      return false
    case .drop: self.context.connection.close()
    case .stall: break
    // The reader of faults allows it for Subscribe only.
    case .damage: return false
    case .loseAnswer:
      _ = try self.answer(message, self.context)
      self.context.connection.close()
    case .endWithoutTrailers:
      let queue = ResponseQueue()
      queue.finish(.endWithoutTrailers)
      self.context.connection.respond(
        self.context.stream, headers: CallContext.responseHeaders, source: queue)
    case .truncate: self.context.connection.truncate(self.context.stream)
    }
    return true
  }

  func inputEnded() {
    guard !self.isAnswered else { return }
    self.isAnswered = true
    self.context.connection.respondWithTrailersOnly(
      self.context.stream,
      self.context.trailers(
        of: ServiceFault(
          status: .internalError, code: nil, message: "The call ended without a request.")))
  }

  func closed() { self.isAnswered = true }
  func tick(at now: Int64) {}
  var due: Int64? { nil }
  func eventsArrived() {}
}

/// The answers of the unary methods.
enum UnaryMethods {
  static func getTopic(
    _ message: [UInt8], _ context: CallContext
  ) throws(ServiceFault) -> [UInt8] {
    guard let request = try? Eventbus_V1_TopicRequest(serializedBytes: message) else {
      throw .malformedMessage("TopicRequest")
    }
    let org = context.org
    let topic = try org.log.log(request.topicName, tenant: org.tokens.tenantGUID).topic
    var info = Eventbus_V1_TopicInfo()
    info.topicName = topic.name
    info.tenantGuid = org.tokens.tenantGUID
    info.canPublish = topic.canPublish
    info.canSubscribe = true
    if !topic.isChannel, let schema = topic.members[0].versions.last {
      info.schemaID = org.publisher.currentSchema(of: topic.members[0])?.id ?? schema.id
    }
    info.rpcID = context.rpcID
    return try Self.bytes(info)
  }

  static func getSchema(
    _ message: [UInt8], _ context: CallContext
  ) throws(ServiceFault) -> [UInt8] {
    guard let request = try? Eventbus_V1_SchemaRequest(serializedBytes: message) else {
      throw .malformedMessage("SchemaRequest")
    }
    let schema = try context.org.log.schema(request.schemaID)
    var info = Eventbus_V1_SchemaInfo()
    info.schemaJson = schema.json
    info.schemaID = schema.id
    info.rpcID = context.rpcID
    return try Self.bytes(info)
  }

  static func publish(
    _ message: [UInt8], _ context: CallContext
  ) throws(ServiceFault) -> [UInt8] {
    guard let request = try? Eventbus_V1_PublishRequest(serializedBytes: message) else {
      throw .malformedMessage("PublishRequest")
    }
    return try Self.bytes(Publication.response(to: request, context))
  }

  static func bytes(_ message: some SwiftProtobuf.Message) throws(ServiceFault) -> [UInt8] {
    guard let bytes: [UInt8] = try? message.serializedBytes() else {
      throw ServiceFault(
        status: .internalError, code: nil, message: "The answer could not be encoded.")
    }
    return bytes
  }
}
