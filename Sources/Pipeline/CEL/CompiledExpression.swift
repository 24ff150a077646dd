/// A name in an expression that is not a column's.
package struct UnknownName: Sendable, Hashable {
  package var name: String
  package var position: SourcePosition
}

/// A compiled expression, for the rows of one layout.
///
/// Compiled once per schema and then evaluated by any number of frames, one per thread. Evaluations
/// of scalar expressions (no list, map or text is made) allocate nothing.
///
///     let scope = ExpressionScope(columns: [.init("StageName", .string), .init("Amount", .double)])
///     let program = try CompiledExpression("StageName == 'Closed Won' && Amount >= 1000", scope: scope)
///     let frame = Frame(program)
///     for row in rows {
///       for column in program.columns { frame.set(column, to: …) }
///       switch frame.evaluate() { … }
///     }
package final class CompiledExpression: @unchecked Sendable {
  // Sendable: nothing is changed after `init`, and patterns of RE2 may be shared.

  package let source: String
  /// The type of the result, as far as it is known without a row.
  package let type: CELType
  package let scope: ExpressionScope
  /// Indices of the columns that the expression reads, ascending; all of them if it uses `row` as a
  /// whole.
  package let columns: [Int]
  /// Names that are not columns, where the scope accepts them; each as often as it occurs.
  package let unknownNames: [UnknownName]
  /// Whether `row` is used as a whole.
  package let readsWholeRow: Bool

  let instructions: UnsafeMutablePointer<Instruction>
  let instructionCount: Int
  let operands: UnsafeMutablePointer<Int32>
  let operandCount: Int
  let constants: UnsafeMutablePointer<Value>
  let constantCount: Int
  let patterns: [Pattern]
  let localCount: Int
  let limits: ExpressionLimits
  /// Owns the texts of the constants.
  let arena: ByteArena

  /// - Throws: `CELError` (`syntax`, `type`, `unsupported`) with the place of the first mistake.
  package init(
    _ source: String, scope: ExpressionScope, limits: ExpressionLimits = ExpressionLimits()
  ) throws(CELError) {
    let text = Array(source.utf8)
    let expression = try Parser.parse(text, limits: limits)
    var compiler = Compiler(scope: scope, text: text, limits: limits)
    self.type = try compiler.compile(expression).type
    self.source = source
    self.scope = scope
    self.columns = compiler.columns.sorted()
    self.unknownNames = compiler.unknownNames
    self.readsWholeRow = compiler.readsWholeRow
    self.instructionCount = compiler.instructions.count
    self.instructions = .allocate(capacity: self.instructionCount)
    self.instructions.initialize(from: compiler.instructions, count: self.instructionCount)
    self.operandCount = compiler.operands.count
    self.operands = .allocate(capacity: self.operandCount)
    self.operands.initialize(from: compiler.operands, count: self.operandCount)
    // One place per instruction beyond the literals, for the results of `fold`.
    self.constantCount = compiler.constants.count + self.instructionCount
    self.constants = .allocate(capacity: self.constantCount)
    self.constants.initialize(repeating: .null, count: self.constantCount)
    for (index, value) in compiler.constants.enumerated() { self.constants[index] = value }
    self.patterns = compiler.patterns
    self.localCount = compiler.localCount
    self.limits = limits
    self.arena = compiler.arena
    self.fold(into: compiler.constants.count)
  }

  deinit {
    self.instructions.deallocate()
    self.operands.deallocate()
    self.constants.deinitialize(count: self.constantCount)
    self.constants.deallocate()
  }

  /// Evaluates parts that depend only on literals. Failures are left to the evaluation, where `&&`
  /// and `||` may ignore them.
  private func fold(into firstPlace: Int) {
    let frame = Frame(self)
    for index in 0..<self.instructionCount {
      let instruction = self.instructions[index]
      guard self.isConstant(instruction) else { continue }
      let value = frame.value(ofNode: Int32(index))
      if case .failure = value { continue }
      guard let kept = self.keep(value) else { continue }
      self.constants[firstPlace + index] = kept
      self.instructions[index] = Instruction(
        operation: .constant, offset: instruction.offset, a: Int32(firstPlace + index))
    }
  }

  private func isConstant(_ instruction: Instruction) -> Bool {
    func isConstant(_ place: Int32) -> Bool {
      place < 0 || self.instructions[Int(place)].operation == .constant
    }
    switch instruction.operation {
    case .list, .map:
      return (0..<instruction.b).allSatisfy { isConstant(self.operands[Int(instruction.a + $0)]) }
    default:
      guard let count = instruction.operation.operandCount else { return false }
      return [instruction.a, instruction.b, instruction.c].prefix(count).allSatisfy(isConstant)
    }
  }

  /// The value with its texts copied into the program's memory; nil if it is large.
  private func keep(_ value: Value, depth: Int = 0) -> Value? {
    switch value {
    case .string(let text): return .string(self.arena.store(text.bytes))
    case .bytes(let bytes): return .bytes(self.arena.store(bytes.bytes))
    case .list(let list):
      let kept = list.elements.compactMap { self.keep($0) }
      return kept.count == list.elements.count ? .list(ListValue(kept)) : nil
    case .map(let map):
      let keys = map.keys.compactMap { self.keep($0) }
      let values = map.values.compactMap { self.keep($0) }
      guard keys.count == values.count, keys.count == map.keys.count else { return nil }
      return .map(MapValue(uniqueKeys: keys, values))
    default: return value
    }
  }
}
