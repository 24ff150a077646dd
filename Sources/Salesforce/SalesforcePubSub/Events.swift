internal import HTTP2Transport

/// The events of one topic, in the order of the stream.
///
/// Each iteration is a subscription of its own, which ends when the loop is left. Events are requested
/// as the loop takes them: at most 100 are outstanding or waiting, so a slow loop slows the service
/// down.
///
/// A subscription that breaks is resumed where it broke, for as long as the client's `retry` allows:
/// inside one iteration no event is missed, and none comes twice. The loop throws
///
/// - `PubSubError`, when the service refuses the subscription or retries are over.
///   `disposition(sentReplayID:)` says whether a later attempt may help. To continue, call
///   `events(of:after:)` with the replay ID of the last event;
/// - `CancellationError`, when its task is cancelled.
///
/// It ends without an error only when the client is shut down.
public struct Events: AsyncSequence, Sendable {
  /// One event.
  public typealias Element = Event
  /// `PubSubError` or `CancellationError`.
  public typealias Failure = any Error

  /// Where a subscription begins.
  public enum Start: Sendable, Hashable {
    /// With what is published once the subscription stands.
    case latest
    /// With the oldest event that the service keeps: 72 hours.
    case earliest
    /// With the event after this one. On channels, events with the same replay ID are skipped.
    case replayID([UInt8])
  }

  let open: @Sendable () -> EventStream<HTTP2ClientTransport>

  /// Opens a subscription of its own.
  public func makeAsyncIterator() -> Iterator { Iterator(lease: Lease(self.open())) }

  /// One subscription. For one task at a time.
  public struct Iterator: AsyncIteratorProtocol {
    let lease: Lease

    /// The next event; nil when the client was shut down.
    ///
    /// Throws `PubSubError` and `CancellationError`; nil follows an error.
    public mutating func next() async throws -> Event? { try await self.lease.stream.next() }
  }

  /// Closes the subscription when the iterator is gone.
  final class Lease: Sendable {
    let stream: EventStream<HTTP2ClientTransport>
    init(_ stream: EventStream<HTTP2ClientTransport>) { self.stream = stream }
    deinit { self.stream.close() }
  }
}
