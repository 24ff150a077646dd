internal import Foundation
internal import PubSubMessages
internal import SimulatedOrg
internal import SwiftProtobuf

/// One ManagedSubscribe call: the org knows the position, and stores what the client commits.
final class ManagedSubscribeCall: EventCall {
  private let context: CallContext
  var delivery: EventDelivery
  /// The index of the subscription's record.
  private var record: Int?
  private var lastCommitAt: Int64
  /// Answers to commits that have not gone out.
  private var answers: [Eventbus_V1_CommitReplayResponse] = []
  private var isAnswering = false

  init(context: CallContext) {
    self.context = context
    self.delivery = EventDelivery(context)
    self.lastCommitAt = context.now
  }

  // MARK: From the client

  func received(_ message: [UInt8]) {
    if case .ended = self.delivery.state { return }
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
      if case .waitingForFirstRequest = self.delivery.state {
        try self.begin(request)
      } else if request.hasCommitReplayIDRequest {
        self.commit(request.commitReplayIDRequest)
      }
      if request.numRequested > 0 { try self.delivery.credit.add(request.numRequested) }
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
    (self.record, self.delivery.topic) = (record, topic)
    self.delivery.next = try Self.start(org.managed.records[record], log, at: now)
    org.openStreams += 1
    self.delivery.fault = org.faults.take(
      FaultQueue.Call(
        method: "ManagedSubscribe", topic: topic, at: now, nextEvent: self.delivery.next,
        hasReplayID: false))
    self.lastCommitAt = now
    self.delivery.state = .delivering
    self.sendHeaders()
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
    guard let record = self.record, let log = self.context.org.log.topics[self.delivery.topic]
    else { return }
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
    let isClean = if case .ended = self.delivery.state { true } else { false }
    self.delivery.state = .ended(.endWithoutTrailers)
    self.release(isClean: isClean)
    self.putBackFault()
  }

  func ended() { self.release(isClean: true) }

  private func release(isClean: Bool) {
    guard let record = self.record else { return }
    self.record = nil
    self.context.org.openStreams -= 1
    self.context.org.managed.release(record, isClean: isClean, at: self.context.now)
  }

  // MARK: Time

  func tick(at now: Int64) {
    guard case .delivering = self.delivery.state else { return }
    if now - self.lastCommitAt >= ManagedSubscriptions.commitTime {
      return self.end(with: ManagedSubscriptions.noCommit)
    }
    let interval = self.context.org.configuration.keepaliveInterval
    if case .keepalive = self.delivery.credit.due(at: now, keepaliveInterval: interval) {
      self.delivery.keepaliveIsDue = true
      self.wake()
    }
  }

  var due: Int64? {
    guard case .delivering = self.delivery.state else { return nil }
    let deadline = self.lastCommitAt + ManagedSubscriptions.commitTime
    guard self.delivery.credit.pending > 0 else { return deadline }
    let interval = self.context.org.configuration.keepaliveInterval
    return min(deadline, self.delivery.credit.due(keepaliveInterval: interval))
  }

  // MARK: To the client

  func fill(_ bytes: inout [UInt8]) -> ResponseStep {
    switch self.delivery.state {
    case .ended(let step):
      self.answer(&bytes)
      return step
    case .waitingForFirstRequest, .settingUp, .stalled: return .more
    case .delivering: break
    }
    guard let log = self.context.org.log.topics[self.delivery.topic] else { return .more }
    let available = self.delivery.available(in: log)
    let limit = self.delivery.limit(available: available)
    // A commit is answered alone or with events.
    if self.isAnswering, limit == 0 || self.answers.count > 1 || self.delivery.random.chance(0.5) {
      self.answer(&bytes)
    }
    if limit > 0 {
      if self.isAnswering, let answer = self.answers.first {
        let message = Eventbus_V1_ManagedFetchResponse.with { $0.commitResponse = answer }
        self.delivery.builder.suffix = (try? message.serializedBytes()) ?? []
        self.answers.removeAll()
        self.isAnswering = false
      }
      self.deliver(limit, from: log, to: &bytes)
    } else if self.delivery.keepaliveIsDue, self.delivery.credit.pending > 0 {
      self.delivery.appendKeepalive(to: &bytes)
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
        $0.pendingNumRequested = Int32(self.delivery.credit.pending)
        $0.commitResponse = answer
      }
      let serialized: [UInt8] = (try? message.serializedBytes()) ?? []
      MessageDeframer.frame(serialized, to: &bytes)
    }
    self.answers.removeAll()
  }

  /// A call meets one fault.
  func passedFault() {}
}
