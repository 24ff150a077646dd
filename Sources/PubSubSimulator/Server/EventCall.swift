internal import SimulatedOrg

/// A call that delivers the events of a topic.
protocol EventCall: Call, ResponseSource {
  var delivery: EventDelivery { get set }
  /// The service has ended the call: what it has of the org is free.
  func ended()
  /// A fault was met, and the call goes on.
  func passedFault()
}

/// What such a call delivers next, and how far it has come.
struct EventDelivery {
  enum State {
    case waitingForFirstRequest
    /// The subscription is being set up; nothing is delivered yet.
    case settingUp
    case delivering
    case stalled
    case ended(ResponseStep)
  }

  let context: CallContext
  var state = State.waitingForFirstRequest
  var credit: SubscriptionCredit
  var topic = ""
  /// Index of the next event.
  var next = 0
  private(set) var delivered = 0
  /// Met when `afterEvents` have been delivered.
  var fault: Fault?
  var builder = FetchResponseBuilder()
  var random: RandomStream
  var keepaliveIsDue = false
  fileprivate var hasResponded = false

  init(_ context: CallContext) {
    self.context = context
    self.credit = SubscriptionCredit(at: context.now)
    self.random = RandomStream(seed: RandomStream.hash(context.rpcID))
  }

  var faultIsDue: Bool { self.fault.map { $0.afterEvents == self.delivered } ?? false }

  /// How many events there are from `next` on. What retention has purged in the meantime is gone.
  mutating func available(in log: TopicLog) -> Int {
    self.next = max(self.next, log.firstRetained(at: self.context.now))
    return log.entries.count - self.next
  }

  /// How many events the next response may hold. The service splits as it likes.
  mutating func limit(available: Int) -> Int {
    var limit = min(self.credit.pending, available)
    if let most = self.context.org.configuration.maxResponseEvents {
      limit = min(limit, most)
    } else if limit > 1, self.random.chance(0.25) {
      limit = 1 + self.random.below(limit)
    }
    limit = min(limit, self.context.org.deliveriesLeft)
    if let fault = self.fault { limit = min(limit, fault.afterEvents - self.delivered) }
    return max(0, limit)
  }

  fileprivate mutating func append(_ limit: Int, from log: TopicLog, to bytes: inout [UInt8]) {
    let org = self.context.org
    let count = self.builder.append(
      from: log, index: self.next, limit: limit, in: org.log, rpcID: Array(self.context.rpcID.utf8),
      pending: self.credit.pending, damaged: org.damagedEvents[self.topic], to: &bytes)
    self.next += count
    self.delivered += count
    self.credit.responded(count, at: self.context.now)
    self.keepaliveIsDue = false
    org.delivered(count, client: self.context.client, topic: self.topic)
  }

  mutating func appendKeepalive(to bytes: inout [UInt8]) {
    self.keepaliveIsDue = false
    self.builder.appendKeepalive(
      latest: self.context.org.keepalivePosition(self.topic), rpcID: Array(self.context.rpcID.utf8),
      pending: self.credit.pending, to: &bytes)
    self.credit.responded(0, at: self.context.now)
  }
}

extension EventCall {
  func eventsArrived() { self.wake() }

  func wake() {
    guard case .delivering = self.delivery.state else { return }
    self.meetFault()
    self.delivery.context.connection.resume(self.delivery.context.stream)
  }

  func sendHeaders() {
    guard !self.delivery.hasResponded else { return }
    self.delivery.hasResponded = true
    self.delivery.context.connection.respond(
      self.delivery.context.stream, headers: CallContext.responseHeaders, source: self)
  }

  /// Writes a response of up to `limit` events, of which there is one at least.
  func deliver(_ limit: Int, from log: TopicLog, to bytes: inout [UInt8]) {
    self.delivery.append(limit, from: log, to: &bytes)
    let context = self.delivery.context
    if context.org.deliveriesLeft == 0 {
      context.connection.soon { [weak self] in self?.end(with: .deliveryLimit) }
    }
    if self.delivery.faultIsDue {
      context.connection.soon { [weak self] in self?.wake() }
    }
  }

  func end(with fault: ServiceFault) {
    if case .ended = self.delivery.state { return }
    let context = self.delivery.context
    let trailers = context.trailers(of: fault)
    self.delivery.state = .ended(.end(trailers: trailers))
    self.ended()
    if self.delivery.hasResponded {
      context.connection.resume(context.stream)
    } else {
      context.connection.respondWithTrailersOnly(context.stream, trailers)
    }
  }

  /// The call ends before the fault that waits for it: another may meet it.
  func putBackFault() {
    if let fault = self.delivery.fault { self.delivery.context.org.faults.putBack(fault) }
    self.delivery.fault = nil
  }

  private func meetFault() {
    guard self.delivery.faultIsDue, let fault = self.delivery.fault else { return }
    self.delivery.fault = nil
    let context = self.delivery.context
    switch fault.action {
    case .status(let status, let code, let message):
      self.end(
        with: ServiceFault(
          status: ServiceFault.Status(rawValue: status) ?? .unknown, code: code, message: message))
    case .reset(let code):
      self.delivery.state = .stalled
      context.connection.reset(context.stream, code: code)
    case .goAway:
      context.connection.goAway()
      self.passedFault()
    case .damage:
      context.org.damagedEvents[self.delivery.topic, default: []].insert(self.delivery.next)
      self.passedFault()
    case .drop: context.connection.close()
    case .endWithoutTrailers:
      self.delivery.state = .ended(.endWithoutTrailers)
      self.ended()
      context.connection.resume(context.stream)
    case .stall: self.delivery.state = .stalled
    // The reader of faults allows it for publishing only.
    case .loseAnswer: break
    case .truncate:
      self.delivery.state = .stalled
      context.connection.truncate(context.stream)
    }
  }
}
