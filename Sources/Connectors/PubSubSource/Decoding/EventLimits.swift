internal import Cryptography
internal import Glibc
internal import SchemaStore

/// Limits of event and record IDs. These are stored in checkpoints, manifests and indexes, and read
/// again by the next run, so their length is limited.
enum EventLimits {
  /// Publishers may choose the ID of an event; otherwise the service uses a UUID.
  static let maxEventIDByteCount = 1024
  static let maxSchemaIDByteCount = SchemaID.maxByteCount
  /// The service's IDs have 18 characters.
  static let maxRecordIDByteCount = 255

  /// - Parameter bytes: valid UTF-8.
  @inline(__always)
  static func isEventID(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    bytes.count <= Self.maxEventIDByteCount && !Self.hasNull(bytes)
  }

  /// - Parameter bytes: valid UTF-8.
  @inline(__always)
  static func isRecordID(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    bytes.count <= Self.maxRecordIDByteCount && !Self.hasNull(bytes)
  }

  /// Visible ASCII: the ID goes into requests, logs and reports.
  static func isSchemaID(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    SchemaID.isValid(bytes)
  }

  /// The replacement for an ID that is too long or that a database cannot store as text: its
  /// beginning and a hash of the whole, so that different IDs stay different.
  ///
  /// - Parameter id: valid UTF-8.
  static func standIn(for id: [UInt8]) -> [UInt8] {
    let beginning = String(decoding: id.prefix(400), as: UTF8.self).unicodeScalars.prefix(64).map {
      $0.properties.generalCategory == .control ? "\u{FFFD}" : $0
    }
    let text = String(String.UnicodeScalarView(beginning))
    return Array("\(text)… (SHA-256 \(SHA256.hash(of: id).hex))".utf8)
  }

  /// Databases cannot store U+0000, so an ID that contains it would not be found again.
  @inline(__always)
  private static func hasNull(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    guard let start = bytes.baseAddress else { return false }
    return memchr(start, 0, bytes.count) != nil
  }
}
