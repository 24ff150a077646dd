internal import Avro
internal import EventLoop
internal import Pipeline
internal import SchemaStore

/// The schemas of a run by their IDs, shared by the streams of all topics. An ID never changes its
/// meaning, so each schema is requested once, unless there are too many; the cache holds those of
/// earlier runs.
final class SchemaLibrary: Sendable {
  private struct State {
    var schemas: [String: ResolvedSchema] = [:]
    var byteCount = 0
  }

  private let maxByteCount: Int
  private let cache: SchemaCache?
  private let onUnexpectedID: @Sendable (String) -> Void
  private let state = Lock(State())

  /// - Parameters:
  ///   - maxByteCount: beyond this size, all schemas are dropped together.
  ///   - cache: the cache on disk; nil for none.
  ///   - onUnexpectedID: called for an ID that is not the fingerprint of its text.
  init(
    maxByteCount: Int, cache: SchemaCache? = nil,
    onUnexpectedID: @escaping @Sendable (String) -> Void
  ) {
    self.maxByteCount = maxByteCount
    self.cache = cache
    self.onUnexpectedID = onUnexpectedID
  }

  subscript(id: String) -> ResolvedSchema? { self.state.withLock { $0.schemas[id] } }

  /// A schema that an earlier run has stored; nil if it has to be fetched.
  func stored(_ id: String) -> ResolvedSchema? {
    self.cache?.find(id).map { self.add(id, .success($0.schema), json: $0.json) }
  }

  /// - Parameter json: the schema's text as received from the service.
  func add(_ id: String, json: String) -> ResolvedSchema {
    let content = self.parse(json, id: id)
    self.cache?.fetched(id, json: json, schema: try? content.get())
    return self.add(id, content, json: json)
  }

  private func add(
    _ id: String, _ content: Result<Schema, UndecodableEvent>, json: String
  ) -> ResolvedSchema {
    let schema = ResolvedSchema(
      Array(id.utf8), content,
      byteCount: json.utf8.count + PubSubSourceOptions.schemaOverhead)
    self.state.withLock { state in
      if state.byteCount > self.maxByteCount { state = State() }
      // Another stream may have added it in the meantime.
      guard state.schemas.updateValue(schema, forKey: id) == nil else { return }
      state.byteCount += schema.byteCount
    }
    return schema
  }

  private func parse(_ json: String, id: String) -> Result<Schema, UndecodableEvent> {
    do {
      let parsed = try Schema(parsing: Array(json.utf8))
      if let expected = parsed.serviceID, expected != id { self.onUnexpectedID(id) }
      return .success(parsed)
    } catch {
      return .failure(UndecodableEvent(reason: "schema \(id): \(error)"))
    }
  }
}
