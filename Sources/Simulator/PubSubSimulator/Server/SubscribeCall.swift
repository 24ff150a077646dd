internal import Foundation
internal import PubSubMessages
internal import SimulatedOrg
internal import SwiftProtobuf

/// One Subscribe call: credit, position, keepalives.
final class SubscribeCall: Call, ResponseSource {
  private enum State {
    case waitingForFirstRequest
    /// The subscription is being set up; nothing is delivered yet.
    case settingUp
    case delivering
    case stalled
    case ended(ResponseStep)
  }

  private let context: CallContext
  private var state = State.waitingForFirstRequest
  private var credit: SubscriptionCredit
  private var topic = ""
  /// Index of the next event.
  private var next = 0
  private var delivered = 0
  private var fault: Fault?
  private var builder = FetchResponseBuilder()
  private var random: RandomStream
  private var keepaliveIsDue = false
  private var hasResponded = false
  /// Whether it is one of the org's open streams.
  private var isCounted = false

  init(context: CallContext) {
    self.context = context
    self.credit = SubscriptionCredit(at: context.now)
    self.random = RandomStream(seed: RandomStream.hash(context.rpcID))
  }

  // MARK: From the client

  func received(_ message: [UInt8]) {
    if case .ended = self.state { return }
    do throws(ServiceFault) {
      guard let request = try? Eventbus_V1_FetchRequest(serializedBytes: message) else {
        throw .malformedMessage("FetchRequest")
      }
      if case .waitingForFirstRequest = self.state {
        try self.begin(request)
      } else if !request.topicName.isEmpty, request.topicName != self.topic {
        throw .topicMismatch
      }
      try self.credit.add(request.numRequested)
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
    self.next = try log.start(
      preset: preset, replayID: Array(request.replayID), at: self.context.now)
    self.topic = request.topicName
    org.openStreams += 1
    self.isCounted = true
    self.fault = org.faults.take(
      FaultQueue.Call(
        method: "Subscribe", topic: self.topic, at: self.context.now, nextEvent: self.next,
        hasReplayID: preset == .custom))
    self.state = .settingUp
    self.context.connection.after(milliseconds: org.configuration.subscribeDelay) { [weak self] in
      guard let self, case .settingUp = self.state else { return }
      guard self.context.org.deliveriesLeft > 0 else { return self.end(with: .deliveryLimit) }
      self.state = .delivering
      self.sendHeaders()
      self.wake()
    }
  }

  func inputEnded() {
    // the request side must stay open: closing it ends the call (TheService.md#flow-control, rule 7)
    self.end(with: ServiceFault(status: .ok, code: nil, message: ""))
  }

  func closed() {
    self.state = .ended(.endWithoutTrailers)
    if self.isCounted { self.context.org.openStreams -= 1 }
    self.isCounted = false
    if let fault = self.fault { self.context.org.faults.putBack(fault) }
    self.fault = nil
  }

  // MARK: Time and events

  func tick(at now: Int64) {
    switch self.state {
    case .waitingForFirstRequest, .delivering: break
    case .settingUp, .stalled, .ended: return
    }
    let interval = self.context.org.configuration.keepaliveInterval
    switch self.credit.due(at: now, keepaliveInterval: interval) {
    case .nothing: break
    case .keepalive:
      self.keepaliveIsDue = true
      self.wake()
    case .expired: self.end(with: ServiceFault(status: .ok, code: nil, message: ""))
    }
  }

  var due: Int64? {
    switch self.state {
    case .waitingForFirstRequest, .delivering:
      self.credit.due(keepaliveInterval: self.context.org.configuration.keepaliveInterval)
    case .settingUp, .stalled, .ended: nil
    }
  }

  func eventsArrived() { self.wake() }

  private func wake() {
    guard case .delivering = self.state else { return }
    if let fault = self.fault, fault.afterEvents == self.delivered { self.perform(fault) }
    self.context.connection.resume(self.context.stream)
  }

  // MARK: To the client

  private func sendHeaders() {
    guard !self.hasResponded else { return }
    self.hasResponded = true
    self.context.connection.respond(
      self.context.stream, headers: CallContext.responseHeaders, source: self)
  }

  private func end(with fault: ServiceFault) {
    if case .ended = self.state { return }
    let trailers = self.context.trailers(of: fault)
    self.state = .ended(.end(trailers: trailers))
    if self.hasResponded {
      self.context.connection.resume(self.context.stream)
    } else {
      self.context.connection.respondWithTrailersOnly(self.context.stream, trailers)
    }
  }

  func fill(_ bytes: inout [UInt8]) -> ResponseStep {
    switch self.state {
    case .ended(let step): return step
    case .waitingForFirstRequest, .settingUp, .stalled: return .more
    case .delivering: break
    }
    let org = self.context.org
    guard self.credit.pending > 0, let log = org.log.topics[self.topic] else { return .more }
    // what retention has purged in the meantime is gone
    self.next = max(self.next, log.firstRetained(at: self.context.now))
    let available = log.entries.count - self.next
    let rpcID = Array(self.context.rpcID.utf8)
    if available > 0 {
      let limit = self.limit(available: available)
      guard limit > 0 else { return .more }
      let count = self.builder.append(
        from: log, index: self.next, limit: limit, in: org.log, rpcID: rpcID,
        pending: self.credit.pending, damaged: org.damagedEvents[self.topic], to: &bytes)
      self.next += count
      self.delivered += count
      self.credit.responded(count, at: self.context.now)
      self.keepaliveIsDue = false
      org.delivered(count, client: self.context.client, topic: self.topic)
      if org.deliveriesLeft == 0 {
        self.context.connection.soon { [weak self] in self?.end(with: .deliveryLimit) }
      }
      if let fault = self.fault, fault.afterEvents == self.delivered {
        self.context.connection.soon { [weak self] in self?.wake() }
      }
    } else if self.keepaliveIsDue {
      self.keepaliveIsDue = false
      let latest = org.keepalivePosition(self.topic)
      self.builder.appendKeepalive(
        latest: latest, rpcID: rpcID, pending: self.credit.pending, to: &bytes)
      self.credit.responded(0, at: self.context.now)
    }
    return .more
  }

  /// How many events the next response may hold. The service splits as it likes.
  private func limit(available: Int) -> Int {
    var limit = min(self.credit.pending, available)
    if let most = self.context.org.configuration.maxResponseEvents {
      limit = min(limit, most)
    } else if limit > 1, self.random.chance(0.25) {
      limit = 1 + self.random.below(limit)
    }
    limit = min(limit, self.context.org.deliveriesLeft)
    if let fault = self.fault { limit = min(limit, max(0, fault.afterEvents - self.delivered)) }
    return limit
  }

  // MARK: Faults

  private func perform(_ fault: Fault) {
    self.fault = nil
    switch fault.action {
    case .status(let status, let code, let message):
      self.end(
        with: ServiceFault(
          status: ServiceFault.Status(rawValue: status) ?? .unknown, code: code, message: message))
    case .reset(let code):
      self.state = .stalled
      self.context.connection.reset(self.context.stream, code: code)
    case .goAway:
      self.context.connection.goAway()
      self.meetNextEventFault()
    case .damage:
      self.context.org.damagedEvents[self.topic, default: []].insert(self.next)
      self.meetNextEventFault()
    case .drop: self.context.connection.close()
    case .endWithoutTrailers:
      self.state = .ended(.endWithoutTrailers)
      self.context.connection.resume(self.context.stream)
    case .stall: self.state = .stalled
    // The reader of faults allows it for publishing only.
    case .loseAnswer: break
    case .truncate:
      self.state = .stalled
      self.context.connection.truncate(self.context.stream)
    }
  }

  /// The call continues after a fault, and may come to the event of another.
  private func meetNextEventFault() {
    self.fault = self.context.org.faults.takeAtEvent(topic: self.topic, nextEvent: self.next)
    self.fault?.afterEvents += self.delivered
    if let fault = self.fault, fault.afterEvents == self.delivered {
      self.context.connection.soon { [weak self] in self?.wake() }
    }
  }
}
