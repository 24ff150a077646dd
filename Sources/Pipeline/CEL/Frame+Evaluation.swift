extension Frame {
  /// The value of an instruction. Recurses once per level of the expression, which the parser bounds.
  func value(ofNode node: Int32) -> Value {
    let node = self.program.instructions[Int(node)]
    switch node.operation {
    case .constant: return self.program.constants[Int(node.a)]
    case .column:
      let value = self.columns[Int(node.a)]
      if case .failure(let failure) = value {
        return .failure(Failure(failure.reason, at: node.offset))
      }
      return value
    case .local: return self.locals[Int(node.a)]
    case .hasColumn:
      guard case .failure(let failure) = self.columns[Int(node.a)] else { return .bool(true) }
      return failure.reason == .unknown ? self.failure(.unknown, node) : .bool(false)
    case .row: return self.row(node)
    case .and: return self.logical(node, deciding: false)
    case .or: return self.logical(node, deciding: true)
    case .conditional:
      switch self.value(ofNode: node.a) {
      case .bool(let condition): return self.value(ofNode: condition ? node.b : node.c)
      case .failure(let failure): return .failure(failure)
      default: return self.failure(.noOverload, node)
      }
    case .list: return self.list(node)
    case .map: return self.map(node)
    case .all, .exists, .existsOne, .filter, .mapEach, .mapIf: return self.comprehension(node)
    case .not, .negate, .select, .hasField, .size, .typeOf, .dynamic, .matchesPattern, .toInt,
      .toUint,
      .toDouble, .toString, .toBytes, .toBool, .toTimestamp, .toDuration:
      let operand = self.value(ofNode: node.a)
      if case .failure = operand { return operand }
      return self.unary(node, operand)
    case .fullYear, .month, .date, .dayOfMonth, .dayOfWeek, .dayOfYear, .hours, .minutes, .seconds,
      .milliseconds:
      let operand = self.value(ofNode: node.a)
      if case .failure = operand { return operand }
      guard node.b >= 0 else { return self.timePart(node, operand, zone: nil) }
      let zone = self.value(ofNode: node.b)
      if case .failure = zone { return zone }
      return self.timePart(node, operand, zone: zone)
    case .add, .subtract, .multiply, .divide, .modulo, .equal, .notEqual, .less, .lessOrEqual,
      .greater, .greaterOrEqual, .in, .index, .contains, .startsWith, .endsWith, .matches:
      let left = self.value(ofNode: node.a)
      if case .failure = left { return left }
      let right = self.value(ofNode: node.b)
      if case .failure = right { return right }
      return self.binary(node, left, right)
    }
  }

  func failure(_ reason: Failure.Reason, _ node: Instruction) -> Value {
    .failure(Failure(reason, at: node.offset))
  }

  /// `&&` (deciding: false) and `||` (deciding: true): one deciding side is enough, whatever the
  /// other is. If both fail, absence takes precedence, because with the column the result might
  /// differ.
  private func logical(_ node: Instruction, deciding: Bool) -> Value {
    let left = self.value(ofNode: node.a)
    if case .bool(let value) = left, value == deciding { return left }
    let right = self.value(ofNode: node.b)
    if case .bool(let value) = right, value == deciding { return right }
    switch (left, right) {
    case (.bool, .bool): return right
    case (.failure(let failure), _) where failure.reason == .absent: return left
    case (_, .failure(let failure)) where failure.reason == .absent: return right
    case (.failure, _): return left
    case (_, .failure): return right
    default: return self.failure(.noOverload, node)
    }
  }

  private func binary(_ node: Instruction, _ left: Value, _ right: Value) -> Value {
    switch node.operation {
    case .equal: return self.equality(node, left, right)
    case .notEqual:
      guard case .bool(let isEqual) = self.equality(node, left, right) else {
        return self.failure(.tooExpensive, node)
      }
      return .bool(!isEqual)
    case .less, .lessOrEqual, .greater, .greaterOrEqual: return self.ordering(node, left, right)
    case .add: return self.sum(node, left, right)
    case .subtract: return self.difference(node, left, right)
    case .multiply, .divide, .modulo: return self.product(node, left, right)
    case .in: return self.membership(node, left, right)
    case .index: return self.element(node, left, right)
    default: return self.textTest(node, left, right)
    }
  }

  private func unary(_ node: Instruction, _ operand: Value) -> Value {
    switch node.operation {
    case .not:
      guard case .bool(let value) = operand else { return self.failure(.noOverload, node) }
      return .bool(!value)
    case .negate:
      switch operand {
      case .int(let value): return value == .min ? self.failure(.overflow, node) : .int(-value)
      case .double(let value): return .double(-value)
      default: return self.failure(.noOverload, node)
      }
    case .select:
      guard case .map(let map) = operand else { return self.failure(.noSelection, node) }
      return map[self.program.constants[Int(node.b)]] ?? self.failure(.noSuchKey, node)
    case .hasField:
      guard case .map(let map) = operand else { return self.failure(.noSelection, node) }
      // A part that the event lacks is represented by a failure.
      guard let value = map[self.program.constants[Int(node.b)]] else { return .bool(false) }
      if case .failure = value { return .bool(false) }
      return .bool(true)
    case .size: return self.size(node, operand)
    case .typeOf: return operand.typeName.map { .type($0) } ?? operand
    case .dynamic: return operand
    case .matchesPattern:
      guard case .string(let text) = operand else { return self.failure(.noOverload, node) }
      return self.search(node, text, self.program.patterns[Int(node.b)])
    default: return self.conversion(node, operand)
    }
  }
}
