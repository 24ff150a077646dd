internal import Foundation
internal import PubSubMessages
internal import SimulatedOrg
internal import SwiftProtobuf

/// One Subscribe call: credit, position, keepalives.
final class SubscribeCall: EventCall {
  private let context: CallContext
  var delivery: EventDelivery
  /// Whether it is one of the org's open streams.
  private var isCounted = false

  init(context: CallContext) {
    self.context = context
    self.delivery = EventDelivery(context)
  }

  // MARK: From the client

  func received(_ message: [UInt8]) {
    if case .ended = self.delivery.state { return }
    do throws(ServiceFault) {
      guard let request = try? Eventbus_V1_FetchRequest(serializedBytes: message) else {
        throw .malformedMessage("FetchRequest")
      }
      if case .waitingForFirstRequest = self.delivery.state {
        try self.begin(request)
      } else if !request.topicName.isEmpty, request.topicName != self.delivery.topic {
        throw .topicMismatch
      }
      try self.delivery.credit.add(request.numRequested)
      self.wake()
    } catch {
      self.end(with: error)
    }
  }

  private func begin(_ request: Eventbus_V1_FetchRequest) throws(ServiceFault) {
    let org = self.context.org
    org.calls[self.context.method, default: 0] += 1
    let log = try org.log.log(request.topicName, tenant: org.tokens.tenantGUID)
    guard let preset = ReplayPreset(rawValue: request.replayPreset.rawValue) else {
      throw .replayMissing
    }
    if request.numRequested <= 0 { throw .requestedEventsInvalid }
    guard org.mayOpenStream else { throw .clientLimit }
    self.delivery.next = try log.start(
      preset: preset, replayID: Array(request.replayID), at: self.context.now)
    self.delivery.topic = request.topicName
    org.openStreams += 1
    self.isCounted = true
    self.delivery.fault = org.faults.take(
      FaultQueue.Call(
        method: "Subscribe", topic: request.topicName, at: self.context.now,
        nextEvent: self.delivery.next, hasReplayID: preset == .custom))
    self.delivery.state = .settingUp
    self.context.connection.after(milliseconds: org.configuration.subscribeDelay) { [weak self] in
      guard let self, case .settingUp = self.delivery.state else { return }
      guard self.context.org.deliveriesLeft > 0 else { return self.end(with: .deliveryLimit) }
      self.delivery.state = .delivering
      self.sendHeaders()
      self.wake()
    }
  }

  func inputEnded() {
    // the request side must stay open: closing it ends the call (TheService.md#flow-control, rule 7)
    self.end(with: ServiceFault(status: .ok, code: nil, message: ""))
  }

  /// It stays one of the org's open streams until the stream is gone.
  func ended() {}

  func closed() {
    self.delivery.state = .ended(.endWithoutTrailers)
    if self.isCounted { self.context.org.openStreams -= 1 }
    self.isCounted = false
    self.putBackFault()
  }

  // MARK: Time

  func tick(at now: Int64) {
    switch self.delivery.state {
    case .waitingForFirstRequest, .delivering: break
    case .settingUp, .stalled, .ended: return
    }
    let interval = self.context.org.configuration.keepaliveInterval
    switch self.delivery.credit.due(at: now, keepaliveInterval: interval) {
    case .nothing: break
    case .keepalive:
      self.delivery.keepaliveIsDue = true
      self.wake()
    case .expired: self.end(with: ServiceFault(status: .ok, code: nil, message: ""))
    }
  }

  var due: Int64? {
    switch self.delivery.state {
    case .waitingForFirstRequest, .delivering:
      self.delivery.credit.due(keepaliveInterval: self.context.org.configuration.keepaliveInterval)
    case .settingUp, .stalled, .ended: nil
    }
  }

  // MARK: To the client

  func fill(_ bytes: inout [UInt8]) -> ResponseStep {
    switch self.delivery.state {
    case .ended(let step): return step
    case .waitingForFirstRequest, .settingUp, .stalled: return .more
    case .delivering: break
    }
    guard self.delivery.credit.pending > 0,
      let log = self.context.org.log.topics[self.delivery.topic]
    else { return .more }
    let available = self.delivery.available(in: log)
    if available > 0 {
      let limit = self.delivery.limit(available: available)
      if limit > 0 { self.deliver(limit, from: log, to: &bytes) }
    } else if self.delivery.keepaliveIsDue {
      self.delivery.appendKeepalive(to: &bytes)
    }
    return .more
  }

  /// The call may come to the event of another fault.
  func passedFault() {
    self.delivery.fault = self.context.org.faults.takeAtEvent(
      topic: self.delivery.topic, nextEvent: self.delivery.next)
    self.delivery.fault?.afterEvents += self.delivery.delivered
    if self.delivery.faultIsDue {
      self.context.connection.soon { [weak self] in self?.wake() }
    }
  }
}
