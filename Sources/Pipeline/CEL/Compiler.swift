/// Checks an expression against the columns and generates the instructions of a program.
///
/// One pass from the leaves up: the type of a part is known before that of the whole, and an operand
/// of type `dyn` is left to the evaluation, where the same operation looks at the value.
struct Compiler {
  /// A compiled part.
  struct Part {
    var type: CELType
    /// Index of its instruction.
    var place: Int32
  }

  let scope: ExpressionScope
  let text: [UInt8]
  let limits: ExpressionLimits
  var instructions: [Instruction] = []
  /// Operands of lists and maps.
  var operands: [Int32] = []
  var constants: [Value] = []
  var patterns: [Pattern] = []
  /// Owns the texts of the constants.
  let arena = ByteArena()
  /// Columns that are read.
  var columns: Set<Int> = []
  var unknownNames: [UnknownName] = []
  var readsWholeRow = false
  /// Variables of the macros around the part, innermost last; the index is the place of the value.
  var locals: [(name: String, type: CELType)] = []
  var localCount = 0

  init(scope: ExpressionScope, text: [UInt8], limits: ExpressionLimits) {
    self.scope = scope
    self.text = text
    self.limits = limits
  }

  mutating func compile(_ expression: Expression) throws(CELError) -> Part {
    switch expression {
    case .literal(let literal, let offset): return self.literal(literal, offset)
    case .name, .select: return try self.qualifiedName(expression)
    case .index(let operand, let index, let offset):
      return try self.index(operand, index, offset)
    case .list(let elements, let offset): return try self.list(elements, offset)
    case .map(let entries, let offset): return try self.map(entries, offset)
    case .call(let name, let receiver, let arguments, let offset):
      return try self.call(name, receiver, arguments, offset)
    }
  }

  // MARK: Pieces

  mutating func emit(
    _ operation: Operation, _ type: CELType, _ offset: Int, _ a: Int32 = 0, _ b: Int32 = 0,
    _ c: Int32 = 0, _ d: Int32 = 0
  ) -> Part {
    self.instructions.append(
      Instruction(operation: operation, offset: Int32(offset), a: a, b: b, c: c, d: d))
    return Part(type: type, place: Int32(self.instructions.count - 1))
  }

  mutating func constant(_ value: Value) -> Int32 {
    self.constants.append(value)
    return Int32(self.constants.count - 1)
  }

  mutating func constant(_ value: Value, _ type: CELType, _ offset: Int) -> Part {
    self.emit(.constant, type, offset, self.constant(value))
  }

  func error(_ code: CELError.Code, _ message: String, at offset: Int) -> CELError {
    CELError(code, message, at: SourcePosition(offset: offset, in: self.text))
  }

  private mutating func literal(_ literal: Expression.Literal, _ offset: Int) -> Part {
    switch literal {
    case .null: self.constant(.null, .null, offset)
    case .bool(let value): self.constant(.bool(value), .bool, offset)
    case .int(let value): self.constant(.int(value), .int, offset)
    case .uint(let value): self.constant(.uint(value), .uint, offset)
    case .double(let value): self.constant(.double(value), .double, offset)
    case .string(let bytes): self.constant(.string(self.arena.store(bytes)), .string, offset)
    case .bytes(let bytes): self.constant(.bytes(self.arena.store(bytes)), .bytes, offset)
    }
  }

  // MARK: Lists and maps

  private mutating func index(
    _ operand: Expression, _ index: Expression, _ offset: Int
  ) throws(CELError) -> Part {
    let list = try self.compile(operand)
    let key = try self.compile(index)
    let result: CELType
    switch list.type {
    case .list(let element) where key.type == .int || key.type == .dyn: result = element
    case .map(let expected, let value) where key.type.isComparable(to: expected): result = value
    case .dyn: result = .dyn
    default:
      throw self.error(
        .type, "\(list.type) has no elements that are found with \(key.type)", at: offset)
    }
    return self.emit(.index, result, offset, list.place, key.place)
  }

  private mutating func list(_ elements: [Expression], _ offset: Int) throws(CELError) -> Part {
    var places: [Int32] = []
    var type: CELType?
    for element in elements {
      let part = try self.compile(element)
      places.append(part.place)
      type = type.map { $0.joined(with: part.type) ?? .dyn } ?? part.type
    }
    self.operands += places
    return self.emit(
      .list, .list(type ?? .dyn), offset, Int32(self.operands.count - places.count),
      Int32(places.count))
  }

  private mutating func map(
    _ entries: [(key: Expression, value: Expression)], _ offset: Int
  ) throws(CELError) -> Part {
    var places: [Int32] = []
    var (keyType, valueType): (CELType?, CELType?)
    for entry in entries {
      let key = try self.compile(entry.key)
      switch key.type {
      case .bool, .int, .uint, .string, .dyn: break
      default:
        throw self.error(
          .type, "a key of a map is bool, int, uint or string, not \(key.type)",
          at: entry.key.offset)
      }
      let value = try self.compile(entry.value)
      places += [key.place, value.place]
      keyType = keyType.map { $0.joined(with: key.type) ?? .dyn } ?? key.type
      valueType = valueType.map { $0.joined(with: value.type) ?? .dyn } ?? value.type
    }
    self.operands += places
    return self.emit(
      .map, .map(keyType ?? .dyn, valueType ?? .dyn), offset,
      Int32(self.operands.count - places.count), Int32(places.count))
  }
}
