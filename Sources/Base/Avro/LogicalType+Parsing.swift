internal import JSON

extension LogicalType {
  /// The logical type an object declares for a type of `kind`; nil if there is none, if its name is
  /// unknown or if it breaks a rule: "language implementations must ignore" those.
  init?(_ object: JSONValue, kind: Schema.Kind) {
    switch (object["logicalType"]?.string, kind) {
    case ("decimal", .bytes):
      self.init(decimal: object, fixedSize: nil)
    case ("decimal", .fixed(let size)):
      self.init(decimal: object, fixedSize: size)
    case ("big-decimal", .bytes):
      self = .bigDecimal
    case ("uuid", .string), ("uuid", .fixed(size: 16)):
      self = .uuid
    case ("date", .int):
      self = .date
    case ("time-millis", .int):
      self = .time(.milliseconds)
    case ("time-micros", .long):
      self = .time(.microseconds)
    case ("timestamp-millis", .long):
      self = .timestamp(.milliseconds, isLocal: false)
    case ("timestamp-micros", .long):
      self = .timestamp(.microseconds, isLocal: false)
    case ("timestamp-nanos", .long):
      self = .timestamp(.nanoseconds, isLocal: false)
    case ("local-timestamp-millis", .long):
      self = .timestamp(.milliseconds, isLocal: true)
    case ("local-timestamp-micros", .long):
      self = .timestamp(.microseconds, isLocal: true)
    case ("local-timestamp-nanos", .long):
      self = .timestamp(.nanoseconds, isLocal: true)
    case ("duration", .fixed(size: 12)):
      self = .duration
    default:
      return nil
    }
  }

  /// Our limit, not the specification's.
  private static let maxPrecision: Int64 = 65_536

  /// Also our limit. The time to write a number as text grows with the square of its length, and
  /// the memory with its scale. Longer numbers are not read, and event schemas have no larger
  /// scale.
  static let maxDecimalDigits = 4_096
  static var maxDecimalByteCount: Int { maxDecimalBytes(Self.maxDecimalDigits) }

  private init?(decimal object: JSONValue, fixedSize: Int?) {
    guard let precision = object["precision"]?.integer, precision > 0,
      precision <= Self.maxPrecision
    else { return nil }
    var scale: Int64 = 0
    if let member = object["scale"] {
      guard let value = member.integer else { return nil }
      scale = value
    }
    guard scale >= 0, scale <= precision else { return nil }
    if let fixedSize, precision > Self.maxPrecision(ofFixed: fixedSize) { return nil }
    self = .decimal(precision: Int(precision), scale: Int(scale))
  }

  /// floor(log10(2^(8n-1) - 1)): the decimal digits that n bytes always hold.
  private static func maxPrecision(ofFixed size: Int) -> Int64 {
    guard size > 0 else { return 0 }
    // log10(2) to 18 digits; no power of two is close enough to a power of ten to matter for sizes
    // below 2^31.
    let (high, low) = Int64(8 * size - 1).multipliedFullWidth(by: 301_029_995_663_981_195)
    return (1_000_000_000_000_000_000 as Int64).dividingFullWidth((high, low)).quotient
  }
}
