internal import Foundation
internal import PubSubMessages
internal import SimulatedOrg
internal import SwiftProtobuf

/// One ManagedSubscribe call: the org knows the position, and stores what the client commits.
final class ManagedSubscribeCall: Call, ResponseSource {
  private enum State {
    case waitingForFirstRequest
    case delivering
    case stalled
    case ended(ResponseStep)
  }

  private let context: CallContext
  private var state = State.waitingForFirstRequest
  private var credit: SubscriptionCredit
  /// The index of the subscription's record.
  private var record: Int?
  private var topic = ""
  /// Index of the next event.
  private var next = 0
  private var delivered = 0
  private var lastCommitAt: Int64
  private var fault: Fault?
  private var builder = FetchResponseBuilder()
  private var random: RandomStream
  private var keepaliveIsDue = false
  private var hasResponded = false
  /// Answers to commits that have not gone out.
  private var answers: [Eventbus_V1_CommitReplayResponse] = []
  private var isAnswering = false

  init(context: CallContext) {
    self.context = context
    self.credit = SubscriptionCredit(at: context.now)
    self.lastCommitAt = context.now
    self.random = RandomStream(seed: RandomStream.hash(context.rpcID))
  }

  // MARK: From the client

  func received(_ message: [UInt8]) {
    if case .ended = self.state { return }
    do throws(ServiceFault) {
      guard let request = try? Eventbus_V1_ManagedFetchRequest(serializedBytes: message) else {
        throw .malformedMessage("ManagedFetchRequest")
      }
      if !request.authRefresh.isEmpty {
        throw ManagedSubscriptions.fault("fetch.request.auth.request.restricted")
      }
      if request.numRequested < 0 {
        throw ManagedSubscriptions.fault("fetch.request.events.invalid")
      }
      if case .waitingForFirstRequest = self.state {
        try self.begin(request)
      } else if request.hasCommitReplayIDRequest {
        self.commit(request.commitReplayIDRequest)
      }
      if request.numRequested > 0 { try self.credit.add(request.numRequested) }
      self.wake()
    } catch {
      self.end(with: error)
    }
  }

  private func begin(_ request: Eventbus_V1_ManagedFetchRequest) throws(ServiceFault) {
    let (org, now) = (self.context.org, self.context.now)
    org.calls[self.context.method, default: 0] += 1
    if request.hasCommitReplayIDRequest {
      throw ManagedSubscriptions.fault("fetch.request.commit.request.restricted")
    }
    let record = try org.managed.find(
      developerName: request.developerName, id: request.subscriptionID)
    let topic = org.managed.records[record].topic
    let log = try org.log.log(topic, tenant: org.tokens.tenantGUID)
    guard org.mayOpenStream else { throw .clientLimit }
    guard org.deliveriesLeft > 0 else { throw .deliveryLimit }
    try org.managed.take(record, by: self.context.rpcID, at: now)
    (self.record, self.topic) = (record, topic)
    self.next = try Self.start(org.managed.records[record], log, at: now)
    org.openStreams += 1
    self.fault = org.faults.take(
      FaultQueue.Call(
        method: "ManagedSubscribe", topic: topic, at: now, nextEvent: self.next,
        hasReplayID: false))
    self.lastCommitAt = now
    self.state = .delivering
    self.hasResponded = true
    self.context.connection.respond(
      self.context.stream, headers: CallContext.responseHeaders, source: self)
  }

  /// After what was committed, or where the record says.
  private static func start(
    _ record: ManagedSubscriptions.Record, _ log: TopicLog, at now: Int64
  ) throws(ServiceFault) -> Int {
    guard let committed = record.committed else {
      return try log.start(preset: record.defaultReplay, replayID: [], at: now)
    }
    do throws(ServiceFault) {
      return try log.start(preset: .custom, replayID: committed, at: now)
    } catch {
      return try log.start(preset: record.errorRecoveryReplay, replayID: [], at: now)
    }
  }

  private func commit(_ request: Eventbus_V1_CommitReplayRequest) {
    guard let record = self.record, let log = self.context.org.log.topics[self.topic] else {
      return
    }
    let now = self.context.now
    self.lastCommitAt = now
    let replayID = Array(request.replayID)
    let isValid = (try? log.start(preset: .custom, replayID: replayID, at: now)) != nil
    let failure = self.context.org.managed.commit(replayID, record, isValid: isValid)
    let answer = Eventbus_V1_CommitReplayResponse.with {
      $0.commitRequestID = request.commitRequestID
      $0.replayID = request.replayID
      $0.processTime = now
      if let failure {
        $0.error.code = .commit
        $0.error.msg = failure
      }
    }
    // One answer covers the commits before it, but none that failed.
    if let last = self.answers.last, !last.hasError, failure == nil { self.answers.removeLast() }
    self.answers.append(answer)
    let delay = self.context.org.managed.records[record].answerDelay
    guard delay > 0 else {
      self.isAnswering = true
      return
    }
    self.context.connection.after(milliseconds: delay) { [weak self] in
      self?.isAnswering = true
      self?.wake()
    }
  }

  func inputEnded() {
    self.end(with: ServiceFault(status: .ok, code: nil, message: ""))
  }

  func closed() {
    let isClean = if case .ended = self.state { true } else { false }
    self.state = .ended(.endWithoutTrailers)
    self.release(isClean: isClean)
    if let fault = self.fault { self.context.org.faults.putBack(fault) }
    self.fault = nil
  }

  private func release(isClean: Bool) {
    guard let record = self.record else { return }
    self.record = nil
    self.context.org.openStreams -= 1
    self.context.org.managed.release(record, isClean: isClean, at: self.context.now)
  }

  // MARK: Time and events

  func tick(at now: Int64) {
    guard case .delivering = self.state else { return }
    if now - self.lastCommitAt >= ManagedSubscriptions.commitTime {
      return self.end(with: ManagedSubscriptions.noCommit)
    }
    let interval = self.context.org.configuration.keepaliveInterval
    if case .keepalive = self.credit.due(at: now, keepaliveInterval: interval) {
      self.keepaliveIsDue = true
      self.wake()
    }
  }

  var due: Int64? {
    guard case .delivering = self.state else { return nil }
    let deadline = self.lastCommitAt + ManagedSubscriptions.commitTime
    guard self.credit.pending > 0 else { return deadline }
    let interval = self.context.org.configuration.keepaliveInterval
    return min(deadline, self.credit.due(keepaliveInterval: interval))
  }

  func eventsArrived() { self.wake() }

  private func wake() {
    guard case .delivering = self.state else { return }
    if let fault = self.fault, fault.afterEvents == self.delivered { self.perform(fault) }
    self.context.connection.resume(self.context.stream)
  }

  // MARK: To the client

  private func end(with fault: ServiceFault) {
    if case .ended = self.state { return }
    let trailers = self.context.trailers(of: fault)
    self.state = .ended(.end(trailers: trailers))
    self.release(isClean: true)
    if self.hasResponded {
      self.context.connection.resume(self.context.stream)
    } else {
      self.context.connection.respondWithTrailersOnly(self.context.stream, trailers)
    }
  }

  func fill(_ bytes: inout [UInt8]) -> ResponseStep {
    switch self.state {
    case .ended(let step):
      self.answer(&bytes)
      return step
    case .waitingForFirstRequest, .stalled: return .more
    case .delivering: break
    }
    let org = self.context.org
    guard let log = org.log.topics[self.topic] else { return .more }
    self.next = max(self.next, log.firstRetained(at: self.context.now))
    let available = log.entries.count - self.next
    let rpcID = Array(self.context.rpcID.utf8)
    let limit = self.limit(available: available)
    // A commit is answered alone or with events.
    if self.isAnswering, limit == 0 || self.answers.count > 1 || self.random.chance(0.5) {
      self.answer(&bytes)
    }
    if limit > 0 {
      if self.isAnswering, let answer = self.answers.first {
        let message = Eventbus_V1_ManagedFetchResponse.with { $0.commitResponse = answer }
        self.builder.suffix = (try? message.serializedBytes()) ?? []
        self.answers.removeAll()
        self.isAnswering = false
      }
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
    } else if self.keepaliveIsDue, self.credit.pending > 0 {
      self.keepaliveIsDue = false
      self.builder.appendKeepalive(
        latest: org.keepalivePosition(self.topic), rpcID: rpcID, pending: self.credit.pending,
        to: &bytes)
      self.credit.responded(0, at: self.context.now)
    }
    return .more
  }

  /// Writes the answers to commits as responses without events.
  private func answer(_ bytes: inout [UInt8]) {
    guard self.isAnswering else { return }
    self.isAnswering = false
    for answer in self.answers {
      let message = Eventbus_V1_ManagedFetchResponse.with {
        $0.rpcID = self.context.rpcID
        $0.pendingNumRequested = Int32(self.credit.pending)
        $0.commitResponse = answer
      }
      let serialized: [UInt8] = (try? message.serializedBytes()) ?? []
      MessageDeframer.frame(serialized, to: &bytes)
    }
    self.answers.removeAll()
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
    return max(0, limit)
  }

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
    case .goAway: self.context.connection.goAway()
    case .damage: self.context.org.damagedEvents[self.topic, default: []].insert(self.next)
    case .drop: self.context.connection.close()
    case .endWithoutTrailers:
      self.state = .ended(.endWithoutTrailers)
      self.release(isClean: true)
      self.context.connection.resume(self.context.stream)
    case .loseAnswer: break
    case .stall: self.state = .stalled
    case .truncate:
      self.state = .stalled
      self.context.connection.truncate(self.context.stream)
    }
  }
}
