import HTTPClient
import Testing

@testable import ObjectStore

@Suite("Addresses of buckets")
struct BucketAddressTests {
  private func url(
    _ bucket: String, region: String? = nil, endpoint: String? = nil, pathStyle: Bool? = nil,
    key: String? = "a=b/c"
  ) throws -> String {
    let endpoint = try endpoint.map {
      try ServiceAddress(parsing: $0, allowsPlaintext: true)
    }
    let address = try BucketAddress(
      bucket: bucket, region: region, endpoint: endpoint, usesPathStyle: pathStyle)
    return address.origin + address.path(of: key)
  }

  @Test("AWS has the bucket in the host name, unless no certificate covers it") func aws() throws {
    #expect(try self.url("exports") == "https://exports.s3.us-east-1.amazonaws.com/a%3Db/c")
    #expect(
      try self.url("exports", region: "eu-central-1", key: nil)
        == "https://exports.s3.eu-central-1.amazonaws.com/")
    #expect(
      try self.url("exports", region: "cn-north-1", key: nil)
        == "https://exports.s3.cn-north-1.amazonaws.com.cn/")
    #expect(
      try self.url("my.exports", region: "eu-west-1")
        == "https://s3.eu-west-1.amazonaws.com/my.exports/a%3Db/c")
  }

  @Test("Other stores have it in the path, unless told otherwise") func others() throws {
    #expect(
      try self.url("exports", endpoint: "http://[::1]:9000") == "http://[::1]:9000/exports/a%3Db/c")
    #expect(
      try self.url("exports", endpoint: "http://minio:9000", key: nil)
        == "http://minio:9000/exports")
    #expect(
      try self.url("exports", endpoint: "https://storage.example.com", pathStyle: false)
        == "https://exports.storage.example.com/a%3Db/c")
  }

  @Test(
    "A name that is no bucket is refused",
    arguments: ["", "ab", "a/b/c", "a b c", ".abc", "abc.", "a..b", "exports?x", "é-exports"])
  func buckets(_ name: String) {
    #expect(throws: BucketAddress.Mistake.self) { try BucketAddress(bucket: name) }
  }

  @Test("A region is one word", arguments: ["", "eu central", "eu-central-1.evil.example/"])
  func regions(_ name: String) {
    #expect(throws: BucketAddress.Mistake.self) {
      try BucketAddress(bucket: "exports", region: name)
    }
  }

  @Test("A bucket is not put before an IP address", arguments: ["127.0.0.1", "[::1]"])
  func addresses(_ host: String) throws {
    #expect(throws: BucketAddress.Mistake.self) {
      try self.url("exports", endpoint: "http://\(host):9000", pathStyle: false)
    }
  }

  @Test("Plain http to another machine has to be allowed") func plaintext() throws {
    #expect(throws: ServiceAddress.ParseError.self) {
      try ServiceAddress(parsing: "http://minio:9000")
    }
    #expect(try ServiceAddress(parsing: "http://minio:9000", allowsPlaintext: true).port == 9000)
  }
}
