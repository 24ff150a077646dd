internal import Bytes
package import Clocks
internal import Cryptography
package import HTTPClient

/// The objects of one bucket of S3-compatible storage.
///
/// Used from any task. A call whose credentials are refused is repeated once with new ones, if there
/// are any; nothing else is retried here. Every call throws `ObjectStoreError`, `CancellationError` when
/// the task is cancelled, or what the reader of a file throws.
package struct Bucket: Sendable {
  package let address: BucketAddress
  private let credentials: CredentialProvider
  private let http: HTTPClient
  package var clock: ProcessClock { self.http.clock }

  /// Answers other than objects are not larger: a page of a listing has 1,000 keys of up to 1,024 bytes.
  private static let maxAnswerBytes = 8 << 20
  private static let maxKeyBytes = 1024

  package init(_ address: BucketAddress, credentials: CredentialProvider, http: HTTPClient) {
    self.address = address
    self.credentials = credentials
    self.http = http
  }

  // MARK: Calls

  /// A call of the bucket, or of one of its objects.
  struct Call {
    var method: HTTPRequest.Method
    var key: String?
    var query: [(name: String, value: String)] = []
    /// Names in lower case.
    var headers: RequestSigner.Headers = []
    var content = ObjectContent.bytes([])
  }

  func name(of call: Call) -> String {
    "\(call.method.rawValue) \(self.address.name(of: call.key))"
  }

  /// The response to a successful call.
  func send(_ call: Call) async throws -> HTTPResponse {
    try await self.authorized(call) { request throws in
      let response = try await self.http.send(request, maxBodyBytes: Self.maxAnswerBytes)
      return (response, response, { response.body })
    }
  }

  /// The response to a successful call, whose body is still arriving.
  func stream(_ call: Call) async throws -> HTTPBodyStream {
    try await self.authorized(call) { request throws in
      let stream = try await self.http.stream(request)
      return (stream.response, stream, { try await stream.errorBody() })
    }
  }

  /// The response to a successful call as XML, with the root element that it must have.
  func document(_ call: Call, _ root: String) async throws -> XMLElement {
    let response = try await self.send(call)
    let document: XMLElement
    do {
      document = try XMLElement(parsing: response.body)
    } catch {
      throw ObjectStoreError(
        .retry,
        "\(self.name(of: call)): the response is not XML (\(error)); it may come from a proxy",
        status: response.status)
    }
    guard document.name == root else {
      throw ObjectStoreError(
        .configuration,
        "\(self.name(of: call)): the response has the element \(document.name.shown(upTo: 40)) instead "
          + "of \(root); check the endpoint", status: response.status)
    }
    return document
  }

  private typealias Answer<Value> = (
    head: HTTPResponse, value: Value, errorBody: () async throws -> [UInt8]
  )

  private func authorized<Value>(
    _ call: Call, _ send: (HTTPRequest) async throws -> Answer<Value>
  ) async throws -> Value {
    if let key = call.key { try self.check(key) }
    var isRepeated = false
    while true {
      let credentials = try await self.credentials.credentials()
      do {
        let answer = try await send(self.request(call, credentials))
        if (200..<300).contains(answer.head.status) { return answer.value }
        let error = ObjectStoreError(
          answer.head, body: try await answer.errorBody(), to: self.name(of: call),
          secrets: credentials.secrets, wallTime: self.http.clock.wallTime)
        guard error.disposition == .credentials, !isRepeated,
          await self.credentials.refused(credentials)
        else { throw error }
        isRepeated = true
      } catch let error as HTTPError {
        throw ObjectStoreError(error)
      }
    }
  }

  /// The error that the body of a successful response is.
  func error(_ document: XMLElement, of call: Call, _ response: HTTPResponse) -> ObjectStoreError {
    var response = response
    // Its code decides. Without a known one, the store is to blame, not the request.
    response.status = 500
    return ObjectStoreError(
      response, body: response.body, to: self.name(of: call), secrets: [],
      wallTime: self.http.clock.wallTime)
  }

  private func request(_ call: Call, _ credentials: StoreCredentials) -> HTTPRequest {
    let signer = RequestSigner(
      credentials: credentials, region: self.address.region, service: "s3")
    let time = RequestSigner.time(milliseconds: self.http.clock.wallTime)
    let path = self.address.path(of: call.key)
    let query = RequestSigner.canonicalQuery(call.query)
    let origin = self.address.origin
    let hash = call.content.sha256.hex
    var headers = call.headers
    headers.append(("x-amz-content-sha256", hash))
    headers.append(("x-amz-date", time))
    if let token = credentials.sessionToken { headers.append(("x-amz-security-token", token)) }
    // What curl makes of the URL.
    let host = String(origin.drop { $0 != "/" }.dropFirst(2))
    let signature = signer.sign(
      call.method.rawValue, path: path, query: query, headers: headers + [("host", host)],
      payloadHash: hash, time: time)
    headers.append(("authorization", signature.authorization))
    var request = HTTPRequest(
      call.method, origin + path + (query.isEmpty ? "" : "?\(query)"),
      headers: headers.map { ($0.name, RequestSigner.canonicalValue($0.value)) })
    switch call.content {
    case .bytes(let bytes): request.body = bytes
    case .file(let file): request.source = file
    }
    request.allowsPlaintext = !self.address.endpoint.isSecure
    request.allowsCompression = false
    return request
  }

  /// Keys that every store takes: some normalise paths, or refuse what others store.
  private func check(_ key: String) throws(ObjectStoreError) {
    let parts = key.split(separator: "/", omittingEmptySubsequences: false)
    guard (1...Self.maxKeyBytes).contains(key.utf8.count),
      parts.allSatisfy({ !$0.isEmpty && $0 != "." && $0 != ".." }),
      key.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
    else {
      throw ObjectStoreError(
        .configuration,
        "the key \(key.shown(upTo: 300)) cannot be used: a key has 1 to \(Self.maxKeyBytes) bytes, no "
          + "control characters, and no empty, '.' or '..' part; check prefix")
    }
  }
}

extension StoreCredentials {
  /// What a server might repeat.
  fileprivate var secrets: [String] {
    [self.secretAccessKey] + (self.sessionToken.map { [$0] } ?? [])
  }
}
