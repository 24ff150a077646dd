internal import EventLoop
internal import GRPCCore
internal import PubSubAPI
internal import SchemaStore

/// The schemas of one org: in memory, in files, at the service, in this order.
final class EventSchemas: Sendable {
  private struct State {
    var schemas: [String: EventSchema] = [:]
    var byteCount = 0
    var files: SchemaCache?
  }

  /// Text of the schemas that are kept; beyond it all are dropped, together.
  private static let maxByteCount = 64 << 20
  /// What a schema counts in addition to its text.
  private static let entryOverhead = 16 << 10

  private let directory: String?
  private let organizationID: @Sendable () async throws -> String
  private let fetch: @Sendable (String) async throws -> String
  private let state = Lock(State())

  /// - Parameters:
  ///   - directory: of the files; nil for none.
  ///   - organizationID: of the org whose schemas these are, 18 characters.
  ///   - fetch: asks the service for the text of a schema.
  init(
    directory: String?, organizationID: @escaping @Sendable () async throws -> String,
    fetch: @escaping @Sendable (String) async throws -> String
  ) {
    self.directory = directory
    self.organizationID = organizationID
    self.fetch = fetch
  }

  func schema(_ id: String) async throws -> EventSchema {
    if let known = self.state.withLock({ $0.schemas[id] }) { return known }
    guard SchemaID.isValid(id.utf8) else {
      throw PubSubError(
        .malformedResponse, status: .dataLoss,
        "an event has a schema ID of \(id.utf8.count) bytes that is not 1 to "
          + "\(SchemaID.maxByteCount) visible ASCII characters")
    }
    let json =
      if let files = try await self.files() {
        try await files.json(of: id) { try await self.fetch(id) }
      } else {
        try await self.fetch(id)
      }
    let schema = try EventSchema(id: id, json: json)
    self.state.withLock { state in
      if state.byteCount > Self.maxByteCount {
        state.schemas = [:]
        state.byteCount = 0
      }
      // Another task may have been faster.
      guard state.schemas.updateValue(schema, forKey: id) == nil else { return }
      state.byteCount += json.utf8.count + Self.entryOverhead
    }
    return schema
  }

  private func files() async throws -> SchemaCache? {
    guard let directory = self.directory else { return nil }
    if let known = self.state.withLock({ $0.files }) { return known }
    let files = SchemaCache(directory: directory, org: try await self.organizationID())
    return self.state.withLock { state in
      state.files = state.files ?? files
      return state.files
    }
  }
}
