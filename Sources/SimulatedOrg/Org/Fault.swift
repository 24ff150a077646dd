/// Something that goes wrong on purpose, once or several times, in calls that begin later.
public struct Fault: Sendable, Equatable {
  public enum Action: Sendable, Equatable {
    /// End the call with a gRPC status number, `error-code` (without prefix; nil for none) and message.
    case status(Int, code: String?, message: String)
    /// RST_STREAM with this HTTP/2 error code.
    case reset(UInt32)
    /// GOAWAY; the call goes on.
    case goAway
    /// Close the TCP connection without a word.
    case drop
    /// End the stream without trailers.
    case endWithoutTrailers
    /// Send nothing more, and keep the stream open.
    case stall
    /// Send a message of which the second half is missing, then end the stream without trailers.
    case truncate
  }

  public var action: Action
  /// `Subscribe`, `GetTopic`, `GetSchema`, `Publish`, `PublishStream`.
  public var method: String
  /// Only calls for this topic; nil for all. Subscribe only.
  public var topic: String?
  /// Subscribe: number of events to deliver before.
  public var afterEvents: Int
  /// How many calls it hits.
  public var times: Int

  public init(
    _ action: Action, method: String = "Subscribe", topic: String? = nil, afterEvents: Int = 0,
    times: Int = 1
  ) {
    self.action = action
    self.method = method
    self.topic = topic
    self.afterEvents = afterEvents
    self.times = times
  }
}

/// The faults that wait for a call.
package struct FaultQueue {
  private var faults: [Fault] = []

  package var count: Int { self.faults.count }

  package mutating func add(_ fault: Fault) {
    if fault.times > 0 { self.faults.append(fault) }
  }

  package mutating func removeAll() { self.faults.removeAll() }

  /// The first fault for such a call; one use of it is taken.
  package mutating func take(method: String, topic: String?) -> Fault? {
    guard
      let index = self.faults.firstIndex(where: {
        $0.method == method && ($0.topic == nil || $0.topic == topic)
      })
    else { return nil }
    let fault = self.faults[index]
    self.faults[index].times -= 1
    if self.faults[index].times == 0 { self.faults.remove(at: index) }
    return fault
  }
}
