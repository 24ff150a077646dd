internal import HTTPClient

/// An object in a listing.
package struct StoredObject: Sendable, Equatable {
  package var key: String
  package var byteCount: Int
  package var etag: String?
}

extension Bucket {
  /// Hands over the objects whose keys begin with a prefix, in the order of the store, until the
  /// closure returns false. Within one folder, that is the order of the bytes of their keys.
  ///
  /// - Parameters:
  ///   - start: only keys after it.
  ///   - pageSize: the number of objects in one call.
  package func list(
    prefix: String, startAfter start: String? = nil, pageSize: Int = 1000,
    _ receive: (StoredObject) throws -> Bool
  ) async throws {
    var continuation: String?
    repeat {
      var call = Call(
        method: .get,
        query: [("list-type", "2"), ("prefix", prefix), ("max-keys", "\(pageSize)")])
      if let continuation {
        call.query.append(("continuation-token", continuation))
      } else if let start {
        call.query.append(("start-after", start))
      }
      let page = try await self.document(call, "ListBucketResult")
      for entry in page.all("Contents") {
        guard let key = entry["Key"], let byteCount = entry["Size"].flatMap({ Int($0) }),
          byteCount >= 0, key.hasPrefix(prefix)
        else { throw self.unusable(call, "an object without key or size, or with another prefix") }
        if let start, !start.utf8.lexicographicallyPrecedes(key.utf8) {
          throw self.unusable(call, "a key that is not after start-after")
        }
        let object = StoredObject(key: key, byteCount: byteCount, etag: entry["ETag"])
        guard try receive(object) else { return }
      }
      continuation = try self.next(
        page, of: call, "NextContinuationToken", before: continuation)
    } while continuation != nil
  }

  /// Where the next page begins; nil after the last one.
  func next(
    _ page: XMLElement, of call: Call, _ name: String, before: String?
  ) throws(ObjectStoreError) -> String? {
    guard page["IsTruncated"] == "true" else { return nil }
    guard let next = page[name], !next.isEmpty, next != before else {
      throw self.unusable(call, "no new \(name), although more follows")
    }
    return next
  }

  func unusable(_ call: Call, _ what: String) -> ObjectStoreError {
    ObjectStoreError(.unsupported, "\(self.name(of: call)): the listing has \(what)")
  }
}
