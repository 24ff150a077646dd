/// A value of an expression or of a column.
///
/// Texts are borrowed, so that reading a column copies nothing: from the memory that the caller keeps
/// (the arena of a batch), from the program (literals) or from the frame (texts that were made).
/// A value that `Frame.evaluate` returned is valid until the next evaluation with that frame, and as
/// long as what it was made from. Not `Sendable` for that reason.
package enum Value {
  case null
  case bool(Bool)
  case int(Int64)
  case uint(UInt64)
  case double(Double)
  /// A decimal, which comes from columns only: it can be compared, not calculated with.
  case decimal(Decimal)
  /// Valid UTF-8.
  case string(BorrowedBytes)
  case bytes(BorrowedBytes)
  case timestamp(Timestamp)
  /// Nanoseconds.
  case duration(Int64)
  case list(ListValue)
  case map(MapValue)
  case type(TypeName)
  /// No value: an error, or a column that the event lacks. `&&` and `||` ignore it if the other
  /// side decides.
  case failure(Failure)

  /// A column that the event lacks.
  package static var absent: Value { .failure(Failure(.absent)) }
  /// A column whose value and presence are still unknown, for results that do not depend on them.
  package static var unknown: Value { .failure(Failure(.unknown)) }
}

/// Bytes that somebody else owns.
@usableFromInline package struct BorrowedBytes {
  @usableFromInline package let start: UnsafePointer<UInt8>?
  @usableFromInline package let count: Int

  @inlinable
  package init(start: UnsafePointer<UInt8>?, count: Int) {
    self.start = start
    self.count = count
  }

  @inlinable
  package init(_ bytes: UnsafeBufferPointer<UInt8>) {
    self.init(start: bytes.baseAddress, count: bytes.count)
  }

  @inlinable
  package var bytes: UnsafeBufferPointer<UInt8> {
    UnsafeBufferPointer(start: self.start, count: self.count)
  }

  /// A copy; invalid UTF-8 is replaced.
  package var text: String { String(decoding: self.bytes, as: UTF8.self) }
}

/// `unscaled` × 10^-`scale`.
package struct Decimal {
  /// Two's complement, big-endian; empty is zero.
  package var unscaled: BorrowedBytes
  /// 0 or more.
  package var scale: Int32

  package init(unscaled: BorrowedBytes, scale: Int32) {
    precondition(scale >= 0, "a scale of \(scale)")
    self.unscaled = unscaled
    self.scale = scale
  }
}

/// The result of `type(x)`; the raw value is its name in expressions.
package enum TypeName: String, Sendable, CaseIterable {
  case null = "null_type"
  case bool, int, uint, double, decimal, string, bytes, list, map, type
  case timestamp = "google.protobuf.Timestamp"
  case duration = "google.protobuf.Duration"
}

/// Why an expression has no value. It allocates no memory, because filters get it in every other
/// row.
package struct Failure: Equatable, Sendable {
  package enum Reason: UInt8, Sendable {
    case absent, unknown, nullOrdering, noOverload, noSuchKey, indexOutOfRange, divisionByZero,
      overflow
    case outOfRange, invalidText, invalidUTF8, duplicateKey, invalidKey, noSelection, invalidPattern
    case unknownTimeZone, tooExpensive
  }

  package var reason: Reason
  /// Where in the text of the expression, in bytes; set by the evaluation.
  var offset: Int32

  package init(_ reason: Reason) { self.init(reason, at: 0) }

  init(_ reason: Reason, at offset: Int32) {
    self.reason = reason
    self.offset = offset
  }
}

/// A list, immutable.
package final class ListValue {
  package let elements: [Value]
  /// The total size of the elements, with repetitions: a list that holds another one twice takes
  /// the memory of one, but the time of two when it is compared or written.
  let byteCount: Int

  package init(_ elements: [Value]) {
    self.elements = elements
    self.byteCount = elements.reduce(0) { $0 + $1.byteCount }
  }
}

/// A map from `bool`, `int`, `uint` and `string` to values, in order of insertion, immutable. Keys
/// that are equal as numbers are one key.
package final class MapValue {
  package let keys: [Value]
  package let values: [Value]
  /// The size of all keys and values, as for lists.
  let byteCount: Int
  /// Places of keys by hash; empty for small maps, which are searched.
  private var places: [MapKey: Int] = [:]

  /// - Parameter entries: keys of the types above, and no two of them equal; else nil is returned
  ///   for the first rule that is broken.
  static func make(_ keys: [Value], _ values: [Value]) -> Result<MapValue, Failure> {
    let map = MapValue(uniqueKeys: keys, values)
    for (index, key) in keys.enumerated() {
      guard key.isMapKey else { return .failure(Failure(.invalidKey)) }
      guard map.place(of: key) == index else { return .failure(Failure(.duplicateKey)) }
    }
    return .success(map)
  }

  /// - Parameters:
  ///   - keys: different from each other.
  ///   - values: as many.
  package init(uniqueKeys keys: [Value], _ values: [Value]) {
    precondition(keys.count == values.count, "\(keys.count) keys of \(values.count) values")
    self.keys = keys
    self.values = values
    self.byteCount = (keys + values).reduce(0) { $0 + $1.byteCount }
    guard keys.count > 8 else { return }
    self.places.reserveCapacity(keys.count)
    for (index, key) in keys.enumerated() where key.isMapKey {
      if self.places[MapKey(value: key)] == nil { self.places[MapKey(value: key)] = index }
    }
  }

  func place(of key: Value) -> Int? {
    self.keys.count > 8
      ? self.places[MapKey(value: key)] : self.keys.firstIndex { $0.equals(key) }
  }

  package subscript(_ key: Value) -> Value? { self.place(of: key).map { self.values[$0] } }
}

extension Failure: Error {}

extension Value {
  /// The size of the value with everything in it.
  var byteCount: Int {
    let own = MemoryLayout<Value>.stride
    return switch self {
    case .string(let text), .bytes(let text): own + text.count
    case .list(let list): own + list.byteCount
    case .map(let map): own + map.byteCount
    default: own
    }
  }

  var isMapKey: Bool {
    switch self {
    case .bool, .int, .uint, .string: true
    default: false
    }
  }

  package var typeName: TypeName? {
    switch self {
    case .null: .null
    case .bool: .bool
    case .int: .int
    case .uint: .uint
    case .double: .double
    case .decimal: .decimal
    case .string: .string
    case .bytes: .bytes
    case .timestamp: .timestamp
    case .duration: .duration
    case .list: .list
    case .map: .map
    case .type: .type
    case .failure: nil
    }
  }
}

/// A key by its content.
private struct MapKey: Hashable {
  var value: Value

  static func == (left: Self, right: Self) -> Bool { left.value.equals(right.value) }

  func hash(into hasher: inout Hasher) {
    switch self.value {
    case .bool(let value): hasher.combine(value)
    case .int(let value): hasher.combine(value)
    // Numbers that are equal need equal hashes.
    case .uint(let value): hasher.combine(Int64(truncatingIfNeeded: value))
    case .double(let value): hasher.combine(Int64(exactly: value) ?? 0)
    case .string(let text): hasher.combine(bytes: UnsafeRawBufferPointer(text.bytes))
    default: break
    }
  }
}
