import Clocks
import Cryptography
import FoundationEssentials
import HTTPClient
import TestSupport
import Testing

@testable import ObjectStore

@Suite("Buckets of stores that check signatures")
struct BucketTests {
  /// A prefix that no other test uses.
  private static func prefix() -> String { "test-\(UInt64.random(in: 0 ... .max))/" }

  private func error(_ body: () async throws -> Void) async throws -> ObjectStoreError {
    try await #require(throws: ObjectStoreError.self) { try await body() }
  }

  private func text(_ text: String) -> ObjectContent { .bytes(Array(text.utf8)) }

  private func keys(
    _ bucket: Bucket, _ prefix: String, startAfter: String? = nil, pageSize: Int = 1000
  ) async throws -> [String] {
    var keys: [String] = []
    try await bucket.list(prefix: prefix, startAfter: startAfter, pageSize: pageSize) {
      keys.append($0.key)
      return true
    }
    return keys
  }

  @Test("An object of any key is stored, read and deleted", arguments: StorePeer.Kind.allCases)
  func roundTrip(_ kind: StorePeer.Kind) async throws {
    let bucket = try StorePeer.peer(kind).bucket()
    for name in ["commit_date=2026-01-01/a b+c@d(1)*~é%41&x.zst", "a//".replacing("//", with: "-")]
    {
      let key = Self.prefix() + name
      #expect(try await bucket.head(key) == nil)
      #expect(try await bucket.get(key, maxByteCount: 10) == nil)
      guard case .stored = try await bucket.put(key, self.text("content")) else {
        Issue.record("not stored")
        continue
      }
      let head = try #require(try await bucket.head(key))
      #expect(head.byteCount == 7)
      #expect(head.sha256 == SHA256.hash(of: Array("content".utf8)).hex)
      #expect(try await bucket.get(key, maxByteCount: 7) == Array("content".utf8))
      #expect(try await bucket.get(key, range: 2..<5, maxByteCount: 3) == Array("nte".utf8))
      let error = try await self.error { _ = try await bucket.get(key, maxByteCount: 6) }
      #expect(error.disposition == .damaged)
      #expect(try await self.keys(bucket, key) == [key])
      try await bucket.delete(key)
      #expect(try await bucket.head(key) == nil)
      try await bucket.delete(key)
    }
  }

  @Test("Conditions hold or do not", arguments: StorePeer.Kind.allCases)
  func conditions(_ kind: StorePeer.Kind) async throws {
    let bucket = try StorePeer.peer(kind).bucket()
    let key = Self.prefix() + "entry"
    let gone = try await bucket.put(key, self.text("0"), if: .ifMatch(etag: "\"0\""))
    #expect(gone == .preconditionFailed)
    #expect(try await bucket.create(key, self.text("one")) == .created)
    #expect(try await bucket.create(key, self.text("one")) == .existed)
    guard case .occupied(let head) = try await bucket.create(key, self.text("two")) else {
      Issue.record("another writer's object was replaced")
      return
    }
    #expect(head.byteCount == 3)
    let etag = try #require(head.etag)
    let first = try await bucket.put(key, self.text("two"), if: .ifMatch(etag: etag))
    guard case .stored = first else {
      Issue.record("the condition held, but nothing was stored")
      return
    }
    let second = try await bucket.put(key, self.text("three"), if: .ifMatch(etag: etag))
    #expect(second == .preconditionFailed)
    #expect(try await bucket.get(key, maxByteCount: 10) == Array("two".utf8))
  }

  @Test("Of several writers of one key, one succeeds", arguments: StorePeer.Kind.allCases)
  func race(_ kind: StorePeer.Kind) async throws {
    let bucket = try StorePeer.peer(kind).bucket()
    let key = Self.prefix() + "00000000000000000001.json"
    let winners = try await withThrowingTaskGroup(of: Int?.self) { group in
      for writer in 0..<8 {
        group.addTask {
          // A store may ask a writer to repeat (409).
          while true {
            do {
              let content = ObjectContent.bytes(Array("writer \(writer)".utf8))
              return try await bucket.create(key, content) == .created ? writer : nil
            } catch let error as ObjectStoreError where error.disposition == .retry {}
          }
        }
      }
      return try await group.reduce(into: []) { winners, winner in
        if let winner { winners.append(winner) }
      }
    }
    #expect(winners.count == 1)
    let stored = try #require(try await bucket.get(key, maxByteCount: 100))
    #expect(String(decoding: stored, as: UTF8.self) == "writer \(winners.first ?? -1)")
  }

  @Test("A listing is complete, whatever the size of its pages", arguments: StorePeer.Kind.allCases)
  func listing(_ kind: StorePeer.Kind) async throws {
    let bucket = try StorePeer.peer(kind).bucket()
    let prefix = Self.prefix()
    let keys = (1...7).map { "\(prefix)_log/0000\($0).json" }
    for key in keys { _ = try await bucket.put(key, self.text(key)) }
    _ = try await bucket.put("\(prefix)other/x=1/a&b.zst", self.text("1"))
    for pageSize in [1, 2, 3, 7, 1000] {
      #expect(try await self.keys(bucket, "\(prefix)_log/", pageSize: pageSize) == keys)
      let late = try await self.keys(
        bucket, "\(prefix)_log/", startAfter: keys[3], pageSize: pageSize)
      #expect(late == Array(keys[4...]))
    }
    let all = try await self.keys(bucket, prefix, pageSize: 3)
    #expect(Set(all) == Set(keys + ["\(prefix)other/x=1/a&b.zst"]))
    #expect(all.count == 8)
    #expect(try await self.keys(bucket, "\(prefix)nothing/") == [])
    var seen = 0
    try await bucket.list(prefix: prefix, pageSize: 2) { _ in
      seen += 1
      return seen < 3
    }
    #expect(seen == 3)
  }

  @Test("A file is sent and received in constant memory", arguments: StorePeer.Kind.allCases)
  func files(_ kind: StorePeer.Kind) async throws {
    let bucket = try StorePeer.peer(kind).bucket()
    let directory = try TemporaryDirectory()
    let byteCount = 64 << 20
    let path = try self.file(in: directory, byteCount: byteCount)
    let key = Self.prefix() + "large"
    try Data("5".utf8).write(to: URL(filePath: "/proc/self/clear_refs"))
    let before = try self.memory("VmRSS")
    let content = try FileContent(path)
    #expect(try await bucket.create(key, .file(content)) == .created)
    #expect(try await bucket.create(key, .file(content)) == .existed)
    var hash = SHA256()
    let head = try await bucket.read(key) { hash.update($0) }
    #expect(head?.byteCount == byteCount)
    #expect(hash.snapshot() == content.sha256)
    let growth = try self.memory("VmHWM") - before
    #expect(growth < 16 << 20, "\(growth) bytes")
    try await bucket.delete(key)
  }

  private func file(in directory: TemporaryDirectory, byteCount: Int) throws -> String {
    let path = "\(directory.path)/file"
    try runProgram("sh", "-c", "head -c \(byteCount) /dev/urandom > \(path)")
    return path
  }

  private func memory(_ name: String) throws -> Int {
    let text = try String(contentsOf: URL(filePath: "/proc/self/status"), encoding: .utf8)
    let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("\(name):") })
    return try #require(line.split(separator: " ").compactMap { Int($0) }.first) << 10
  }

  @Test("A file is uploaded in parts", arguments: StorePeer.Kind.allCases)
  func multipart(_ kind: StorePeer.Kind) async throws {
    let bucket = try StorePeer.peer(kind).bucket()
    let directory = try TemporaryDirectory()
    let path = try self.file(in: directory, byteCount: 6 << 20)
    let prefix = Self.prefix()
    let key = "\(prefix)commit_date=2026-01-01/parts.zst"
    let complete = try FileContent(path)

    func upload() async throws -> (PendingUpload, [UploadedPart]) {
      let id = try await bucket.beginUpload(key, sha256: complete.sha256)
      let upload = PendingUpload(key: key, id: id)
      var parts: [UploadedPart] = []
      for (index, range) in [0..<(5 << 20), (5 << 20)..<(6 << 20)].enumerated() {
        let content = try FileContent(path, range: range)
        parts.append(try await bucket.uploadPart(index + 1, content, to: upload))
      }
      return (upload, parts)
    }
    func pending() async throws -> [PendingUpload] {
      var uploads: [PendingUpload] = []
      try await bucket.listUploads(prefix: prefix, pageSize: 1) {
        uploads.append($0)
        return true
      }
      return uploads
    }

    let (first, parts) = try await upload()
    #expect(try await pending() == [first])
    #expect(try await bucket.head(key) == nil)
    #expect(try await bucket.completeUpload(first, parts) == .completed)
    #expect(try await bucket.head(key)?.isContent(.file(complete)) == true)
    var hash = SHA256()
    _ = try await bucket.read(key) { hash.update($0) }
    #expect(hash.snapshot() == complete.sha256)

    // Somebody else, or an earlier attempt, has made the object.
    let (second, others) = try await upload()
    #expect(try await bucket.completeUpload(second, others) == .preconditionFailed)
    #expect(try await pending().contains(second))
    #expect(try await bucket.abortUpload(second))
    #expect(try await pending() == [])
  }

  @Test("Probing a store that has everything leaves nothing", arguments: StorePeer.Kind.allCases)
  func probe(_ kind: StorePeer.Kind) async throws {
    let bucket = try StorePeer.peer(kind).bucket()
    let prefix = Self.prefix()
    try await bucket.probe(prefix: prefix, id: 1)
    #expect(try await self.keys(bucket, prefix) == [])
  }

  @Test("A wrong secret, key or bucket is named", arguments: StorePeer.Kind.allCases)
  func refusals(_ kind: StorePeer.Kind) async throws {
    let peer = try StorePeer.peer(kind)
    var credentials = peer.keys
    credentials.secretAccessKey = "another"
    let wrongSecret = try await self.error {
      _ = try await peer.bucket("exports", credentials).put("x", self.text("1"))
    }
    #expect(wrongSecret.disposition == .denied)
    #expect(wrongSecret.code == "SignatureDoesNotMatch")
    #expect(wrongSecret.message.contains("check the secret key"))
    credentials.accessKeyID = "UNKNOWN"
    let unknown = try await self.error {
      _ = try await peer.bucket("exports", credentials).get("x", maxByteCount: 1)
    }
    #expect(unknown.disposition == .credentials)
    #expect(unknown.message.contains("the store does not know the access key"))
    let noBucket = try await self.error {
      _ = try await peer.bucket("another").put("x", self.text("1"))
    }
    #expect(noBucket.disposition == .configuration)
    #expect(noBucket.code == "NoSuchBucket")
    for error in [wrongSecret, unknown] { #expect(!error.message.contains("another;")) }
  }

  @Test("A login without rights is denied") func denied() async throws {
    let peer = try StorePeer.peer(.seaweedfs)
    let reader = StoreCredentials(accessKeyID: "READER", secretAccessKey: "reader")
    let error = try await self.error {
      try await peer.bucket("exports", reader).probe(prefix: "", id: 2)
    }
    #expect(error.disposition == .denied)
    #expect(error.code == "AccessDenied")
  }

  @Test("Temporary credentials are sent with their token") func session() async throws {
    let peer = try StorePeer.peer(.moto)
    var session = peer.credentials("session_access_key", "session_secret_key", "session_token")
    try await peer.bucket("exports", session).probe(prefix: Self.prefix(), id: 3)
    session.sessionToken = "hidden-token"
    let error = try await self.error {
      try await peer.bucket("exports", session).probe(prefix: Self.prefix(), id: 3)
    }
    #expect(error.disposition == .credentials)
    #expect(!error.message.contains("hidden"))
  }

  @Test("Content that is not that of its digest is refused") func digest() async throws {
    let bucket = try StorePeer.peer(.seaweedfs).bucket()
    let directory = try TemporaryDirectory()
    let path = try self.file(in: directory, byteCount: 100_000)
    let content = try FileContent(path, sha256: SHA256.hash(of: []))
    let key = Self.prefix() + "changed"
    let error = try await self.error { _ = try await bucket.put(key, .file(content)) }
    #expect(error.disposition == .retry)
    #expect(error.message.contains("other bytes than the digest"))
    #expect(try await bucket.head(key) == nil)
  }

  @Test("A file that becomes shorter is named") func truncated() async throws {
    let bucket = try StorePeer.peer(.seaweedfs).bucket()
    let directory = try TemporaryDirectory()
    let path = try self.file(in: directory, byteCount: 100_000)
    let content = try FileContent(path)
    try runProgram("truncate", "-s", "50000", path)
    let error = try await self.error {
      _ = try await bucket.put(Self.prefix() + "short", .file(content))
    }
    #expect(error.disposition == .damaged)
    #expect(error.message.contains("\(path) ends at byte 50000"))
  }

  @Test("A clock that is wrong is named", arguments: [-3_600_000, 3_600_000] as [Int64])
  func skew(milliseconds: Int64) async throws {
    let time = MovableTime()
    time.move(milliseconds)
    var configuration = HTTPClient.Configuration()
    configuration.clock = ProcessClock(time)
    let bucket = try StorePeer.peer(.seaweedfs).bucket(http: HTTPClient(configuration))
    let error = try await self.error { _ = try await bucket.put("x", self.text("1")) }
    #expect(error.disposition == .denied)
    #expect(error.message.contains("set this machine's clock"))
  }

  @Test("The bucket may be part of the host name") func virtualHost() async throws {
    let bucket = try StorePeer.peer(.seaweedfs).bucket(host: "s3.localhost", pathStyle: false)
    let prefix = Self.prefix()
    let key = prefix + "a=b/c d"
    #expect(try await bucket.create(key, self.text("1")) == .created)
    #expect(try await self.keys(bucket, prefix) == [key])
    #expect(try await StorePeer.peer(.seaweedfs).bucket().head(key)?.byteCount == 1)
  }

  @Test("TLS needs the store's authority") func tls() async throws {
    let peer = try StorePeer(.seaweedfs, secure: true)
    let trusting = HTTPClient(.init(caFile: peer.authority?.certificateFile))
    try await peer.bucket(http: trusting).probe(prefix: "tls/", id: 4)
    let error = try await self.error {
      try await peer.bucket().probe(prefix: "tls/", id: 4)
    }
    #expect(error.disposition == .configuration)
  }

  @Test("What was acknowledged is there after the store was killed") func killed() async throws {
    let peer = try StorePeer(.seaweedfs)
    let bucket = try peer.bucket()
    #expect(try await bucket.create("before", self.text("1")) == .created)
    try peer.tell("stop")
    let error = try await self.error { _ = try await bucket.create("after", self.text("2")) }
    #expect(error.disposition == .retry)
    try peer.tell("start")
    #expect(try await bucket.create("before", self.text("1")) == .existed)
    #expect(try await bucket.create("after", self.text("2")) == .created)
  }
}
