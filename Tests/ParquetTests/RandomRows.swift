@testable import Parquet

/// The same numbers for the same seed.
struct Random: RandomNumberGenerator {
  private var state: UInt64
  init(seed: Int) { self.state = UInt64(seed) &* 0x9E37_79B9_7F4A_7C15 }

  /// SplitMix64.
  mutating func next() -> UInt64 {
    self.state &+= 0x9E37_79B9_7F4A_7C15
    var z = self.state
    z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
    return z ^ z >> 31
  }
}

/// Columns and values of every type, in all distributions that change how they are stored.
struct RandomRows {
  /// How the values of a column differ.
  enum Shape: CaseIterable {
    case always, mostly, rarely, never, runs
  }

  var random: Random
  private(set) var columns: [ParquetColumn] = []
  private var shapes: [(Shape, differs: Int)] = []

  init(seed: Int, columnCount: Int) {
    self.random = Random(seed: seed)
    for index in 0..<columnCount {
      let type = Self.type(&self.random)
      self.columns.append(ParquetColumn("c\(index) é", type))
      let differs = [1, 2, 9, 300, 100_000].randomElement(using: &self.random) ?? 1
      self.shapes.append((Shape.allCases.randomElement(using: &self.random) ?? .always, differs))
    }
  }

  private static func type(_ random: inout Random) -> ParquetType {
    let unit = ParquetType.Unit.allCases.randomElement(using: &random) ?? .milliseconds
    let precision = Int.random(in: 1...38, using: &random)
    let types: [ParquetType] = [
      .boolean, .int32, .int64, .float, .double, .string, .json, .bytes, .date, .time(unit),
      .timestamp(unit, isLocal: Bool.random(using: &random)),
      .decimal(precision: precision, scale: Int.random(in: 0...precision, using: &random)), .uuid,
      .stringList,
    ]
    return types.randomElement(using: &random) ?? .boolean
  }

  mutating func rows(_ count: Int) -> [[TestValue?]] {
    (0..<count).map { row in
      self.columns.indices.map { column in
        let (shape, differs) = self.shapes[column]
        let isPresent =
          switch shape {
          case .always: true
          case .mostly: Int.random(in: 0..<10, using: &self.random) > 0
          case .rarely: Int.random(in: 0..<50, using: &self.random) == 0
          case .never: false
          case .runs: row / 37 % 2 == 0
          }
        guard isPresent else { return nil }
        var value = Random(seed: Int.random(in: 0..<differs, using: &self.random))
        return Self.value(self.columns[column].type, &value)
      }
    }
  }

  private static func value(_ type: ParquetType, _ random: inout Random) -> TestValue {
    switch type.physical {
    case .boolean: return .boolean(Bool.random(using: &random))
    case .int32 where type.decimalLimit == 0:
      let extremes: [Int64] = [Int64(Int32.min), -1, 0, Int64(Int32.max)]
      return .integer(
        Bool.random(using: &random)
          ? Int64(Int32.random(in: -999...999, using: &random))
          : extremes.randomElement(using: &random) ?? 0)
    case .int64 where type.decimalLimit == 0:
      return .integer(
        Bool.random(using: &random)
          ? Int64(bitPattern: random.next())
          : [Int64.min, -1, 0, Int64.max].randomElement(using: &random) ?? 0)
    case .float:
      return .number(bits: Double(Self.float(&random)).bitPattern)
    case .double: return .number(bits: Self.double(&random).bitPattern)
    case .int32, .int64, .fixed:
      if type == .uuid {
        return .bytes((0..<16).map { _ in UInt8.random(in: 0...255, using: &random) })
      }
      let limit = type.decimalLimit
      let magnitudes: [UInt128] = [UInt128.random(in: 0..<limit, using: &random), limit - 1, 0]
      let magnitude = Int128(magnitudes.randomElement(using: &random) ?? 0)
      return .decimal(Bool.random(using: &random) ? magnitude : 0 - magnitude)
    case .bytes:
      if type == .stringList {
        let count = Int.random(in: 0...4, using: &random)
        return .list((0..<count).map { _ in Self.text(&random) })
      }
      guard type.isText else {
        return .bytes((0..<Int.random(in: 0...40, using: &random)).map { UInt8($0 * 7 & 255) })
      }
      return .bytes(Self.text(&random))
    }
  }

  private static func double(_ random: inout Random) -> Double {
    [
      .nan, -0.0, 0, .infinity, -.infinity, .greatestFiniteMagnitude, .leastNonzeroMagnitude,
      Double(bitPattern: random.next()), Double.random(in: -1000...1000, using: &random),
    ].randomElement(using: &random) ?? 0
  }

  private static func float(_ random: inout Random) -> Float {
    [
      .nan, -0.0, 0, .infinity, -.infinity, .greatestFiniteMagnitude, .leastNonzeroMagnitude,
      Float.random(in: -1000...1000, using: &random),
    ].randomElement(using: &random) ?? 0
  }

  private static func text(_ random: inout Random) -> [UInt8] {
    let parts = ["", "a", "Closed Won", "é", "日本", "😀", "\u{0}", "\u{10FFFF}", "\u{D7FF}", "\""]
    let count = Int.random(in: 0...20, using: &random)
    return (0..<count).flatMap { _ in Array((parts.randomElement(using: &random) ?? "").utf8) }
  }
}
