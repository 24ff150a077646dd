/// What one payload may take before it is refused. Checked before anything is allocated.
public struct DecodeLimits: Sendable {
  /// Bytes of the payload.
  public var byteCount: Int
  /// Arrays, maps and records inside each other that go out as JSON text; what is flattened is
  /// limited by `DecodePlan.Options`.
  public var depth: Int
  /// Items of all arrays and maps together, and fields of the records in them. Items may take no
  /// byte at all (null, empty records), so the payload's length does not limit them.
  public var items: Int
  /// Bytes of text made from one payload: of JSON for what stays nested, of UUIDs and big decimals.
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
