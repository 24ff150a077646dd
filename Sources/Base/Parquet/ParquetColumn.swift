/// A column of a file. Every column is optional: a row has a value in it or not.
package struct ParquetColumn: Hashable, Sendable {
  package var name: String
  package var type: ParquetType

  package init(_ name: String, _ type: ParquetType) {
    self.name = name
    self.type = type
  }
}

/// What the values of a column are, and how they are stored (parquet-format, logical types).
package enum ParquetType: Hashable, Sendable {
  package enum Unit: Int, Hashable, Sendable, CaseIterable {
    // The numbers are those of the union `TimeUnit`.
    case milliseconds = 1
    case microseconds = 2
    case nanoseconds = 3
  }

  case boolean
  case int32
  case int64
  case float
  case double
  /// UTF-8.
  case string
  /// UTF-8 that is JSON.
  case json
  case bytes
  /// Days since 1970-01-01, 32 bits.
  case date
  /// Since midnight, in no zone; milliseconds have 32 bits.
  case time(Unit)
  /// Since 1970-01-01T00:00:00, in UTC or (`isLocal`) in no zone.
  case timestamp(Unit, isLocal: Bool)
  /// At most `maxPrecision` digits, of which `scale` follow the point.
  case decimal(precision: Int, scale: Int)
  /// 16 bytes.
  case uuid
  /// Strings, UTF-8, none of them null.
  case stringList

  /// The most digits that all readers of decimals can hold.
  package static let maxPrecision = 38
}

/// The stored form of values (the enumeration `Type`).
enum PhysicalType: Equatable {
  case boolean
  case int32
  case int64
  case float
  case double
  case bytes
  case fixed(Int)

  var number: Int32 {
    switch self {
    case .boolean: 0
    case .int32: 1
    case .int64: 2
    case .float: 4
    case .double: 5
    case .bytes: 6
    case .fixed: 7
    }
  }

  /// The bytes of a value without its length; 0 where it differs from value to value.
  var byteCount: Int {
    switch self {
    case .boolean, .bytes: 0
    case .int32, .float: 4
    case .int64, .double: 8
    case .fixed(let byteCount): byteCount
    }
  }
}

extension ParquetType {
  var physical: PhysicalType {
    switch self {
    case .boolean: .boolean
    case .int32, .date, .time(.milliseconds): .int32
    case .int64, .time, .timestamp: .int64
    case .float: .float
    case .double: .double
    case .string, .json, .bytes, .stringList: .bytes
    case .uuid: .fixed(16)
    case .decimal(let precision, _):
      precision <= 9 ? .int32 : precision <= 18 ? .int64 : .fixed(Self.byteCount(digits: precision))
    }
  }

  var isText: Bool { self == .string || self == .json || self == .stringList }
  var isList: Bool { self == .stringList }
  /// 0: null, 1: a value, or an empty list. 2: an element of a list.
  var maxDefinition: UInt32 { self.isList ? 2 : 1 }

  /// Unscaled numbers are nearer to 0; 0 for other types.
  var decimalLimit: UInt128 {
    guard case .decimal(let precision, _) = self else { return 0 }
    return (0..<precision).reduce(1) { power, _ in power * 10 }
  }

  /// The least number of bytes in which two's complement holds all numbers of so many digits.
  private static func byteCount(digits: Int) -> Int {
    // log2(10) = 3.3219280949; the nearest case up to 38 digits is 0.02 bits from a whole byte.
    let bits = Double(digits) * 3.321_928_094_887_362
    return (Int(bits.rounded(.up)) + 1 + 7) / 8
  }
}
