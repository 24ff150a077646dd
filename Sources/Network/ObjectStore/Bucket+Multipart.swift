internal import Bytes
package import Cryptography
internal import HTTPClient

/// An upload in parts that is neither complete nor aborted.
package struct PendingUpload: Sendable, Equatable {
  package var key: String
  package var id: String
}

/// A part that the store has.
package struct UploadedPart: Sendable, Equatable {
  /// From 1 on.
  package var number: Int
  var etag: String
  var sha256: [UInt8]
}

extension Bucket {
  package enum CompletionOutcome: Sendable, Equatable {
    case completed
    /// The condition does not hold. After an earlier attempt without an answer, that attempt may be
    /// the reason.
    case preconditionFailed
    /// The upload is complete already, or was aborted: `head` tells which.
    case noSuchUpload
  }

  /// Begins an upload in parts.
  ///
  /// - Parameter sha256: of the complete object; part of what `head` returns.
  /// - Returns: its ID, to be noted durably before the first part is sent.
  package func beginUpload(
    _ key: String, sha256: HashValue, type: String = "application/octet-stream"
  ) async throws -> String {
    let call = Call(
      method: .post, key: key, query: [("uploads", "")],
      headers: [
        ("content-type", type), ("x-amz-checksum-algorithm", "SHA256"),
        (Self.hashHeader, sha256.hex),
      ])
    let answer = try await self.document(call, "InitiateMultipartUploadResult")
    guard let id = answer["UploadId"], !id.isEmpty else {
      throw ObjectStoreError(.retry, "\(self.name(of: call)): the response has no upload ID")
    }
    return id
  }

  /// Sends one part: 5 MiB to 5 GiB, the last one of any size.
  package func uploadPart(
    _ number: Int, _ content: FileContent, to upload: PendingUpload
  ) async throws -> UploadedPart {
    let hash = content.sha256.bytes
    let call = Call(
      method: .put, key: upload.key,
      query: [("partNumber", "\(number)"), ("uploadId", upload.id)],
      headers: [
        ("content-type", "application/octet-stream"), ("x-amz-checksum-sha256", hash.base64),
      ], content: .file(content))
    guard let etag = try await self.send(call).header("ETag") else {
      throw ObjectStoreError(.retry, "\(self.name(of: call)): the response has no ETag")
    }
    return UploadedPart(number: number, etag: etag, sha256: hash)
  }

  /// Makes the object of all parts.
  ///
  /// - Parameter parts: by number.
  package func completeUpload(
    _ upload: PendingUpload, _ parts: [UploadedPart], if condition: Condition = .ifAbsent
  ) async throws -> CompletionOutcome {
    let list = parts.map { part in
      "<Part><PartNumber>\(part.number)</PartNumber><ETag>\(part.etag.escapedForXML)</ETag>"
        + "<ChecksumSHA256>\(part.sha256.base64)</ChecksumSHA256></Part>"
    }
    let text =
      "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
      + list.joined() + "</CompleteMultipartUpload>"
    let call = Call(
      method: .post, key: upload.key, query: [("uploadId", upload.id)],
      headers: condition.headers + [("content-type", "application/xml")],
      content: .bytes(Array(text.utf8)))
    do {
      let response = try await self.send(call)
      // The status is sent before the work is done, and so says nothing about it.
      guard let document = try? XMLElement(parsing: response.body) else {
        throw ObjectStoreError(
          .retry, "\(self.name(of: call)): the response is not XML; the upload may be incomplete",
          status: response.status)
      }
      guard document.name == "CompleteMultipartUploadResult" else {
        throw self.error(document, of: call, response)
      }
      return .completed
    } catch let error as ObjectStoreError {
      switch error.disposition {
      case .preconditionFailed: return .preconditionFailed
      case .missing: return .noSuchUpload
      default: throw error
      }
    }
  }

  /// Drops an upload and its parts.
  ///
  /// - Returns: false if the upload does not exist.
  package func abortUpload(_ upload: PendingUpload) async throws -> Bool {
    do {
      _ = try await self.send(
        Call(method: .delete, key: upload.key, query: [("uploadId", upload.id)]))
      return true
    } catch let error as ObjectStoreError where error.disposition == .missing {
      return false
    }
  }

  /// Hands over the uploads that are neither complete nor aborted, of keys that begin with a prefix,
  /// until the closure returns false.
  package func listUploads(
    prefix: String, pageSize: Int = 1000, _ receive: (PendingUpload) throws -> Bool
  ) async throws {
    var markers: [(name: String, value: String)] = []
    repeat {
      var call = Call(
        method: .get, query: [("uploads", ""), ("prefix", prefix), ("max-uploads", "\(pageSize)")])
      call.query += markers
      let page = try await self.document(call, "ListMultipartUploadsResult")
      for entry in page.all("Upload") {
        guard let key = entry["Key"], let id = entry["UploadId"], !id.isEmpty, key.hasPrefix(prefix)
        else { throw self.unusable(call, "an upload without key or ID, or with another prefix") }
        guard try receive(PendingUpload(key: key, id: id)) else { return }
      }
      // SeaweedFS orders uploads by ID, and names no key.
      let next = [("key-marker", "NextKeyMarker"), ("upload-id-marker", "NextUploadIdMarker")]
        .compactMap { marker, name in page[name].map { (name: marker, value: $0) } }
        .filter { !$0.value.isEmpty }
      guard page["IsTruncated"] == "true" else { return }
      guard !next.isEmpty, next.map(\.value) != markers.map(\.value) else {
        throw self.unusable(call, "no new NextKeyMarker, although more follows")
      }
      markers = next
    } while true
  }
}

extension String {
  /// As the text of an element.
  fileprivate var escapedForXML: String {
    self.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
  }
}
