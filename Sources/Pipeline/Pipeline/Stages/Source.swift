/// A response of the service: some events, or none (a keepalive).
package protocol SourceResponse: Sendable {
  var eventCount: Int { get }
  /// The position of the subscription after this response; empty if the server sent none.
  var latestReplayID: ReplayID { get }
  /// Credit still open after this response.
  var pendingCredit: Int { get }
}

/// An event as received, for events that cannot be decoded.
package struct RawEvent: Sendable {
  package var replayID: [UInt8]
  package var eventID: [UInt8]
  package var schemaID: String
  package var payload: [UInt8]

  package init(replayID: [UInt8], eventID: [UInt8], schemaID: String, payload: [UInt8]) {
    self.replayID = replayID
    self.eventID = eventID
    self.schemaID = schemaID
    self.payload = payload
  }
}

/// Why a topic or the run cannot continue.
package struct SourceFailure: Error, Sendable, CustomStringConvertible {
  /// Decides what happens next, unlike the message, which is for people
  /// (ServiceErrors.md#decision-classes).
  package enum Disposition: String, Sendable {
    case unavailable, refused, invalidReplay, quota, bug, configuration
  }

  package var disposition: Disposition
  /// Stable word for reports: `replay_id_corrupted`, `topic_not_found`.
  package var reason: String
  /// What failed, on which topic, and what to do about it.
  package var description: String
  /// A refusal that says nothing about other topics.
  package var isOfTopicAlone = false

  package init(_ disposition: Disposition, reason: String, _ description: String) {
    self.disposition = disposition
    self.reason = reason
    self.description = description
  }
}

/// Why one event cannot become rows. Goes to the dead letters with the raw event.
package struct UndecodableEvent: Error, Sendable {
  package var reason: String
  /// Path of the field, dotted; empty when the payload as a whole is at fault.
  package var fieldPath: String
  /// Byte offset in the payload; nil if none applies.
  package var offset: Int?
  /// The schema was changed under the same ID; a new one may be able to decode the event.
  package var isOfOutdatedSchema = false

  package init(
    reason: String, fieldPath: String = "", offset: Int? = nil, isOfOutdatedSchema: Bool = false
  ) {
    self.reason = reason
    self.fieldPath = fieldPath
    self.offset = offset
    self.isOfOutdatedSchema = isOfOutdatedSchema
  }
}

package enum SourceSignal<Response: SourceResponse>: Sendable {
  /// The stream of a topic is about to be opened or reopened. The reply says from where; nil
  /// prevents it.
  case opening(topic: Int, reply: @Sendable (StartPoint?) -> Void)
  /// The subscription has been sent on a live connection.
  case opened(topic: Int)
  /// A response, with everything needed to decode it.
  case response(topic: Int, Response, receivedAt: ContinuousClock.Instant)
  /// The stream has proven useful since it was opened, so that earlier failures no longer count.
  case worked(topic: Int)
  /// The stream has delivered events that were exported before or that another stream will deliver
  /// again. They are not passed on.
  case passedOver(topic: Int, eventCount: Int)
  /// A response has arrived and is held back, because its schemas are being fetched or its place in
  /// the stream is not known yet. Until the next response, silence says nothing about the service.
  case holding(topic: Int)
  /// A schema could not be fetched. It is requested again after `delay`.
  case schemasFailed(topic: Int, SourceFailure, delay: Duration)
  /// The stream failed and will be reopened after `delay`.
  case retrying(topic: Int, SourceFailure, delay: Duration)
  /// The responses of a topic were not taken for so long that its stream was closed, before the
  /// service would close it. Everything delivered has been passed on; the stream is reopened when
  /// there is room.
  case heldBack(topic: Int)
  /// The last signal of a topic: drained after `stop`, or failed.
  case ended(topic: Int, SourceFailure?)
  /// Something else that the runner waits for has arrived.
  case woken
  /// The user asked for a clean stop.
  case interrupted
}

/// Where events come from. Driven by one task; see `PipelineRunner`.
package protocol Source {
  associatedtype Response: SourceResponse

  var topics: [SourceTopic] { get }

  /// The next signal of any topic, in order of arrival; nil if none came until `deadline`.
  func next(until deadline: ContinuousClock.Instant) async -> SourceSignal<Response>?

  /// The next signal, if it has arrived.
  func poll() -> SourceSignal<Response>?

  /// Waits for an interruption without taking any other signal.
  ///
  /// - Returns: true if the user has requested a clean stop, false at `deadline`.
  func interruption(until deadline: ContinuousClock.Instant) async -> Bool

  /// Adds no more credit. What still arrives within 2 s is passed on; then each topic ends.
  func stop()

  /// Events of a topic were exported before and do not count. A source that requests no more than a
  /// limit of the run may request this many more.
  func allow(_ count: Int, topic: Int)

  /// Every store has made the events up to this ID durable, so a run would resume after it. Also
  /// called when the run begins, with the stored position.
  func becameDurable(_ resume: ReplayID, topic: Int)

  /// Reopens the stream of a topic that ended with `invalidReplay` or because it was refused.
  func reopen(topic: Int)

  /// The layout of an event's rows.
  ///
  /// - Throws: `UndecodableEvent` when its schema cannot be used.
  func layout(
    ofEvent index: Int, of response: Response, topic: Int
  ) throws(UndecodableEvent) -> RecordLayout

  /// Appends the rows of an event and its `RecordBatch.Event`; on error, leaves the batch
  /// unchanged.
  func decode(
    event index: Int, of response: Response, topic: Int, into batch: RecordBatch
  ) throws(UndecodableEvent)

  /// Appends consecutive events as `decode(event:of:topic:into:)` does, up to the first that has
  /// another layout than the batch or cannot be decoded, and no further once the batch is large.
  func decode(
    consecutive events: Range<Int>, of response: Response, topic: Int, into batch: RecordBatch)

  func rawEvent(_ index: Int, of response: Response) -> RawEvent

  /// Fetches an event's schema again, unless that was done since the event was received. Returns in
  /// bounded time.
  func renewSchema(
    ofEvent index: Int, of response: Response, topic: Int, receivedAt: ContinuousClock.Instant
  ) async
}

extension Source {
  /// For sources that need not be read while a store waits for its server.
  package func poll() -> SourceSignal<Response>? { nil }

  /// Only a source that keeps its own position needs this.
  package func becameDurable(_ resume: ReplayID, topic: Int) {}

  /// For sources whose schemas never change.
  package func renewSchema(
    ofEvent index: Int, of response: Response, topic: Int, receivedAt: ContinuousClock.Instant
  ) async {}
}

/// A topic that is subscribed to.
package struct SourceTopic: Sendable {
  package var name: String
  /// Several entities share the stream: groups of equal replay IDs occur.
  package var isChannel: Bool
  /// Where to begin without a position.
  package var start: StartPoint?

  package init(name: String, isChannel: Bool, start: StartPoint?) {
    self.name = name
    self.isChannel = isChannel
    self.start = start
  }
}
