import Clocks
import EventLoop
import HTTPClient
import JSON
import TestSupport
import Testing

@testable import ObjectStore

@Suite("Object stores that misbehave")
struct HostileStoreTests {
  private let peer: PythonServer
  private let bucket: Bucket

  init() throws {
    self.peer = try PythonServer("hostile_store.py")
    self.bucket = try Self.bucket(self.peer)
  }

  private static func bucket(
    _ peer: PythonServer, _ configuration: HTTPClient.Configuration = .init()
  ) throws -> Bucket {
    let http = HTTPClient(configuration)
    let address = try BucketAddress(
      bucket: "exports",
      endpoint: ServiceAddress(isSecure: false, host: "127.0.0.1", port: Int(peer.port)))
    let keys = StoreCredentials(
      accessKeyID: "AKID", secretAccessKey: "hidden-secret", sessionToken: "hidden-token")
    return Bucket(
      address,
      credentials: CredentialProvider(
        .keys(keys), region: "us-east-1", http: http, environment: { _ in nil }), http: http)
  }

  private func error(_ body: () async throws -> Void) async throws -> ObjectStoreError {
    let error = try await #require(throws: ObjectStoreError.self) { try await body() }
    #expect(!error.message.contains("hidden"), "\(error)")
    return error
  }

  private func calls() async throws -> JSONValue {
    let url = "http://127.0.0.1:\(self.peer.port)/calls"
    return try JSONValue(parsing: try await HTTPClient().send(HTTPRequest(.get, url)).body)
  }

  private let content = ObjectContent.bytes(Array("content".utf8))

  // MARK: Errors

  private struct Refusal: Sendable, CustomTestStringConvertible {
    var key: String
    var disposition: ObjectStoreError.Disposition
    var text: String

    var testDescription: String { self.key }
  }

  private static let refusals = [
    Refusal(key: "403/AccessDenied", disposition: .denied, text: "their permissions on the bucket"),
    Refusal(key: "403/InvalidAccessKeyId", disposition: .credentials, text: "the access key"),
    Refusal(key: "400/ExpiredToken", disposition: .credentials, text: "have expired"),
    Refusal(key: "400/InvalidToken", disposition: .credentials, text: "check the session token"),
    Refusal(key: "403/SignatureDoesNotMatch", disposition: .denied, text: "check the secret key"),
    Refusal(
      key: "403/RequestTimeTooSkewed/skew", disposition: .denied, text: "s ahead of the store's"),
    Refusal(key: "404/NoSuchBucket", disposition: .configuration, text: "check the name"),
    Refusal(
      key: "301/PermanentRedirect/region", disposition: .configuration,
      text: "the bucket is in the region eu-west-1, so set region to that"),
    Refusal(
      key: "400/AuthorizationHeaderMalformed/body-region", disposition: .configuration,
      text: "the bucket is in the region eu-west-3, so set region to that"),
    Refusal(
      key: "307/TemporaryRedirect/endpoint", disposition: .configuration,
      text: "the store refers to exports.s3-us-west-2.amazonaws.com"),
    Refusal(key: "301/Strange", disposition: .configuration, text: "check endpoint and region"),
    Refusal(
      key: "409/ConditionalRequestConflict", disposition: .retry, text: "HTTP 409, Conditional"),
    Refusal(key: "409/OperationAborted", disposition: .retry, text: "HTTP 409"),
    Refusal(key: "400/RequestTimeout", disposition: .retry, text: "HTTP 400, RequestTimeout"),
    Refusal(key: "400/BadDigest", disposition: .retry, text: "other bytes than the digest"),
    Refusal(key: "500/InternalError", disposition: .retry, text: "HTTP 500, InternalError"),
    Refusal(key: "503/SlowDown/pause", disposition: .retry, text: "HTTP 503, SlowDown"),
    Refusal(key: "503/Strange", disposition: .retry, text: "HTTP 503, Strange"),
    Refusal(key: "429/Strange", disposition: .retry, text: "HTTP 429"),
    Refusal(key: "501/NotImplemented", disposition: .unsupported, text: "HTTP 501"),
    Refusal(key: "405/MethodNotAllowed", disposition: .unsupported, text: "HTTP 405"),
    Refusal(key: "400/EntityTooLarge", disposition: .full, text: "make files smaller"),
    Refusal(key: "507/XMinioStorageFull", disposition: .full, text: "free space in the store"),
    Refusal(key: "400/InvalidArgument", disposition: .bug, text: "please report this"),
  ]

  @Test("Each refusal has its consequence and its remedy", arguments: Self.refusals)
  private func refused(_ refusal: Refusal) async throws {
    let key = "error/\(refusal.key)"
    let error = try await self.error { _ = try await self.bucket.put(key, self.content) }
    #expect(error.disposition == refusal.disposition)
    #expect(error.message.contains(refusal.text), "\(error)")
    #expect(error.message.hasPrefix("PUT s3://exports/\(key): HTTP "), "\(error)")
    #expect(error.message.contains("token <redacted>"), "\(error)")
    #expect(error.retryAfter == (refusal.key.hasSuffix("pause") ? .seconds(7) : nil))
    // Keys that are given cannot be replaced, so nothing is repeated.
    #expect(try await self.calls()[key]?.integer == 1)
  }

  @Test("HEAD has no body, but a status and the region") func headErrors() async throws {
    #expect(try await self.bucket.head("nothing") == nil)
    let denied = try await self.error { _ = try await self.bucket.head("error/403/AccessDenied") }
    #expect(denied.disposition == .denied)
    let redirect = try await self.error {
      _ = try await self.bucket.head("error/301/PermanentRedirect/region")
    }
    #expect(redirect.disposition == .configuration)
    #expect(redirect.message.contains("eu-west-1"))
    let expired = try await self.error { _ = try await self.bucket.head("error/400/ExpiredToken") }
    #expect(expired.disposition == .credentials)
    let moved = try await self.error {
      _ = try await self.bucket.head("error/400/Any/region")
    }
    #expect(moved.disposition == .configuration)
    #expect(moved.message.contains("so set region to that"))
    let busy = try await self.error { _ = try await self.bucket.head("error/503/SlowDown") }
    #expect(busy.disposition == .retry)
  }

  @Test("Expired credentials are replaced once") func renewal() async throws {
    let directory = try TemporaryDirectory()
    let file = "\(directory.path)/credentials"
    let http = HTTPClient()
    func write(_ id: String) throws {
      try runProgram(
        "sh", "-c",
        "printf '[default]\\naws_access_key_id=\(id)\\naws_secret_access_key=s\\n' > \(file)")
    }
    try write("OLD")
    let provider = CredentialProvider(
      .sharedFile(path: file, profile: nil), region: "us-east-1", http: http,
      environment: { _ in nil })
    let bucket = Bucket(self.bucket.address, credentials: provider, http: http)
    let error = try await self.error {
      _ = try await bucket.get("renewal/1", maxByteCount: 10)
    }
    #expect(error.disposition == .credentials)
    #expect(try await self.calls()["renewal/1"]?.integer == 2)
    _ = try await provider.credentials()
    try write("NEW")
    #expect(try await bucket.get("renewal/2", maxByteCount: 10)?.count == 10)
    #expect(try await self.calls()["renewal/2"]?.integer == 2)
    #expect(try await bucket.get("renewal/3", maxByteCount: 10)?.count == 10)
    #expect(try await self.calls()["renewal/3"]?.integer == 1)
  }

  // MARK: Writes

  @Test("A write whose answer was lost is recognised as the own one") func lostAnswer()
    async throws
  {
    let error = try await self.error { _ = try await self.bucket.create("lost/1", self.content) }
    #expect(error.disposition == .retry)
    #expect(try await self.bucket.create("lost/1", self.content) == .existed)
    let calls = try await self.calls()
    // Two attempts, and a look at the digest.
    #expect(calls["lost/1"]?.integer == 3)
  }

  @Test("What passes is repeated as long as the schedule allows") func retries() async throws {
    var configuration = HTTPClient.Configuration()
    configuration.clock = ProcessClock(MovableTime())
    let bucket = try Self.bucket(self.peer, configuration)
    let pauses = Lock<[Duration]>([])
    let schedule = RetrySchedule(giveUpAfter: .seconds(60))
    func note(_ error: ObjectStoreError, _ pause: Duration) {
      pauses.withLock { $0.append(pause) }
    }
    let outcome = try await bucket.retrying(schedule, onRetry: note) {
      try await bucket.create("busy/3/1", self.content)
    }
    #expect(outcome == .created)
    let told = pauses.withLock { $0 }
    // The store asks for seven seconds the second time.
    #expect(told.count == 3)
    #expect(told.first.map { (.milliseconds(800) ... .milliseconds(1200)).contains($0) } == true)
    #expect(told.dropFirst().first == .seconds(7))
    let error = try await self.error {
      try await bucket.retrying(schedule) { _ = try await bucket.head("busy/1000/1") }
    }
    #expect(error.disposition == .retry)
    #expect(error.message.contains("; gave up after "), "\(error)")
    let denied = try await self.error {
      try await bucket.retrying(schedule) { _ = try await bucket.head("error/403/AccessDenied") }
    }
    #expect(denied.disposition == .denied)
    #expect(try await self.calls()["error/403/AccessDenied"]?.integer == 1)
  }

  @Test("The object of another writer is not taken for the own one") func foreignObject()
    async throws
  {
    guard case .occupied(let head) = try await self.bucket.create("other/1", self.content) else {
      Issue.record("not noticed")
      return
    }
    #expect(head.byteCount == 5)
  }

  @Test("An object that vanishes between two calls is tried again") func vanished() async throws {
    let error = try await self.error { _ = try await self.bucket.create("gone/1", self.content) }
    #expect(error.disposition == .retry)
  }

  @Test("A refusal before the body was read is not lost") func early() async throws {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/file"
    try runProgram("sh", "-c", "head -c 30000000 /dev/zero > \(path)")
    let content = ObjectContent.file(try FileContent(path))
    let error = try await self.error { _ = try await self.bucket.put("early/1", content) }
    #expect(error.disposition == .denied)
    #expect(error.code == "AccessDenied")
  }

  @Test("A store that never answers is a time-out") func silent() async throws {
    let bucket = try Self.bucket(self.peer, .init(timeout: .milliseconds(200)))
    let error = try await self.error { _ = try await bucket.put("silent/1", self.content) }
    #expect(error.disposition == .retry)
  }

  @Test(
    "A completion that fails after status 200 is a failure",
    arguments: ["InternalError", "nothing", "half"])
  func completion(_ what: String) async throws {
    let upload = PendingUpload(key: "completion/\(what)", id: "1")
    let part = UploadedPart(number: 1, etag: "\"<&>\"", sha256: [])
    let error = try await self.error { _ = try await self.bucket.completeUpload(upload, [part]) }
    #expect(error.disposition == .retry)
  }

  @Test("A completed upload is not there any more") func completedBefore() async throws {
    let upload = PendingUpload(key: "completion/NoSuchUpload", id: "1")
    #expect(try await self.bucket.completeUpload(upload, []) == .noSuchUpload)
  }

  // MARK: Reads

  @Test("What was received in part, or was changed, is an error") func reads() async throws {
    let cut = try await self.error { _ = try await self.bucket.get("cut/1", maxByteCount: 100) }
    #expect(cut.disposition == .retry)
    let changed = try await self.error {
      _ = try await self.bucket.get("changed/1", maxByteCount: 100)
    }
    #expect(changed.disposition == .damaged)
    #expect(changed.message.contains("another SHA-256"))
    let range = try await self.error {
      _ = try await self.bucket.get("range/1", range: 2..<4, maxByteCount: 100)
    }
    #expect(range.disposition == .unsupported)
    let endless = try await self.error {
      _ = try await self.bucket.get("endless/1", maxByteCount: 1 << 20)
    }
    #expect(endless.disposition == .damaged)
  }

  @Test(
    "A listing that cannot be right is refused",
    arguments: [
      ("html", .configuration, "the element html instead of ListBucketResult"),
      ("cut", .retry, "the response is not XML"), ("huge", .unsupported, "more than 8388608 bytes"),
      ("deep", .retry, "more than 16 levels"), ("entities", .retry, "not XML"),
      ("loop", .unsupported, "no new NextContinuationToken"),
      ("endless", .unsupported, "no new NextContinuationToken"),
      ("foreign", .unsupported, "another prefix"),
      ("earlier", .unsupported, "not after start-after"),
    ] as [(String, ObjectStoreError.Disposition, String)])
  func listings(
    _ how: String, _ disposition: ObjectStoreError.Disposition, _ text: String
  ) async throws {
    let error = try await self.error {
      let start = how == "earlier" ? "earlier/2" : nil
      try await self.bucket.list(prefix: "\(how)/", startAfter: start) { _ in true }
    }
    #expect(error.disposition == disposition)
    #expect(error.message.contains(text), "\(error)")
  }

  @Test(
    "A key that not every store takes is not sent",
    arguments: [
      "", "/a", "a/", "a//b", "a/../b", "./a", "a\u{1}", String(repeating: "é", count: 513),
    ]
  )
  func keys(_ key: String) async throws {
    let error = try await self.error { _ = try await self.bucket.head(key) }
    #expect(error.disposition == .configuration)
    #expect(try await self.calls().members?.isEmpty == true)
  }

  @Test("A store that ignores conditions is found out") func unconditional() async throws {
    let peer = try PythonServer("http_peer.py")
    // It answers each PUT with 200, and stores nothing.
    let error = try await self.error { try await Self.bucket(peer).probe(prefix: "", id: 1) }
    #expect(error.disposition == .unsupported)
    #expect(error.message.contains("does not support conditional writes"))
    let refused = try await self.error {
      try await self.bucket.probe(prefix: "error/501/NotImplemented/", id: 1)
    }
    #expect(refused.disposition == .unsupported)
    #expect(refused.message.contains("does not support conditional writes"))
  }

  @Test("A store that cannot be reached is tried again") func unreachable() async throws {
    self.peer.kill()
    let error = try await self.error { _ = try await self.bucket.head("any") }
    #expect(error.disposition == .retry)
  }
}
