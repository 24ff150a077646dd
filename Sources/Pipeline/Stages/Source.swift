/// A response of the service: some events, or none (a keepalive).
public protocol SourceResponse: Sendable {
  var eventCount: Int { get }
  /// Position of the subscription after this response; empty bytes when the peer gave none.
  var latestReplayID: ReplayID { get }
  /// Credit still open after this response.
  var pendingCredit: Int { get }
}

/// An event as it came, for what cannot be decoded.
public struct RawEvent: Sendable {
  public var replayID: [UInt8]
  public var eventID: [UInt8]
  public var schemaID: String
  public var payload: [UInt8]

  public init(replayID: [UInt8], eventID: [UInt8], schemaID: String, payload: [UInt8]) {
    self.replayID = replayID
    self.eventID = eventID
    self.schemaID = schemaID
    self.payload = payload
  }
}

/// Why a topic, or the run, cannot go on.
public struct SourceFailure: Error, Sendable, CustomStringConvertible {
  /// What the decision depends on; the message is for people (ServiceErrors.md#decision-classes).
  public enum Disposition: String, Sendable {
    case unavailable, refused, invalidReplay, quota, bug, configuration
  }

  public var disposition: Disposition
  /// Stable word for reports: `replay_id_corrupted`, `topic_not_found`.
  public var reason: String
  /// What failed, on which topic, what to do.
  public var description: String
  /// A refusal that says nothing about other topics.
  public var isOfTopicAlone = false

  public init(_ disposition: Disposition, reason: String, _ description: String) {
    self.disposition = disposition
    self.reason = reason
    self.description = description
  }
}

/// Why one event cannot become rows. Goes to the dead letters with the raw event.
public struct UndecodableEvent: Error, Sendable {
  public var reason: String
  /// Path of the field, dotted; empty when the payload as a whole is at fault.
  public var fieldPath: String
  /// Byte offset in the payload; nil when none applies.
  public var offset: Int?

  public init(reason: String, fieldPath: String = "", offset: Int? = nil) {
    self.reason = reason
    self.fieldPath = fieldPath
    self.offset = offset
  }
}

public enum SourceSignal<Response: SourceResponse>: Sendable {
  /// The stream of a topic is about to be (re)opened. The reply says from where; nil: not at all.
  case opening(topic: Int, reply: @Sendable (StartPoint?) -> Void)
  /// The subscription has been sent on a live connection.
  case opened(topic: Int)
  /// Everything that is needed to decode the response is there.
  case response(topic: Int, Response, receivedAt: ContinuousClock.Instant)
  /// Events were delivered that had been exported before, or come again with another stream: they
  /// are not handed on.
  case passedOver(topic: Int, eventCount: Int)
  /// A response has come and is kept: its schemas are being fetched, or its place in the stream is not
  /// known yet. From here to the next response, silence is not the service's.
  case holding(topic: Int)
  /// A schema could not be fetched. It is asked for again after `delay`.
  case schemasFailed(topic: Int, SourceFailure, delay: Duration)
  /// The stream broke and will be opened again after `delay`.
  case retrying(topic: Int, SourceFailure, delay: Duration)
  /// Nobody took the responses of a topic for so long that its stream was closed, before the service
  /// would. All that it had delivered has been handed on; it is opened again when there is room.
  case heldBack(topic: Int)
  /// The last signal of a topic: drained after `stop`, or failed.
  case ended(topic: Int, SourceFailure?)
  /// Something else has come that the runner waits for.
  case woken
  /// The user asked for a clean stop.
  case interrupted
}

/// Where events come from. Driven by one task; see `PipelineRunner`.
public protocol Source {
  associatedtype Response: SourceResponse

  var topics: [SourceTopic] { get }

  /// The next signal of any topic, in order of arrival; nil when none came until `deadline`.
  func next(until deadline: ContinuousClock.Instant) async -> SourceSignal<Response>?

  /// Waits without taking anything: everything else stays where it is.
  ///
  /// - Returns: true when the user has asked for a clean stop, false at `deadline`.
  func interruption(until deadline: ContinuousClock.Instant) async -> Bool

  /// Adds no more credit. What still arrives within 2 s is handed on, then each topic ends.
  func stop()

  /// Events of a topic had been exported before and do not count: if the source asks for no more
  /// than a limit of the run, it may ask for so many more.
  func allow(_ count: Int, topic: Int)

  /// A run would resume after this ID: every store has made durable what comes up to it. Called when
  /// the run begins, too, with what is stored.
  func becameDurable(_ resume: ReplayID, topic: Int)

  /// Opens the stream of a topic again that ended with `invalidReplay`, or because it was refused.
  func reopen(topic: Int)

  /// The layout of an event's rows.
  ///
  /// - Throws: `UndecodableEvent` when its schema cannot be used.
  func layout(
    ofEvent index: Int, of response: Response, topic: Int
  ) throws(UndecodableEvent) -> RecordLayout

  /// Appends the rows of an event and its `RecordBatch.Event`; leaves the batch as it was on error.
  func decode(
    event index: Int, of response: Response, topic: Int, into batch: RecordBatch
  ) throws(UndecodableEvent)

  func rawEvent(_ index: Int, of response: Response) -> RawEvent
}

extension Source {
  /// Only a source that keeps a position itself needs to know.
  public func becameDurable(_ resume: ReplayID, topic: Int) {}
}

/// A topic that is subscribed to.
public struct SourceTopic: Sendable {
  public var name: String
  /// Several entities share the stream: groups of equal replay IDs occur.
  public var isChannel: Bool
  /// Where to begin when no position exists.
  public var start: StartPoint?

  public init(name: String, isChannel: Bool, start: StartPoint?) {
    self.name = name
    self.isChannel = isChannel
    self.start = start
  }
}
