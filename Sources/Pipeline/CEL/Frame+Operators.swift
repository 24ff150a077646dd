extension Frame {
  func equality(_ node: Instruction, _ left: Value, _ right: Value) -> Value {
    switch (left, right) {
    case (.list, .list), (.map, .map), (.string, .string), (.bytes, .bytes):
      guard self.spend(comparing: left.byteCount) else { return self.failure(.tooExpensive, node) }
    default: break
    }
    return .bool(left.equals(right))
  }

  func ordering(_ node: Instruction, _ left: Value, _ right: Value) -> Value {
    if case .string(let text) = left, !self.spend(comparing: text.count) {
      return self.failure(.tooExpensive, node)
    }
    guard let order = left.order(right) else {
      if case .null = left { return self.failure(.nullOrdering, node) }
      if case .null = right { return self.failure(.nullOrdering, node) }
      return self.failure(.noOverload, node)
    }
    return switch node.operation {
    case .less: .bool(order == .less)
    case .lessOrEqual: .bool(order == .less || order == .equal)
    case .greater: .bool(order == .greater)
    default: .bool(order == .greater || order == .equal)
    }
  }

  func sum(_ node: Instruction, _ left: Value, _ right: Value) -> Value {
    switch (left, right) {
    case (.int(let left), .int(let right)):
      return self.checked(node, left.addingReportingOverflow(right)) { .int($0) }
    case (.uint(let left), .uint(let right)):
      return self.checked(node, left.addingReportingOverflow(right)) { .uint($0) }
    case (.double(let left), .double(let right)): return .double(left + right)
    case (.string(let left), .string(let right)):
      return self.concatenation(left, right).map { .string($0) }
        ?? self.failure(.tooExpensive, node)
    case (.bytes(let left), .bytes(let right)):
      return self.concatenation(left, right).map { .bytes($0) } ?? self.failure(.tooExpensive, node)
    case (.list(let left), .list(let right)):
      let count = left.elements.count + right.elements.count
      guard self.spend(making: count * MemoryLayout<Value>.stride) else {
        return self.failure(.tooExpensive, node)
      }
      return self.made(.list(ListValue(left.elements + right.elements)), node)
    case (.timestamp(let time), .duration(let duration)),
      (.duration(let duration), .timestamp(let time)):
      return time.adding(nanoseconds: duration).map { .timestamp($0) }
        ?? self.failure(.overflow, node)
    case (.duration(let left), .duration(let right)):
      return self.checked(node, left.addingReportingOverflow(right)) { .duration($0) }
    default: return self.failure(.noOverload, node)
    }
  }

  func difference(_ node: Instruction, _ left: Value, _ right: Value) -> Value {
    switch (left, right) {
    case (.int(let left), .int(let right)):
      return self.checked(node, left.subtractingReportingOverflow(right)) { .int($0) }
    case (.uint(let left), .uint(let right)):
      return self.checked(node, left.subtractingReportingOverflow(right)) { .uint($0) }
    case (.double(let left), .double(let right)): return .double(left - right)
    case (.duration(let left), .duration(let right)):
      return self.checked(node, left.subtractingReportingOverflow(right)) { .duration($0) }
    case (.timestamp(let left), .timestamp(let right)):
      return left.since(right).map { .duration($0) } ?? self.failure(.overflow, node)
    case (.timestamp(let time), .duration(let duration)):
      guard duration != .min else { return self.failure(.overflow, node) }
      return time.adding(nanoseconds: -duration).map { .timestamp($0) }
        ?? self.failure(.overflow, node)
    default: return self.failure(.noOverload, node)
    }
  }

  func product(_ node: Instruction, _ left: Value, _ right: Value) -> Value {
    switch (left, right) {
    case (.int(let left), .int(let right)):
      switch node.operation {
      case .multiply:
        return self.checked(node, left.multipliedReportingOverflow(by: right)) { .int($0) }
      case _ where right == 0: return self.failure(.divisionByZero, node)
      case .divide: return self.checked(node, left.dividedReportingOverflow(by: right)) { .int($0) }
      default:
        return self.checked(node, left.remainderReportingOverflow(dividingBy: right)) { .int($0) }
      }
    case (.uint(let left), .uint(let right)):
      switch node.operation {
      case .multiply:
        return self.checked(node, left.multipliedReportingOverflow(by: right)) { .uint($0) }
      case _ where right == 0: return self.failure(.divisionByZero, node)
      case .divide: return .uint(left / right)
      default: return .uint(left % right)
      }
    case (.double(let left), .double(let right)) where node.operation != .modulo:
      return .double(node.operation == .multiply ? left * right : left / right)
    default: return self.failure(.noOverload, node)
    }
  }

  @inline(__always)
  private func checked<T>(
    _ node: Instruction, _ result: (partialValue: T, overflow: Bool), _ value: (T) -> Value
  ) -> Value {
    result.overflow ? self.failure(.overflow, node) : value(result.partialValue)
  }

  // MARK: Texts

  private func concatenation(_ left: BorrowedBytes, _ right: BorrowedBytes) -> BorrowedBytes? {
    let count = left.count + right.count
    guard self.spend(making: count), self.spend(comparing: count) else { return nil }
    let place = self.arena.reserve(count)
    if let start = left.start { place.update(from: start, count: left.count) }
    if let start = right.start { (place + left.count).update(from: start, count: right.count) }
    return BorrowedBytes(start: place, count: count)
  }

  func textTest(_ node: Instruction, _ left: Value, _ right: Value) -> Value {
    guard case .string(let text) = left, case .string(let part) = right else {
      return self.failure(.noOverload, node)
    }
    guard self.spend(comparing: text.count) else { return self.failure(.tooExpensive, node) }
    switch node.operation {
    case .contains: return .bool(text.contains(part))
    case .startsWith: return .bool(text.hasPrefix(part))
    case .endsWith: return .bool(text.hasSuffix(part))
    default:
      // A pattern from a column is compiled for every row, which costs as much as many comparisons.
      guard self.spend(16 + part.count) else { return self.failure(.tooExpensive, node) }
      guard case .pattern(let pattern) = Pattern.compile(part) else {
        return self.failure(
          self.spend(PatternLimits.mistakeCost) ? .invalidPattern : .tooExpensive, node)
      }
      guard self.spend(pattern.instructionCount >> 3) else {
        return self.failure(.tooExpensive, node)
      }
      return self.search(node, text, pattern)
    }
  }

  func search(_ node: Instruction, _ text: BorrowedBytes, _ pattern: Pattern) -> Value {
    guard self.spend(pattern.cost(ofSearching: text)) else {
      return self.failure(.tooExpensive, node)
    }
    return .bool(pattern.matches(text))
  }

  func size(_ node: Instruction, _ operand: Value) -> Value {
    switch operand {
    case .string(let text):
      guard self.spend(comparing: text.count) else { return self.failure(.tooExpensive, node) }
      return .int(Int64(text.scalarCount))
    case .bytes(let bytes): return .int(Int64(bytes.count))
    case .list(let list): return .int(Int64(list.elements.count))
    case .map(let map): return .int(Int64(map.keys.count))
    default: return self.failure(.noOverload, node)
    }
  }
}
