internal import HTTPClient

extension Bucket {
  /// Tries everything that a writer needs on an object of its own, and deletes it: a conditional PUT,
  /// a second one that must fail, a read, a listing.
  ///
  /// - Parameters:
  ///   - prefix: of the keys of the writer; empty, or with a slash at its end.
  ///   - id: makes the key unique among writers that try at the same time.
  /// - Throws: an error that names what does not work. The object is deleted then, too, if it can be.
  package func probe(prefix: String, id: UInt64) async throws {
    let key = "\(prefix)_probe-\(id)"
    do {
      try await self.probe(key)
    } catch {
      // The first error matters.
      try? await self.delete(key)
      throw error
    }
    try await self.delete(key)
  }

  private static let unconditional =
    "it does not support conditional writes, so two hosts could overwrite each other's commits; use a "
    + "store, or a version of it, that supports them"

  private func probe(_ key: String) async throws {
    let name = self.address.name(of: key)
    let text = Array("pubsub-etl: can be deleted\n".utf8)
    do {
      // A proxy may have sent the request twice, so that the object exists already.
      if case .occupied = try await self.create(key, .bytes(text), type: "text/plain") {
        throw ObjectStoreError(.retry, "\(name) exists; another program tries the bucket")
      }
    } catch let error as ObjectStoreError where error.disposition == .unsupported {
      throw ObjectStoreError(
        .unsupported, "\(error.message); \(Self.unconditional)", code: error.code,
        status: error.status)
    }
    let second = try await self.put(key, .bytes(Array("other\n".utf8)), if: .ifAbsent)
    guard second == .preconditionFailed else {
      throw ObjectStoreError(
        .unsupported,
        "PUT \(name): the store replaced an object in spite of If-None-Match; \(Self.unconditional)"
      )
    }
    guard try await self.get(key, maxByteCount: 4096) == text else {
      throw ObjectStoreError(
        .unsupported, "GET \(name): the object that was stored a moment ago has another content")
    }
    var isListed = false
    try await self.list(prefix: key) { object in
      isListed = isListed || object.key == key
      return !isListed
    }
    guard isListed else {
      throw ObjectStoreError(
        .unsupported, "LIST \(name): the object that was stored a moment ago is not listed")
    }
  }
}
