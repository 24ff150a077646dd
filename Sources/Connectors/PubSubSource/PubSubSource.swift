internal import Avro
internal import Clocks
internal import EventLoop
package import GRPCCore
package import Pipeline
package import PubSubAPI

/// The topics of one org as a `Source`: one stream per topic over one connection, and schemas by
/// the schema ID in each event.
package final class PubSubSource<Transport: ClientTransport>: Source {
  package typealias Response = PubSubResponse

  package let topics: [SourceTopic]
  private let options: PubSubSourceOptions
  private let clock: ProcessClock
  private let signals: SignalQueue<SourceSignal<PubSubResponse>>
  private let streams: [TopicStream<Transport>]
  /// Makes the calls of the only topic; nil for `Subscribe`.
  private let managed: ManagedStream<Transport>?
  /// Topics whose streams are to be started.
  private let openings: AsyncStream<Int>
  private let openingsSink: AsyncStream<Int>.Continuation
  private let schemas: SchemaResolver<Transport>
  @exclusivity(unchecked) private var renewals = SchemaRenewals()
  @exclusivity(unchecked) private var decoders: [TopicDecoders]
  /// The text size of the schemas in `decoders`.
  @exclusivity(unchecked) private var decoderByteCount = 0

  package init(
    topics: [SourceTopic], client: PubSubClient<Transport>, credentials: any CredentialsSource,
    options: PubSubSourceOptions
  ) {
    self.topics = topics
    self.options = options
    let clock = client.clock
    self.clock = clock
    self.signals = SignalQueue(limit: PubSubSourceOptions.readAheadBytes, clock: clock)
    self.decoders = topics.map { _ in TopicDecoders() }
    let library = SchemaLibrary(
      maxByteCount: options.maxSchemaByteCount, cache: options.schemaCache,
      onUnexpectedID: options.onUnexpectedSchemaID)
    let schemas = SchemaResolver(
      library: library,
      fetcher: SchemaFetcher(
        client: client, credentials: credentials, options: options, clock: StreamClock(clock)),
      maxByteCount: options.maxSchemaByteCount)
    self.schemas = schemas
    self.streams = topics.enumerated().map { [signals] index, topic in
      TopicStream(
        index: index, topic: topic.name, client: client, credentials: credentials,
        schemas: schemas, options: options,
        maxEvents: options.allowance(ofTopic: index, among: topics.count), signals: signals,
        clock: StreamClock(clock))
    }
    self.managed = options.managed.map { [streams] in ManagedStream($0, of: streams[0]) }
    (self.openings, self.openingsSink) = AsyncStream.makeStream()
    for index in topics.indices { self.openingsSink.yield(index) }
  }

  /// Runs the streams. Run this alongside the runner, and cancel it afterwards.
  package var background: @Sendable () async -> Void {
    { [streams, managed, openings] in
      // Discards the results of tasks that have ended.
      await withDiscardingTaskGroup { group in
        for await index in openings {
          group.addTask {
            if let managed { await managed.run() } else { await streams[index].run() }
          }
        }
        group.cancelAll()
      }
    }
  }

  /// Asks the runner for a clean stop. Can be called from any thread.
  package var interrupt: @Sendable () -> Void {
    { [signals] in signals.post(.interrupted, isUrgent: true) }
  }

  /// Makes the runner look for other work. Can be called from any thread.
  package var wake: @Sendable () -> Void {
    { [signals] in signals.post(.woken) }
  }

  package func next(
    until deadline: ContinuousClock.Instant
  ) async -> SourceSignal<PubSubResponse>? {
    self.limitDecoders()
    return await self.signals.receive(until: deadline)
  }

  package func poll() -> SourceSignal<PubSubResponse>? {
    self.limitDecoders()
    return self.signals.poll()
  }

  package func interruption(until deadline: ContinuousClock.Instant) async -> Bool {
    // Only interruptions are urgent.
    await self.signals.receive(until: deadline, urgentOnly: true) != nil
  }

  package func stop() {
    for stream in self.streams { stream.stop() }
  }

  package func allow(_ count: Int, topic: Int) {
    if self.options.maxDelivered == nil { self.streams[topic].allow(count) }
  }

  package func becameDurable(_ resume: ReplayID, topic: Int) {
    self.managed?.becameDurable(resume)
  }

  /// Lets a managed subscription confirm the last position and closes its call, which takes a few
  /// seconds at most. Call this after the runner has ended and before `background` is cancelled.
  package func finish() async {
    guard let managed = self.managed else { return }
    self.stop()
    managed.finish()
    let deadline = self.clock.now + Self.finishingTime
    while case let now = self.clock.now, now < deadline, !managed.isDone {
      // The only error is cancellation, which ends the streams as well.
      try? await self.clock.sleep(
        until: self.clock.nextLook(from: now, after: .milliseconds(20)))
      if Task.isCancelled { return }
    }
  }

  /// The time for draining, confirming and closing.
  private static var finishingTime: Duration { .seconds(15) }

  /// The progress of the managed subscription; nil without one.
  package var managedProgress: ManagedProgress? { self.managed?.progress }

  package func reopen(topic: Int) { self.openingsSink.yield(topic) }

  /// Called between responses. Drops all decoders if there are too many; those in use are
  /// recreated.
  private func limitDecoders() {
    guard self.decoderByteCount > self.options.maxSchemaByteCount else { return }
    for topic in self.decoders.indices { self.decoders[topic] = TopicDecoders() }
    self.decoderByteCount = 0
  }

  package func layout(
    ofEvent index: Int, of response: PubSubResponse, topic: Int
  ) throws(UndecodableEvent) -> RecordLayout {
    let eventID = response.view.events[index].eventID
    guard response.view.with(eventID, EventLimits.isEventID) else {
      throw UndecodableEvent(
        reason: "the event ID has \(eventID.count) bytes, or contains U+0000; at most "
          + "\(EventLimits.maxEventIDByteCount) bytes are allowed. The letter has its beginning and "
          + "the SHA-256 of the complete ID")
    }
    return try self.decoder(response, index, topic).layout
  }

  package func decode(
    event index: Int, of response: PubSubResponse, topic: Int, into batch: RecordBatch
  ) throws(UndecodableEvent) {
    let decoder = try self.decoder(response, index, topic)
    let event = response.view.events[index]
    do {
      try response.view.bytes.withUnsafeBufferPointer { bytes in
        _ = try decoder.decode(
          eventID: UnsafeBufferPointer(rebasing: bytes[event.eventID.range]),
          replayID: UnsafeBufferPointer(rebasing: bytes[event.replayID.range]),
          payload: UnsafeBufferPointer(rebasing: bytes[event.payload.range]), into: batch)
      }
    } catch let error as EventDecodingError {
      throw UndecodableEvent(error)
    } catch {
      preconditionFailure("decode throws nothing but EventDecodingError: \(error)")
    }
  }

  package func decode(
    consecutive events: Range<Int>, of response: PubSubResponse, topic: Int,
    into batch: RecordBatch
  ) {
    guard let first = events.first, let decoder = try? self.decoder(response, first, topic),
      decoder.layout === batch.layout
    else { return }
    response.decode(events, with: decoder, into: batch)
  }

  package func rawEvent(_ index: Int, of response: PubSubResponse) -> RawEvent {
    let event = response.view.events[index]
    let eventID = Array(response.view[event.eventID])
    let schemaID = Array(response.view[event.schemaID])
    return RawEvent(
      replayID: Array(response.view[event.replayID]),
      eventID: response.view.with(event.eventID, EventLimits.isEventID)
        ? eventID : EventLimits.standIn(for: eventID),
      schemaID: String(
        decoding: schemaID.isEmpty || response.view.with(event.schemaID, EventLimits.isSchemaID)
          ? schemaID : EventLimits.standIn(for: schemaID), as: UTF8.self),
      payload: Array(response.view[event.payload]))
  }

  /// The time after which the event goes to the dead letters instead.
  private static var renewalTime: Duration { .seconds(30) }

  package func renewSchema(
    ofEvent index: Int, of response: PubSubResponse, topic: Int,
    receivedAt: ContinuousClock.Instant
  ) async {
    let id = response.view.string(response.view.events[index].schemaID)
    guard self.renewals.begin(id, receivedAt: receivedAt, now: self.clock.now) else { return }
    let schemas = self.schemas
    let renewed = await withTaskGroup(of: ResolvedSchema?.self) { group in
      group.addTask { try? await schemas.fetch(id) { _, _ in } }
      group.addTask { [clock] in
        try? await clock.sleep(for: Self.renewalTime)
        return nil
      }
      defer { group.cancelAll() }
      return await group.next() ?? nil
    }
    guard let renewed else { return }
    for index in self.decoders.indices {
      self.decoders[index].replace(renewed.id, self.makeDecoder(renewed, topic: index))
    }
  }

  private func decoder(
    _ response: PubSubResponse, _ index: Int, _ topic: Int
  ) throws(UndecodableEvent) -> AvroEventDecoder {
    guard let schema = response.schemas[index] else {
      let schemaID = response.view.events[index].schemaID
      if schemaID.isEmpty { throw UndecodableEvent(reason: "the event names no schema") }
      throw UndecodableEvent(
        reason:
          "the event's schema ID of \(schemaID.count) bytes is not valid: only visible ASCII, "
          + "at most \(EventLimits.maxSchemaIDByteCount) bytes, is allowed")
    }
    if let known = self.decoders[topic].find(schema) { return try known.get() }
    let decoder = self.makeDecoder(schema, topic: topic)
    // A schema that is refused only for this response may be available for another.
    if schema.byteCount > 0 {
      self.decoders[topic].add(schema, decoder)
      self.decoderByteCount += schema.byteCount
    }
    return try decoder.get()
  }

  private func makeDecoder(
    _ schema: ResolvedSchema, topic: Int
  ) -> Result<AvroEventDecoder, UndecodableEvent> {
    schema.content.flatMap { content in
      do throws(EventDecodingError) {
        return .success(
          try AvroEventDecoder(
            schema: content, schemaID: String(decoding: schema.id, as: UTF8.self),
            topic: self.topics[topic].name,
            options: EventDecodingOptions(recordIDs: self.options.recordIDs)))
      } catch {
        return .failure(UndecodableEvent(error))
      }
    }
  }
}

extension UndecodableEvent {
  fileprivate init(_ error: EventDecodingError) {
    self.init(
      reason: error.reason, fieldPath: error.path, offset: error.byteOffset,
      isOfOutdatedSchema: error.code == .outdated)
  }
}
