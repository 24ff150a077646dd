internal import Avro
internal import Digest
public import GRPCCore
public import Pipeline
public import PubSubAPI

extension FetchResponseView: SourceResponse {
  public var eventCount: Int { self.events.count }
  // The view has a field of that name, a range of its bytes.
  public var latestReplayID: ReplayID { ReplayID(Array(self[self.latestReplayIDField])) }
}

/// The topics of one org as a `Source`: a stream per topic over one connection, schemas by the
/// event's own schema ID.
public final class PubSubSource<Transport: ClientTransport>: Source {
  public typealias Response = FetchResponseView

  /// What is to be done beside the runner.
  private enum Work: Sendable {
    case stream(Int)
    case schema(String)
  }

  public let topics: [SourceTopic]
  private let options: PubSubSourceOptions
  private let signals = SignalQueue<SourceSignal<FetchResponseView>>(
    limit: PubSubSourceOptions.readAheadBytes)
  private let streams: [TopicStream<Transport>]
  private let fetcher: SchemaFetcher<Transport>
  private let schemaSignals = SignalQueue<SchemaSignal>(limit: .max)
  private let work: AsyncStream<Work>
  private let workSink: AsyncStream<Work>.Continuation
  /// IDs of schemas that have been asked for and not come.
  private var fetching: Set<String> = []
  private var decoders: [TopicDecoders]
  private var schemas: [String: KnownSchema] = [:]
  /// Of `schemas` and `decoders`.
  private var schemaByteCount = 0
  /// Of what was added for the response in hand.
  private var responseSchemaByteCount = 0
  /// `prepare` has begun with a response and not got it ready.
  private var isPreparing = false

  private struct KnownSchema {
    var content: Result<Schema, UndecodableEvent>
    /// Of its text, and something for each.
    var byteCount: Int
  }

  public init(
    topics: [SourceTopic], client: PubSubClient<Transport>, credentials: any CredentialsSource,
    options: PubSubSourceOptions
  ) {
    self.topics = topics
    self.options = options
    self.decoders = topics.map { _ in TopicDecoders() }
    self.streams = topics.enumerated().map { [signals] index, topic in
      TopicStream(
        index: index, topic: topic.name, client: client, credentials: credentials,
        options: options, signals: signals)
    }
    self.fetcher = SchemaFetcher(
      client: client, credentials: credentials, options: options, signals: self.schemaSignals)
    (self.work, self.workSink) = AsyncStream.makeStream()
    for index in topics.indices { self.workSink.yield(.stream(index)) }
  }

  /// What runs the streams and asks for schemas; to be run beside the runner and cancelled after it.
  public var background: @Sendable () async -> Void {
    { [streams, fetcher, work] in
      // Keeps nothing of what has ended.
      await withDiscardingTaskGroup { group in
        for await part in work {
          switch part {
          case .stream(let index): group.addTask { await streams[index].run() }
          case .schema(let id): group.addTask { await fetcher.run(id) }
          }
        }
        group.cancelAll()
      }
    }
  }

  /// Asks the runner for a clean stop. From any thread.
  public var interrupt: @Sendable () -> Void {
    { [signals, schemaSignals] in
      signals.post(.interrupted)
      // The runner may just be waiting for a schema.
      schemaSignals.post(.interrupted)
    }
  }

  public func next(
    until deadline: ContinuousClock.Instant
  ) async -> SourceSignal<FetchResponseView>? {
    await self.signals.receive(until: deadline)
  }

  public func stop() {
    for stream in self.streams { stream.stop() }
  }

  public func allow(_ count: Int, topic: Int) { self.streams[topic].allow(count) }

  public func reopen(topic: Int) { self.workSink.yield(.stream(topic)) }

  public func prepare(
    _ response: FetchResponseView, topic: Int, until deadline: ContinuousClock.Instant
  ) async throws(SourceFailure) -> Preparation {
    if !self.isPreparing { self.limitSchemas() }
    self.isPreparing = true
    for event in response.events
    where self.decoders[topic].find(response.bytes, event.schemaID.range) == nil {
      // Found out again when the event is decoded: nothing is kept of IDs that are none.
      guard response.with(event.schemaID, EventLimits.isSchemaID) else { continue }
      let id = response.string(event.schemaID)
      // A service that needs so many schemas for a response is no service: nothing is kept of them.
      guard self.responseSchemaByteCount <= self.options.maxSchemaByteCount else {
        let limit = self.options.maxSchemaByteCount
        let refusal = UndecodableEvent(
          reason: "schema \(id) was not asked for: the schemas of one response have more than "
            + "\(limit) bytes")
        self.decoders[topic].add(Array(id.utf8), .failure(refusal))
        continue
      }
      // Kept for the run, since an ID never changes its meaning.
      while self.schemas[id] == nil {
        if let outcome = try await self.awaitSchema(id, until: deadline) { return outcome }
      }
      guard let known = self.schemas[id] else { preconditionFailure("the loop ends with one") }
      let decoder = known.content.flatMap { schema -> Result<AvroEventDecoder, UndecodableEvent> in
        do throws(EventDecodingError) {
          return .success(
            try AvroEventDecoder(
              schema: schema, schemaID: id, topic: self.topics[topic].name,
              options: EventDecodingOptions(recordIDs: self.options.recordIDs)))
        } catch {
          return .failure(UndecodableEvent(error))
        }
      }
      self.decoders[topic].add(Array(id.utf8), decoder)
      self.schemaByteCount += known.byteCount
      self.responseSchemaByteCount += known.byteCount
    }
    self.isPreparing = false
    return .ready
  }

  /// Between responses: all are dropped when there are too many, and those in use are fetched again.
  private func limitSchemas() {
    if self.schemaByteCount > self.options.maxSchemaByteCount {
      self.schemas.removeAll()
      for topic in self.decoders.indices { self.decoders[topic] = TopicDecoders() }
      self.schemaByteCount = 0
    }
    self.responseSchemaByteCount = 0
  }

  public func layout(
    ofEvent index: Int, of response: FetchResponseView, topic: Int
  ) throws(UndecodableEvent) -> RecordLayout {
    let eventID = response.events[index].eventID
    guard response.with(eventID, EventLimits.isEventID) else {
      throw UndecodableEvent(
        reason: "an event ID of \(eventID.count) bytes: "
          + "\(EventLimits.maxEventIDByteCount) at most are taken, without U+0000; kept are its "
          + "beginning and the SHA-256 of the whole")
    }
    return try self.decoder(response, index, topic).layout
  }

  public func decode(
    event index: Int, of response: FetchResponseView, topic: Int, into batch: RecordBatch
  ) throws(UndecodableEvent) {
    let decoder = try self.decoder(response, index, topic)
    let event = response.events[index]
    do {
      try response.bytes.withUnsafeBufferPointer { bytes in
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

  public func rawEvent(_ index: Int, of response: FetchResponseView) -> RawEvent {
    let event = response.events[index]
    let eventID = Array(response[event.eventID])
    let schemaID = Array(response[event.schemaID])
    return RawEvent(
      replayID: Array(response[event.replayID]),
      eventID: response.with(event.eventID, EventLimits.isEventID)
        ? eventID : EventLimits.standIn(for: eventID),
      schemaID: String(
        decoding: schemaID.isEmpty || response.with(event.schemaID, EventLimits.isSchemaID)
          ? schemaID : EventLimits.standIn(for: schemaID), as: UTF8.self),
      payload: Array(response[event.payload]))
  }

  private func decoder(
    _ response: FetchResponseView, _ index: Int, _ topic: Int
  ) throws(UndecodableEvent) -> AvroEventDecoder {
    let schemaID = response.events[index].schemaID
    guard let found = self.decoders[topic].find(response.bytes, schemaID.range) else {
      guard !schemaID.isEmpty else {
        throw UndecodableEvent(reason: "the event names no schema")
      }
      guard response.with(schemaID, EventLimits.isSchemaID) else {
        throw UndecodableEvent(
          reason: "a schema ID of \(schemaID.count) bytes that is none: visible ASCII, "
            + "\(EventLimits.maxSchemaIDByteCount) bytes at most")
      }
      preconditionFailure("prepare was not called for a response of \(self.topics[topic].name)")
    }
    return try found.get()
  }

  /// Waits for news of schemas that were asked for, of this one or of others.
  ///
  /// - Returns: nil when there is an answer of some schema.
  private func awaitSchema(
    _ id: String, until deadline: ContinuousClock.Instant
  ) async throws(SourceFailure) -> Preparation? {
    if self.fetching.insert(id).inserted { self.workSink.yield(.schema(id)) }
    switch await self.schemaSignals.receive(until: deadline) {
    case nil: return .waiting
    case .interrupted: return .interrupted
    case .retrying(let failure, let delay): return .retrying(failure, delay: delay)
    case .ended(let ended, let result):
      self.fetching.remove(ended)
      let json = try result.get()
      let byteCount = json.utf8.count + PubSubSourceOptions.schemaOverhead
      self.schemas[ended] = KnownSchema(
        content: self.parse(json, id: ended), byteCount: byteCount)
      self.schemaByteCount += byteCount
      return nil
    }
  }

  private func parse(_ json: String, id: String) -> Result<Schema, UndecodableEvent> {
    do {
      let parsed = try Schema(parsing: Array(json.utf8))
      if let digest = try? parsed.md5Fingerprint(), digest.bytes.base64URL != id {
        self.options.onUnexpectedSchemaID(id)
      }
      return .success(parsed)
    } catch {
      return .failure(UndecodableEvent(reason: "schema \(id): \(error)"))
    }
  }
}

extension FetchResponseView {
  /// Lends the bytes of a field.
  fileprivate func with<Value>(
    _ field: Field, _ body: (UnsafeBufferPointer<UInt8>) -> Value
  ) -> Value {
    self.bytes.withUnsafeBufferPointer { body(UnsafeBufferPointer(rebasing: $0[field.range])) }
  }
}

extension UndecodableEvent {
  fileprivate init(_ error: EventDecodingError) {
    self.init(reason: error.reason, fieldPath: error.path, offset: error.byteOffset)
  }
}

extension [UInt8] {
  /// RFC 4648 section 5, without padding.
  fileprivate var base64URL: String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    var text: [UInt8] = []
    for start in stride(from: 0, to: self.count, by: 3) {
      let group = self[start..<Swift.min(start + 3, self.count)]
      let bits = group.enumerated().reduce(0) { $0 | Int($1.element) << (16 - 8 * $1.offset) }
      for index in 0...group.count { text.append(alphabet[bits >> (18 - 6 * index) & 63]) }
    }
    return String(decoding: text, as: UTF8.self)
  }
}
