/// The limits beyond which a payload is refused. Checked before anything is allocated.
public struct DecodeLimits: Sendable {
  /// Bytes of the payload.
  public var byteCount: Int
  /// The nesting of arrays, maps and records that become JSON text. Flattening is limited by
  /// `DecodePlan.Options`.
  public var depth: Int
  /// The total number of items in arrays and maps, and of fields of the records in them. Items may
  /// have no bytes (null, empty records), so the payload's length does not limit them.
  public var items: Int
  /// Bytes of text created from one payload: JSON for what stays nested, UUIDs and big decimals.
  public var jsonByteCount: Int

  /// Limits that suit messages of up to 16 MiB. All are at least 0.
  public init(
    byteCount: Int = 16 << 20, depth: Int = 64, items: Int = 1_000_000,
    jsonByteCount: Int = 32 << 20
  ) {
    self.byteCount = byteCount
    self.depth = depth
    self.items = items
    self.jsonByteCount = jsonByteCount
  }
}
