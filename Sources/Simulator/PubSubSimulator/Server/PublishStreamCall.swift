internal import PubSubMessages
internal import SimulatedOrg
internal import SwiftProtobuf

/// PublishStream: an answer per request; the topic is fixed by the first.
final class PublishStreamCall: Call {
  /// More unsent answers than this, and the client does not read.
  private static let maxUnsentBytes = 1 << 20

  private let context: CallContext
  private let queue = ResponseQueue()
  private var topic: String?
  private var hasResponded = false

  init(context: CallContext) {
    self.context = context
  }

  func received(_ message: [UInt8]) {
    guard !self.queue.isEnded else { return }
    do throws(ServiceFault) {
      guard var request = try? Eventbus_V1_PublishRequest(serializedBytes: message) else {
        throw .malformedMessage("PublishRequest")
      }
      if let topic = self.topic {
        if request.topicName.isEmpty {
          request.topicName = topic
        } else if request.topicName != topic {
          throw ServiceFault(
            status: .invalidArgument, code: "publish.topic.mismatch",
            message: "The topic name can't change within a publish stream.")
        }
      }
      self.context.org.calls[self.context.method, default: 0] += 1
      let call = FaultQueue.Call(method: self.context.method, at: self.context.now)
      if let fault = self.context.org.faults.take(call), try self.perform(fault, request) { return }
      let response = try Publication.response(to: request, self.context)
      self.topic = request.topicName
      self.queue.send(try UnaryMethods.bytes(response))
      if self.queue.byteCount > Self.maxUnsentBytes {
        throw ServiceFault(
          status: .resourceExhausted, code: "service.protection.stream.limit.triggered",
          message: "Too many answers have not been read.")
      }
      self.send()
    } catch {
      self.end(self.context.trailers(of: error))
    }
  }

  /// A fault hits a request of the stream. Returns whether that has no answer.
  private func perform(
    _ fault: Fault, _ request: Eventbus_V1_PublishRequest
  ) throws(ServiceFault) -> Bool {
    switch fault.action {
    case .status(let status, let code, let message):
      throw ServiceFault(
        status: ServiceFault.Status(rawValue: status) ?? .unknown, code: code, message: message)
    case .reset(let code): self.context.connection.reset(self.context.stream, code: code)
    case .goAway:
      self.context.connection.goAway()
      return false
    case .drop: self.context.connection.close()
    case .loseAnswer:
      _ = try Publication.response(to: request, self.context)
      self.context.connection.close()
    case .stall: break
    // The reader of faults allows it for Subscribe only.
    case .damage: return false
    case .endWithoutTrailers:
      self.queue.finish(.endWithoutTrailers)
      self.send()
    case .truncate: self.context.connection.truncate(self.context.stream)
    }
    return true
  }

  private func send() {
    if self.hasResponded {
      self.context.connection.resume(self.context.stream)
    } else {
      self.hasResponded = true
      self.context.connection.respond(
        self.context.stream, headers: CallContext.responseHeaders, source: self.queue)
    }
  }

  private func end(_ trailers: [HTTP2Header]) {
    guard !self.queue.isEnded else { return }
    self.queue.finish(.end(trailers: trailers))
    self.send()
  }

  func inputEnded() { self.end(CallContext.okTrailers()) }
  func closed() { self.queue.finish(.endWithoutTrailers) }
  func tick(at now: Int64) {}
  var due: Int64? { nil }
  func eventsArrived() {}
}
