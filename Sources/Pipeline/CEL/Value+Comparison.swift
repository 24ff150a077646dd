internal import CSystem
internal import Glibc

/// The order of two values.
enum Order {
  case less, equal, greater
  /// One of them is NaN.
  case unordered
}

extension Value {
  /// Equality as `==` has it: numbers of all types by their mathematical value, everything else of
  /// different types unequal, NaN unequal to itself. Not for failures.
  func equals(_ other: Value) -> Bool {
    switch (self, other) {
    case (.null, .null): true
    case (.bool(let left), .bool(let right)): left == right
    case (.int(let left), .int(let right)): left == right
    case (.string(let left), .string(let right)), (.bytes(let left), .bytes(let right)):
      left.equals(right)
    case (.timestamp(let left), .timestamp(let right)): left == right
    case (.duration(let left), .duration(let right)): left == right
    case (.type(let left), .type(let right)): left == right
    case (.list(let left), .list(let right)):
      left.elements.count == right.elements.count
        && zip(left.elements, right.elements).allSatisfy { $0.equals($1) }
    case (.map(let left), .map(let right)):
      left.keys.count == right.keys.count
        && zip(left.keys, left.values).allSatisfy { key, value in
          right[key].map { value.equals($0) } ?? false
        }
    default: self.numericOrder(other) == .equal
    }
  }

  /// The order of two values that `<` can compare; nil for others. Numbers of all types are compared
  /// by their mathematical value.
  func order(_ other: Value) -> Order? {
    switch (self, other) {
    case (.bool(let left), .bool(let right)):
      left == right ? .equal : right ? .less : .greater
    case (.string(let left), .string(let right)), (.bytes(let left), .bytes(let right)):
      // Bytes of UTF-8 are ordered as code points are.
      left.order(right)
    case (.timestamp(let left), .timestamp(let right)): Order(left, right)
    case (.duration(let left), .duration(let right)): Order(left, right)
    default: self.numericOrder(other)
    }
  }

  /// Nil unless both are numbers.
  private func numericOrder(_ other: Value) -> Order? {
    switch (self, other) {
    case (.int(let left), .int(let right)): Order(left, right)
    case (.uint(let left), .uint(let right)): Order(left, right)
    case (.int(let left), .uint(let right)): left < 0 ? .less : Order(UInt64(left), right)
    case (.uint(let left), .int(let right)): right < 0 ? .greater : Order(left, UInt64(right))
    case (.double(let left), .double(let right)):
      left < right ? .less : left > right ? .greater : left == right ? .equal : .unordered
    // Swift compares integers and doubles exactly.
    case (.int(let left), .double(let right)): Order(left, comparedTo: right)
    case (.uint(let left), .double(let right)): Order(left, comparedTo: right)
    case (.double(let left), .int(let right)): Order(right, comparedTo: left).reversed
    case (.double(let left), .uint(let right)): Order(right, comparedTo: left).reversed
    case (.decimal(let left), .decimal(let right)): left.order(right)
    case (.decimal(let left), .int(let right)): left.order(Int128(right))
    case (.decimal(let left), .uint(let right)): left.order(Int128(right))
    case (.decimal(let left), .double(let right)): left.order(right)
    case (.int(let left), .decimal(let right)): right.order(Int128(left)).reversed
    case (.uint(let left), .decimal(let right)): right.order(Int128(left)).reversed
    case (.double(let left), .decimal(let right)): right.order(left).reversed
    default: nil
    }
  }
}

extension Order {
  init<T: Comparable>(_ left: T, _ right: T) {
    self = left < right ? .less : left == right ? .equal : .greater
  }

  init(_ left: some FixedWidthInteger, comparedTo right: Double) {
    guard !right.isNaN else {
      self = .unordered
      return
    }
    // A double beyond 2^65 exceeds every integer here, and any other fits 128 bits when rounded.
    let bound = 36_893_488_147_419_103_232.0
    guard right.magnitude < bound else {
      self = right > 0 ? .less : .greater
      return
    }
    let whole = Int128(right.rounded(.down))
    self = Order(Int128(left), whole)
    if self == .equal, right.rounded(.down) != right { self = .less }
  }

  var reversed: Order {
    switch self {
    case .less: .greater
    case .greater: .less
    case .equal, .unordered: self
    }
  }
}

extension BorrowedBytes {
  @inline(__always)
  func equals(_ other: BorrowedBytes) -> Bool {
    guard self.count == other.count else { return false }
    guard let left = self.start, let right = other.start, self.count > 0 else { return true }
    return memcmp(left, right, self.count) == 0
  }

  func order(_ other: BorrowedBytes) -> Order {
    if let left = self.start, let right = other.start {
      let result = memcmp(left, right, min(self.count, other.count))
      if result != 0 { return result < 0 ? .less : .greater }
    }
    return Order(self.count, other.count)
  }

  func hasPrefix(_ other: BorrowedBytes) -> Bool {
    self.count >= other.count
      && BorrowedBytes(start: self.start, count: other.count).equals(other)
  }

  func hasSuffix(_ other: BorrowedBytes) -> Bool {
    guard self.count >= other.count else { return false }
    return BorrowedBytes(
      start: self.start.map { $0 + (self.count - other.count) }, count: other.count
    ).equals(other)
  }

  func contains(_ other: BorrowedBytes) -> Bool {
    guard other.count > 0, let start = self.start, let part = other.start else {
      return other.count == 0
    }
    return c_memmem(start, self.count, part, other.count) != nil
  }

  /// Unicode code points of valid UTF-8.
  var scalarCount: Int {
    var count = 0
    for byte in self.bytes where byte & 0xC0 != 0x80 { count += 1 }
    return count
  }
}
