internal import Avro
internal import Digest
internal import EventLoop
internal import Pipeline

/// The schemas of a run by their IDs, shared by the streams of all topics. An ID never changes its
/// meaning, so each is asked for once, as long as there are not too many.
final class SchemaLibrary: Sendable {
  private struct State {
    var schemas: [String: ResolvedSchema] = [:]
    var byteCount = 0
  }

  private let maxByteCount: Int
  private let onUnexpectedID: @Sendable (String) -> Void
  private let state = Lock(State())

  /// - Parameters:
  ///   - maxByteCount: schemas beyond it are dropped, all together.
  ///   - onUnexpectedID: called for an ID that is not the fingerprint of its text.
  init(maxByteCount: Int, onUnexpectedID: @escaping @Sendable (String) -> Void) {
    self.maxByteCount = maxByteCount
    self.onUnexpectedID = onUnexpectedID
  }

  subscript(id: String) -> ResolvedSchema? { self.state.withLock { $0.schemas[id] } }

  /// - Parameter json: the schema's text.
  func add(_ id: String, json: String) -> ResolvedSchema {
    let schema = ResolvedSchema(
      Array(id.utf8), self.parse(json, id: id),
      byteCount: json.utf8.count + PubSubSourceOptions.schemaOverhead)
    self.state.withLock { state in
      if state.byteCount > self.maxByteCount { state = State() }
      // Another stream may have been faster.
      guard state.schemas.updateValue(schema, forKey: id) == nil else { return }
      state.byteCount += schema.byteCount
    }
    return schema
  }

  private func parse(_ json: String, id: String) -> Result<Schema, UndecodableEvent> {
    do {
      let parsed = try Schema(parsing: Array(json.utf8))
      if let digest = try? parsed.md5Fingerprint(), digest.bytes.base64URL != id {
        self.onUnexpectedID(id)
      }
      return .success(parsed)
    } catch {
      return .failure(UndecodableEvent(reason: "schema \(id): \(error)"))
    }
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
