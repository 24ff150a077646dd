/// The limits of one value in Avro. Defaults in a schema can be small in JSON and double at each
/// level, so the size of the JSON limits nothing.
public struct EncodeLimits: Sendable {
  /// Bytes of the payload.
  public var byteCount: Int
  /// The number of values, including nested ones and defaults. Values may have no bytes (null,
  /// empty records), so `byteCount` does not limit them.
  public var values: Int
  /// The maximum number of reported mistakes.
  public var mistakes: Int

  /// Limits that suit messages of up to 16 MiB. All are at least 1.
  public init(byteCount: Int = 16 << 20, values: Int = 2_000_000, mistakes: Int = 100) {
    self.byteCount = byteCount
    self.values = values
    self.mistakes = mistakes
  }
}
