internal import Bytes
internal import Cryptography
internal import HTTPClient

/// What a store says about an object.
package struct ObjectHead: Sendable, Equatable {
  package var byteCount: Int
  /// In quotes, for `Bucket.Condition.ifMatch`; nil if the store has none.
  package var etag: String?
  /// The SHA-256 that the writer computed of the content, in hexadecimal digits. Nil if another program
  /// wrote the object.
  package var sha256: String?

  func isContent(_ content: ObjectContent) -> Bool {
    self.byteCount == content.byteCount && self.sha256 == content.sha256.hex
  }
}

extension Bucket {
  package enum Condition: Sendable {
    case none
    /// Nothing has the key.
    case ifAbsent
    /// The object is still this one.
    case ifMatch(etag: String)

    var headers: RequestSigner.Headers {
      switch self {
      case .none: []
      case .ifAbsent: [("if-none-match", "*")]
      case .ifMatch(let etag): [("if-match", etag)]
      }
    }
  }

  package enum PutOutcome: Sendable, Equatable {
    case stored(etag: String?)
    /// The condition does not hold. After an earlier attempt without an answer, that attempt may be
    /// the reason: see `create`.
    case preconditionFailed
  }

  package enum CreateOutcome: Sendable, Equatable {
    case created
    /// The object is there already, with the same content: an earlier attempt has stored it.
    case existed
    /// Another writer has stored something else.
    case occupied(ObjectHead)
  }

  static let hashHeader = "x-amz-meta-sha256"

  /// Stores an object. The store checks the digest of what it receives.
  package func put(
    _ key: String, _ content: ObjectContent, type: String = "application/octet-stream",
    if condition: Condition = .none
  ) async throws -> PutOutcome {
    let hash = content.sha256
    let call = Call(
      method: .put, key: key,
      headers: condition.headers + [
        ("content-type", type), ("x-amz-checksum-sha256", hash.bytes.base64),
        (Self.hashHeader, hash.hex),
      ], content: content)
    do {
      return .stored(etag: try await self.send(call).header("ETag"))
    } catch let error as ObjectStoreError {
      switch (error.disposition, condition) {
      case (.preconditionFailed, .ifAbsent), (.preconditionFailed, .ifMatch): break
      // The object that was to be the same is gone.
      case (.missing, .ifMatch): break
      default: throw error
      }
      return .preconditionFailed
    }
  }

  /// Stores an object under a key that nothing has yet. Repeating the call after a lost answer is
  /// safe: the digest tells the own object from that of another writer.
  package func create(
    _ key: String, _ content: ObjectContent, type: String = "application/octet-stream"
  ) async throws -> CreateOutcome {
    switch try await self.put(key, content, type: type, if: .ifAbsent) {
    case .stored: return .created
    case .preconditionFailed:
      guard let head = try await self.head(key) else {
        throw ObjectStoreError(
          .retry,
          "\(self.address.name(of: key)) was there and has been deleted meanwhile; another program "
            + "writes to the bucket")
      }
      return head.isContent(content) ? .existed : .occupied(head)
    }
  }

  /// Nil if the key or the bucket does not exist: the response does not say which.
  package func head(_ key: String) async throws -> ObjectHead? {
    let call = Call(method: .head, key: key)
    do {
      return try self.head(await self.send(call), of: call)
    } catch let error as ObjectStoreError where error.status == 404 {
      return nil
    }
  }

  /// Deletes an object. One that does not exist is deleted, too.
  package func delete(_ key: String) async throws {
    do {
      _ = try await self.send(Call(method: .delete, key: key))
    } catch let error as ObjectStoreError where error.disposition == .missing {}
  }

  /// The content of an object, or of a range of it; nil if nothing has the key.
  ///
  /// - Parameter maxByteCount: more is an error of the disposition `damaged`.
  package func get(
    _ key: String, range: Range<Int>? = nil, maxByteCount: Int
  ) async throws -> [UInt8]? {
    var bytes: [UInt8] = []
    let head = try await self.read(key, range: range) { piece in
      guard bytes.count + piece.count <= maxByteCount else {
        throw ObjectStoreError(
          .damaged, "\(self.address.name(of: key)) has more than \(maxByteCount) bytes")
      }
      bytes += piece
    }
    return head == nil ? nil : bytes
  }

  /// Hands over the content of an object, or of a range of it, in pieces. What was handed over counts
  /// only when the call has returned: then its length and digest were right.
  ///
  /// - Parameter range: not empty, within the object.
  /// - Returns: what the store says of the part that was read; nil if nothing has the key.
  package func read(
    _ key: String, range: Range<Int>? = nil, _ receive: ([UInt8]) throws -> Void
  ) async throws -> ObjectHead? {
    var call = Call(method: .get, key: key)
    if let range {
      call.headers.append(("range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)"))
    }
    let stream: HTTPBodyStream
    do {
      stream = try await self.stream(call)
    } catch let error as ObjectStoreError where error.disposition == .missing {
      return nil
    }
    let head = try self.head(stream.response, of: call)
    if let range {
      let part = stream.response.header("Content-Range")
      guard stream.response.status == 206, head.byteCount == range.count,
        part?.hasPrefix("bytes \(range.lowerBound)-\(range.upperBound - 1)/") == true
      else {
        throw ObjectStoreError(
          .unsupported, "\(self.name(of: call)): the store answered with another range",
          status: stream.response.status)
      }
    }
    var hash = SHA256()
    var byteCount = 0
    do {
      while let piece = try await stream.next() {
        byteCount += piece.count
        hash.update(piece)
        try receive(piece)
      }
    } catch let error as HTTPError {
      throw ObjectStoreError(error)
    }
    guard byteCount == head.byteCount else {
      throw ObjectStoreError(
        .retry, "\(self.name(of: call)): \(byteCount) of \(head.byteCount) bytes were received")
    }
    if range == nil, let expected = head.sha256, expected != hash.snapshot().hex {
      throw ObjectStoreError(
        .damaged,
        "\(self.name(of: call)): the content has another SHA-256 than its metadata says; it was damaged "
          + "in the store or on the way")
    }
    return head
  }

  private func head(_ response: HTTPResponse, of call: Call) throws(ObjectStoreError) -> ObjectHead
  {
    guard let byteCount = response.header("Content-Length").flatMap({ Int($0) }), byteCount >= 0
    else {
      throw ObjectStoreError(
        .unsupported, "\(self.name(of: call)): the response has no usable Content-Length",
        status: response.status)
    }
    return ObjectHead(
      byteCount: byteCount, etag: response.header("ETag"),
      sha256: response.header(Self.hashHeader))
  }
}
