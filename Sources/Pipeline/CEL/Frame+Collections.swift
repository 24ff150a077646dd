extension Frame {
  func list(_ node: Instruction) -> Value {
    guard self.spend(making: Int(node.b) * MemoryLayout<Value>.stride) else {
      return self.failure(.tooExpensive, node)
    }
    var elements: [Value] = []
    elements.reserveCapacity(Int(node.b))
    for place in 0..<Int(node.b) {
      let value = self.value(ofNode: self.program.operands[Int(node.a) + place])
      if case .failure = value { return value }
      elements.append(value)
    }
    return self.made(.list(ListValue(elements)), node)
  }

  /// The value, unless its total size is too large.
  func made(_ value: Value, _ node: Instruction) -> Value {
    self.spend(making: value.byteCount) ? value : self.failure(.tooExpensive, node)
  }

  func map(_ node: Instruction) -> Value {
    guard self.spend(making: Int(node.b) * 2 * MemoryLayout<Value>.stride) else {
      return self.failure(.tooExpensive, node)
    }
    var keys: [Value] = []
    var values: [Value] = []
    for place in 0..<Int(node.b) {
      let value = self.value(ofNode: self.program.operands[Int(node.a) + place])
      if case .failure = value { return value }
      if place % 2 == 0 { keys.append(value) } else { values.append(value) }
    }
    switch MapValue.make(keys, values) {
    case .success(let map): return self.made(.map(map), node)
    case .failure(let failure): return self.failure(failure.reason, node)
    }
  }

  /// The columns that the event has.
  func row(_ node: Instruction) -> Value {
    let columns = self.program.scope.columns
    guard self.spend(making: columns.count * 2 * MemoryLayout<Value>.stride) else {
      return self.failure(.tooExpensive, node)
    }
    var keys: [Value] = []
    var values: [Value] = []
    for (index, column) in columns.enumerated() {
      if case .failure = self.columns[index] { continue }
      keys.append(.string(self.arena.store(column.name)))
      values.append(self.columns[index])
    }
    return self.made(.map(MapValue(uniqueKeys: keys, values)), node)
  }

  func membership(_ node: Instruction, _ value: Value, _ collection: Value) -> Value {
    switch collection {
    case .list(let list):
      guard self.spend(comparing: list.byteCount) else { return self.failure(.tooExpensive, node) }
      for element in list.elements where value.equals(element) { return .bool(true) }
      return .bool(false)
    case .map(let map):
      guard self.spend(comparing: value.byteCount) else { return self.failure(.tooExpensive, node) }
      return .bool(map.place(of: value) != nil)
    default: return self.failure(.noOverload, node)
    }
  }

  /// `list[index]`, `map[key]`. Numbers of all types are indices if they are whole.
  func element(_ node: Instruction, _ collection: Value, _ key: Value) -> Value {
    switch collection {
    case .list(let list):
      let index: Int64? =
        switch key {
        case .int(let value): value
        case .uint(let value): Int64(exactly: value) ?? .max
        case .double(let value): Int64(exactly: value)
        default: nil
        }
      guard let index else { return self.failure(.noOverload, node) }
      guard index >= 0, index < list.elements.count else {
        return self.failure(.indexOutOfRange, node)
      }
      return list.elements[Int(index)]
    case .map(let map):
      guard self.spend(comparing: key.byteCount) else { return self.failure(.tooExpensive, node) }
      return map[key] ?? self.failure(.noSuchKey, node)
    default: return self.failure(.noOverload, node)
    }
  }

  // MARK: Macros

  func comprehension(_ node: Instruction) -> Value {
    let elements: [Value]
    switch self.value(ofNode: node.a) {
    case .failure(let failure): return .failure(failure)
    case .list(let list): elements = list.elements
    case .map(let map): elements = map.keys
    default: return self.failure(.noOverload, node)
    }
    switch node.operation {
    case .all: return self.fold(node, elements, deciding: false)
    case .exists: return self.fold(node, elements, deciding: true)
    case .existsOne: return self.existsOne(node, elements)
    default: return self.collect(node, elements)
    }
  }

  /// The predicates joined by `&&` (deciding: false) or `||` (deciding: true).
  private func fold(_ node: Instruction, _ elements: [Value], deciding: Bool) -> Value {
    var failure: Failure?
    for element in elements {
      guard self.spend(passing: node) else { return self.failure(.tooExpensive, node) }
      self.locals[Int(node.c)] = element
      switch self.value(ofNode: node.b) {
      case .bool(let value): if value == deciding { return .bool(deciding) }
      case .failure(let new):
        // This failure is not a result of the predicate, so nothing may ignore it.
        if new.reason == .tooExpensive { return .failure(new) }
        if failure == nil || (new.reason == .absent && failure?.reason != .absent) { failure = new }
      default: failure = failure ?? Failure(.noOverload, at: node.offset)
      }
    }
    return failure.map { .failure($0) } ?? .bool(!deciding)
  }

  private func existsOne(_ node: Instruction, _ elements: [Value]) -> Value {
    var count = 0
    for element in elements {
      guard self.spend(passing: node) else { return self.failure(.tooExpensive, node) }
      self.locals[Int(node.c)] = element
      switch self.value(ofNode: node.b) {
      case .bool(let value): count += value ? 1 : 0
      case .failure(let failure): return .failure(failure)
      default: return self.failure(.noOverload, node)
      }
    }
    return .bool(count == 1)
  }

  /// `filter` and `map`.
  private func collect(_ node: Instruction, _ elements: [Value]) -> Value {
    var collected: [Value] = []
    for element in elements {
      guard self.spend(passing: node) else { return self.failure(.tooExpensive, node) }
      self.locals[Int(node.c)] = element
      var result = element
      if node.operation != .mapEach {
        switch self.value(ofNode: node.b) {
        case .bool(true): break
        case .bool(false): continue
        case .failure(let failure): return .failure(failure)
        default: return self.failure(.noOverload, node)
        }
      }
      if node.operation != .filter {
        result = self.value(ofNode: node.operation == .mapEach ? node.b : node.d)
        if case .failure = result { return result }
      }
      guard self.spend(making: MemoryLayout<Value>.stride) else {
        return self.failure(.tooExpensive, node)
      }
      collected.append(result)
    }
    return self.made(.list(ListValue(collected)), node)
  }
}
