internal import GRPCCore
internal import Pipeline
internal import PubSubAPI

/// Finds the schemas of a response before it is passed on, so that the receiver never waits for
/// one.
struct SchemaResolver<Transport: ClientTransport>: Sendable {
  let library: SchemaLibrary
  let fetcher: SchemaFetcher<Transport>
  /// The maximum text size of the schemas fetched for one response.
  let maxByteCount: Int

  struct Resolution {
    var schemas = ResponseSchemas()
    /// The size of the schemas that this response was the first to need.
    var newByteCount = 0
  }

  /// - Parameters:
  ///   - onFetch: called once if a schema has to be fetched.
  ///   - onRetry: called for each attempt that failed.
  /// - Throws: why a schema will not come, also if the task is cancelled.
  func resolve(
    _ view: FetchResponseView, onFetch: () -> Void,
    onRetry: (SourceFailure, _ delay: Duration) -> Void
  ) async throws(MissingSchema) -> Resolution {
    var resolution = Resolution()
    var isFetching = false
    resolution.schemas.reserveCapacity(view.events.count)
    for field in view.events.map(\.schemaID) {
      if view.with(field, { resolution.schemas.takeKnown($0) }) { continue }
      guard view.with(field, EventLimits.isSchemaID) else {
        // Reported when the event is decoded.
        resolution.schemas.takeInvalid()
        continue
      }
      let id = view.string(field)
      let schema: ResolvedSchema
      if let known = self.library[id] {
        schema = known
      } else if resolution.newByteCount > self.maxByteCount {
        // A legitimate service never needs so many new schemas for one response.
        schema = self.refusal(id)
      } else {
        schema = try await Self.elsewhere { () async throws(MissingSchema) in
          if let stored = self.library.stored(id) { return stored }
          if !isFetching { onFetch() }
          isFetching = true
          do throws(SourceFailure) {
            return try await self.fetch(id, onRetry: onRetry)
          } catch {
            throw MissingSchema(id: id, failure: error)
          }
        }
        resolution.newByteCount += schema.byteCount
      }
      resolution.schemas.take(schema)
    }
    return resolution
  }

  /// Tells the receiver of the events about their schemas.
  ///
  /// - Throws: why events with these schemas cannot be passed on.
  func prepare(
    _ schemas: [ResolvedSchema], options: PubSubSourceOptions
  ) async throws(MissingSchema) {
    guard let prepare = options.beforeHandingOn else { return }
    let known = schemas.compactMap { schema in
      schema.entity.map {
        PubSubSourceOptions.SchemaOfObject(
          entity: $0, schemaID: String(decoding: schema.id, as: UTF8.self))
      }
    }
    do throws(SourceFailure) {
      try await Self.elsewhere { () async throws(SourceFailure) in try await prepare(known) }
    } catch {
      throw MissingSchema(id: known.first?.schemaID, failure: error)
    }
  }

  /// Reading, parsing and storing a schema takes long, so it is not done on the thread that moves
  /// the bytes.
  private static func elsewhere<Value, Failure: Error>(
    _ work: () async throws(Failure) -> Value
  ) async throws(Failure) -> Value {
    try await withTaskExecutorPreference(globalConcurrentExecutor, operation: work)
  }

  /// - Throws: why the schema will not come, also if the task is cancelled.
  @discardableResult
  func fetch(
    _ id: String, onRetry: (SourceFailure, _ delay: Duration) -> Void
  ) async throws(SourceFailure) -> ResolvedSchema {
    self.library.add(id, json: try await self.fetcher.fetch(id, onRetry: onRetry))
  }

  private func refusal(_ id: String) -> ResolvedSchema {
    ResolvedSchema(
      Array(id.utf8),
      .failure(
        UndecodableEvent(
          reason: "schema \(id) was not requested: the schemas of one response have more than "
            + "\(self.maxByteCount) bytes")),
      byteCount: 0)
  }
}

/// A schema that events need, and why it will not come or cannot be used.
struct MissingSchema: Error {
  /// Nil if no single schema is at fault.
  var id: String?
  var failure: SourceFailure
}

extension FetchResponseView {
  /// Lends the bytes of a field.
  func with<Value>(_ field: Field, _ body: (UnsafeBufferPointer<UInt8>) -> Value) -> Value {
    self.bytes.withUnsafeBufferPointer { body(UnsafeBufferPointer(rebasing: $0[field.range])) }
  }
}
