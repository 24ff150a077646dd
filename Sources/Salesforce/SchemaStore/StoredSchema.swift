internal import Bytes
internal import Cryptography
internal import JSON

/// A schema as its file in the cache has it: one JSON object that tells whose it is, and carries the
/// SHA-256 of everything else in it.
struct StoredSchema: Equatable {
  /// Organization ID.
  var org: String
  var id: String
  /// When the service gave it, milliseconds since 1970.
  var fetchedAt: Int64
  /// The text that the service gave.
  var json: String

  static let version: Int64 = 1
  /// A message of the service has 4 MiB at most, and escapes take a little more.
  static let maxByteCount = 8 << 20

  var bytes: [UInt8] {
    let value: JSONValue = [
      "version": .integer(Self.version), "org": .string(self.org), "schema_id": .string(self.id),
      "fetched_at": .string(UTCTime.timestamp(milliseconds: self.fetchedAt)),
      "fetched_at_ms": .integer(self.fetchedAt), "sha256": .string(self.digest),
      "schema": .string(self.json),
    ]
    return Array((value.text() + "\n").utf8)
  }

  init(org: String, id: String, fetchedAt: Int64, json: String) {
    self.org = org
    self.id = id
    self.fetchedAt = fetchedAt
    self.json = json
  }

  /// Nil for anything but a file that says of itself what `bytes` says.
  init?(_ bytes: [UInt8]) {
    let limits = JSONLimits(depth: 2, byteCount: Self.maxByteCount, valueCount: 16)
    guard let value = try? JSONValue(parsing: bytes, limits: limits),
      value["version"]?.integer == Self.version, let org = value["org"]?.string,
      let id = value["schema_id"]?.string, let fetchedAt = value["fetched_at_ms"]?.integer,
      let json = value["schema"]?.string
    else { return nil }
    self.init(org: org, id: id, fetchedAt: fetchedAt, json: json)
    guard value["sha256"]?.string == self.digest else { return nil }
  }

  private var digest: String {
    SHA256.hash(of: Array("\(self.fetchedAt)\n\(self.org)\n\(self.id)\n\(self.json)".utf8)).hex
  }
}
