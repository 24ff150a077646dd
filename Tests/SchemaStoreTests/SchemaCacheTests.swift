import Avro
import DurableFiles
import EventLoop
import Glibc
import TestSupport
import Testing

@testable import SchemaStore

@Suite("Schema cache")
struct SchemaCacheTests {
  private static let org = "00DXX0000000001AAA"
  private static let json = text(doc: "Data:DateTime:00N000000000001", field: "When__c")

  private static func text(doc: String, field: String) -> String {
    #"{"type":"record","name":"A__e","namespace":"com.sforce.eventbus","fields":[{"name":""#
      + field + #"","type":["null","long"],"doc":""# + doc + #"","default":null}]}"#
  }

  private static func id(_ json: String) throws -> String {
    try #require(try Schema(parsing: Array(json.utf8)).serviceID)
  }

  private let files = ModelFileSystem()

  init() throws { try self.files.makeDirectories("/state") }

  private func cache(
    org: String = Self.org, isReadOnly: Bool = false, on files: (any FileSystem)? = nil,
    now: Int64 = 1_000_000_000_000
  ) -> SchemaCache {
    SchemaCache(
      directory: "/state/schemas", org: org, isReadOnly: isReadOnly,
      fileSystem: files ?? self.files, now: { now })
  }

  private func store(_ json: String = Self.json, in cache: SchemaCache? = nil) throws -> String {
    let id = try Self.id(json)
    (cache ?? self.cache()).fetched(id, json: json, schema: try Schema(parsing: Array(json.utf8)))
    return id
  }

  private func path(_ id: String) -> String { "/state/schemas/\(Self.org).\(id).schema.json" }

  private func content(_ path: String) throws -> [UInt8]? {
    guard let size = try self.files.size(of: path) else { return nil }
    return try OpenFile(path, [], on: self.files).content(byteCount: size)
  }

  private func replace(_ path: String, with bytes: [UInt8]) throws {
    if try self.files.size(of: path) != nil { try self.files.remove(path) }
    let file = try OpenFile(path, [.write, .create], on: self.files)
    try file.write(bytes)
  }

  @Test("A run does not request a schema that an earlier run has fetched")
  func isKept() async throws {
    let id = try Self.id(Self.json)
    let first = self.cache()
    #expect(try await first.json(of: id) { Self.json } == Self.json)
    let second = self.cache()
    let found = try await second.json(of: id) {
      Issue.record("asked for again")
      return ""
    }
    #expect(found == Self.json)
    #expect(first.counts.fetched == 1 && first.counts.cached == 0)
    #expect(second.counts.fetched == 0 && second.counts.cached == 1)
  }

  @Test("The schema of another org is not used, even with the same ID")
  func otherOrg() throws {
    let id = try self.store()
    let other = "00DXX0000000002AAA"
    #expect(self.cache(org: other).find(id) == nil)
    // Nor under the other's name.
    try self.replace(
      "/state/schemas/\(other).\(id).schema.json",
      with: try #require(try self.content(self.path(id)))
    )
    #expect(self.cache(org: other).find(id) == nil)
    #expect(self.cache().find(id) != nil)
  }

  @Test("A changed or truncated file is ignored and replaced")
  func damaged() async throws {
    let id = try self.store()
    let whole = try #require(try self.content(self.path(id)))
    for offset in whole.indices {
      for file in [Array(whole[..<offset]), whole.replacing(offset)] {
        try self.replace(self.path(id), with: file)
        // A changed space or the last line end says the same.
        let found = self.cache().find(id)
        #expect(found == nil || found?.json == Self.json, "at \(offset)")
      }
    }
    try self.replace(self.path(id), with: Array(whole[..<40]))
    let cache = self.cache()
    #expect(try await cache.json(of: id) { Self.json } == Self.json)
    #expect(try self.content(self.path(id)) == whole)
  }

  @Test("An intact file whose text does not match its ID is ignored")
  func hostile() throws {
    let id = try Self.id(Self.json)
    let other = Self.text(doc: "", field: "Other__c")
    _ = try self.store()
    let forged = StoredSchema(org: Self.org, id: id, fetchedAt: 1_000_000_000_000, json: other)
    try self.replace(self.path(id), with: forged.bytes)
    #expect(StoredSchema(forged.bytes) == forged)
    #expect(self.cache().find(id) == nil)
    for text in ["", "{}", "null", "[[[[", String(repeating: "[", count: 100_000)] {
      try self.replace(self.path(id), with: Array(text.utf8))
      #expect(self.cache().find(id) == nil)
    }
  }

  @Test("A text that does not match its ID is not stored, and an ID never becomes a path")
  func notKept() throws {
    let schema = try Schema(parsing: Array(Self.json.utf8))
    let ids = [
      "AAAAAAAAAAAAAAAAAAAAAA", "../../../../etc/passwd", "S1", "",
      String(repeating: "/", count: 22),
      "............../......x",
    ]
    for id in ids {
      let cache = self.cache()
      cache.fetched(id, json: Self.json, schema: schema)
      #expect(cache.find(id) == nil)
      #expect(cache.counts.fetched == 1)
    }
    let id = try Self.id(Self.json)
    self.cache(org: "../../../../../tmp").fetched(id, json: Self.json, schema: schema)
    self.cache().fetched(id, json: "no schema", schema: nil)
    #expect(try self.files.list("/state/schemas") == nil)
  }

  @Test("A read-only command stores no schema")
  func readOnly() async throws {
    let id = try Self.id(Self.json)
    let cache = self.cache(isReadOnly: true)
    #expect(try await cache.json(of: id) { Self.json } == Self.json)
    #expect(try self.files.list("/state/schemas") == nil)
  }

  @Test(
    "A file is valid for a day, because a field's meaning may change under the same ID",
    arguments: [
      (0, true), (24 * 3_600_000 - 1, true), (24 * 3_600_000, false), (-1, false),
      (Int64.max - 1_000_000_000_000, false),
    ] as [(Int64, Bool)])
  func age(_ passed: Int64, counts: Bool) async throws {
    let id = try self.store()
    let later = self.cache(now: 1_000_000_000_000 + passed)
    #expect((later.find(id) != nil) == counts)
    // What the service does not give any more is better old than not at all.
    #expect(later.forgotten(id) == Self.json)
    let changed = Self.text(doc: "Data:DateOnly:00N000000000001", field: "When__c")
    #expect(try Self.id(changed) == id)
    #expect(try await later.json(of: id) { changed } == (counts ? Self.json : changed))
  }

  @Test("A schema is available whichever file call fails")
  func failingFiles() async throws {
    let id = try Self.id(Self.json)
    for number in 1... {
      let faulty = FaultyFileSystem(self.files)
      faulty.maxWriteByteCount = 100
      faulty.fault = { count, _ in count == number ? ENOSPC : nil }
      let failures = Lock(0)
      let cache = SchemaCache(
        directory: "/state/schemas", org: Self.org,
        onFailure: { _ in failures.withLock { $0 += 1 } },
        fileSystem: faulty, now: { 1_000_000_000_000 })
      #expect(try await cache.json(of: id) { Self.json } == Self.json)
      let found = self.cache().find(id)
      #expect(found == nil || found?.json == Self.json)
      if faulty.calls.count < number {
        #expect(found != nil)
        #expect(number > 8)
        break
      }
      #expect(failures.withLock { $0 } <= 1)
      if found != nil { try self.files.remove(self.path(id)) }
    }
    let names = try #require(try self.files.list("/state/schemas")).map(\.name)
    #expect(names.filter { $0.hasSuffix(".tmp") }.count <= 1)
  }

  @Test("Excess files are removed together, and files of others stay")
  func isBounded() throws {
    _ = try self.store()
    let others = ["README", "mine.schema.json"]
    for name in others { try self.replace("/state/schemas/\(name)", with: [1]) }
    for number in 0..<SchemaCache.maxFileCount - 2 {
      let id = String(repeating: "A", count: 17) + String(10_000 + number)
      try self.replace("/state/schemas/00D000000000001AAA.\(id).schema.json", with: [1])
    }
    let second = try self.store(Self.text(doc: "", field: "B__c"))
    #expect(
      try self.files.list("/state/schemas")?.count == SchemaCache.maxFileCount + others.count)
    let third = try self.store(Self.text(doc: "", field: "C__c"))
    #expect(try self.files.list("/state/schemas")?.count == others.count + 1)
    #expect(self.cache().find(second) == nil)
    #expect(self.cache().find(third) != nil)
  }

  @Test("Any schema text is read back as it was stored")
  func anyText() {
    var random = SplitMix(seed: 7)
    for _ in 0..<500 {
      let scalars = (0..<Int.random(in: 0..<60, using: &random)).map { _ in
        Unicode.Scalar(UInt32.random(in: 0..<0x3000, using: &random)) ?? "\u{0}"
      }
      let stored = StoredSchema(
        org: Self.org, id: "i", fetchedAt: .random(in: .min ... .max, using: &random),
        json: String(String.UnicodeScalarView(scalars)))
      #expect(StoredSchema(stored.bytes) == stored)
    }
  }
}

extension [UInt8] {
  fileprivate func replacing(_ index: Int) -> [UInt8] {
    var copy = self
    copy[index] ^= 1
    return copy
  }
}
