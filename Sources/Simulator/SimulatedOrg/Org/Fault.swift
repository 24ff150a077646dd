/// A scripted fault that hits later calls, once or several times.
package struct Fault: Sendable, Equatable {
  package enum Action: Sendable, Equatable {
    /// End the call with a gRPC status number, `error-code` (without prefix; nil for none) and message.
    case status(Int, code: String?, message: String)
    /// RST_STREAM with this HTTP/2 error code.
    case reset(UInt32)
    /// GOAWAY; the call continues.
    case goAway
    /// Close the TCP connection without sending anything.
    case drop
    /// End the stream without trailers.
    case endWithoutTrailers
    /// Send nothing more, and keep the stream open.
    case stall
    /// Send a message of which the second half is missing, then end the stream without trailers.
    case truncate
    /// Deliver the next event with a payload that is not valid Avro; the call continues.
    case damage
    /// Do what the request asks for, then close the TCP connection without answering.
    case loseAnswer
  }

  package var action: Action
  /// `Subscribe`, `ManagedSubscribe`, `GetTopic`, `GetSchema`, `Publish`, `PublishStream`, `Login`.
  package var method: String
  /// Only calls for this topic; nil for all. Subscribe only.
  package var topic: String?
  /// Subscribe: number of events to deliver before.
  package var afterEvents: Int
  /// The number of calls that it hits.
  package var times: Int
  /// The calls that it hits.
  package var moment: FaultMoment

  package init(
    _ action: Action, method: String = "Subscribe", topic: String? = nil, afterEvents: Int = 0,
    times: Int = 1, moment: FaultMoment = .next
  ) {
    self.action = action
    self.method = method
    self.topic = topic
    self.afterEvents = afterEvents
    self.times = times
    self.moment = moment
  }

  /// Only a call that names a replay ID can be refused for it.
  var needsReplayID: Bool {
    if case .status(_, let code, _) = self.action {
      code?.hasPrefix("subscription.fetch.replayid.") == true
    } else {
      false
    }
  }
}

/// The faults that wait for a call.
package struct FaultQueue {
  /// The properties of a call that a fault may depend on.
  package struct Call {
    var method: String
    var topic: String?
    var now: Int64
    /// Subscribe: index of the event that is delivered next, and whether the client named a replay ID.
    var nextEvent: Int?
    var hasReplayID: Bool

    package init(
      method: String, topic: String? = nil, at now: Int64, nextEvent: Int? = nil,
      hasReplayID: Bool = false
    ) {
      self.method = method
      self.topic = topic
      self.now = now
      self.nextEvent = nextEvent
      self.hasReplayID = hasReplayID
    }
  }

  private struct Waiting {
    var fault: Fault
    var trigger: FaultTrigger
  }

  private var waiting: [Waiting] = []

  package var count: Int { self.waiting.count }

  package mutating func add(_ fault: Fault) {
    if fault.times > 0 {
      self.waiting.append(Waiting(fault: fault, trigger: FaultTrigger(fault.moment)))
    }
  }

  package mutating func removeAll() { self.waiting.removeAll() }

  /// Returns the first fault for such a call and counts one use. Faults at an event come after
  /// those that hit the call anyway, the nearest event first.
  package mutating func take(_ call: Call) -> Fault? {
    var hit: Int?
    var nearest: (index: Int, event: Int)?
    // Every fault is checked, because each counts the calls that it could hit.
    for index in self.waiting.indices where Self.matches(self.waiting[index].fault, call) {
      if case .event(let number) = self.waiting[index].fault.moment {
        guard let next = call.nextEvent, number > next else { continue }
        if number < nearest?.event ?? .max { nearest = (index, number) }
      } else if self.waiting[index].trigger.fires(at: call.now), hit == nil {
        hit = index
      }
    }
    guard let index = hit ?? nearest?.index else { return nil }
    return self.use(index, nextEvent: call.nextEvent)
  }

  /// The fault at the nearest event that a running subscription has yet to deliver.
  package mutating func takeAtEvent(topic: String, nextEvent: Int) -> Fault? {
    var nearest: (index: Int, event: Int)?
    for (index, waiting) in self.waiting.enumerated() {
      guard case .event(let number) = waiting.fault.moment, number > nextEvent,
        waiting.fault.topic == nil || waiting.fault.topic == topic
      else { continue }
      if number < nearest?.event ?? .max { nearest = (index, number) }
    }
    return nearest.map { self.use($0.index, nextEvent: nextEvent) }
  }

  private mutating func use(_ index: Int, nextEvent: Int?) -> Fault {
    var fault = self.waiting[index].fault
    if case .event(let number) = fault.moment, let nextEvent {
      fault.afterEvents = number - 1 - nextEvent
    }
    self.waiting[index].fault.times -= 1
    if self.waiting[index].fault.times == 0 { self.waiting.remove(at: index) }
    return fault
  }

  /// Returns a fault whose call ended before the event; another call will meet it.
  package mutating func putBack(_ fault: Fault) {
    guard case .event = fault.moment else { return }
    var fault = fault
    fault.times = 1
    self.add(fault)
  }

  private static func matches(_ fault: Fault, _ call: Call) -> Bool {
    fault.method == call.method && (fault.topic == nil || fault.topic == call.topic)
      && (call.hasReplayID || !fault.needsReplayID)
  }
}
