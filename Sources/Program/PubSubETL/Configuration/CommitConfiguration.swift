import JSON

/// When the events that have arrived are made durable together (`commit`).
struct CommitConfiguration: KeyedObject, Sendable, Equatable {
  /// Unless the file says it, the smallest `commitMaxEvents` of the pipeline's sinks.
  var maxEvents = 100_000
  var maxBytes = 16 << 20
  var maxDelay = Duration.seconds(1)

  static var keys: [Key<Self>] {
    // The numbers of other sinks are named, since they replace this one.
    let others = SinkRegistry.types.compactMap { $0 as? any BulkSink.Type }
      .filter { $0.commitMaxEvents != Self().maxEvents }
      .map { " With a \($0.type) sink the default is \($0.commitMaxEvents)." }
    return [
      .key(
        "max_events", \.maxEvents, .integer(in: 1...1_000_000),
        "The most events in a commit." + others.joined(), example: 20_000),
      .key(
        "max_bytes", \.maxBytes, .byteCount(in: 1 << 10...1 << 30),
        "The most bytes of encoded output in a commit.", example: "64MiB"),
      .key(
        "max_delay", \.maxDelay, .duration(in: .milliseconds(1) ... .seconds(600)),
        "The longest that an event waits for others before it is committed.", example: "5s"),
    ]
  }
}
