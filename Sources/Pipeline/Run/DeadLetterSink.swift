public import JSON

/// An event that cannot become rows, with the reason.
public struct DeadLetter: Sendable {
  public var topic: String
  public var event: RawEvent
  public var cause: UndecodableEvent

  public init(topic: String, event: RawEvent, cause: UndecodableEvent) {
    self.topic = topic
    self.event = event
    self.cause = cause
  }
}

/// Where dead letters go. They are part of the commit of the batch they stood in, so the calls are
/// those of a `Sink`.
public protocol DeadLetterSink: AnyObject {
  func recover(from state: JSONValue?) throws
  func append(_ letter: DeadLetter) throws
  func flush(finish: Bool) throws -> JSONValue
  func committed() throws -> Bool
}
