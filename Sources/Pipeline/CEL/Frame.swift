/// The working memory of evaluations: the values of the columns and space for results.
///
/// Used by one thread at a time; keeps its memory, so that evaluations of scalar expressions allocate
/// nothing.
package final class Frame {
  package let program: CompiledExpression
  let columns: UnsafeMutablePointer<Value>
  let locals: UnsafeMutablePointer<Value>
  /// Owns the texts that the evaluation made.
  let arena = ByteArena()
  /// The remaining `ExpressionLimits.iterationCount` and `.madeByteCount`.
  var iterationsLeft = 0
  var bytesLeft = 0
  /// Time zones that were named so far.
  var timeZones = TimeZoneCache()

  package init(_ program: CompiledExpression) {
    self.program = program
    self.columns = .allocate(capacity: program.scope.columns.count)
    self.columns.initialize(repeating: .absent, count: program.scope.columns.count)
    self.locals = .allocate(capacity: program.localCount)
    self.locals.initialize(repeating: .null, count: program.localCount)
    self.allowAgain()
  }

  deinit {
    self.columns.deinitialize(count: self.program.scope.columns.count)
    self.columns.deallocate()
    self.locals.deinitialize(count: self.program.localCount)
    self.locals.deallocate()
  }

  /// Sets a column of the row, `Value.absent` if the event lacks it. The value stays until it is
  /// set again.
  ///
  /// - Parameters:
  ///   - column: its index in the program's scope.
  ///   - value: of the column's type, or null or absent. Texts must live until the result has been
  ///     used.
  package func set(_ column: Int, to value: Value) {
    precondition(
      column >= 0 && column < self.program.scope.columns.count,
      "column \(column) of \(self.program.scope.columns.count)")
    self.columns[column] = value
  }

  /// The value for the columns that are set, or `Value.failure`.
  package func evaluate() -> Value {
    self.arena.removeAll()
    self.allowAgain()
    return self.value(ofNode: Int32(self.program.instructionCount - 1))
  }

  private func allowAgain() {
    self.iterationsLeft = self.program.limits.iterationCount
    self.bytesLeft = self.program.limits.madeByteCount
  }

  /// The error for a failure of this program.
  package func error(_ failure: Failure) -> CELError {
    let source = Array(self.program.source.utf8)
    let position = SourcePosition(offset: Int(failure.offset), in: source)
    var (code, message) = failure.reason.explanation
    if failure.reason == .noOverload, let name = Self.name(at: Int(failure.offset), in: source) {
      message = "'\(name)': \(message)"
    }
    return CELError(code, message, at: position)
  }

  /// The operator or function that a place of the source names; nil for brackets and the like.
  private static func name(at offset: Int, in source: [UInt8]) -> String? {
    let rest = source.dropFirst(offset)
    let word = rest.prefix {
      $0 == UInt8(ascii: "_") || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
        || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0 | 0x20)
    }
    if !word.isEmpty { return String(decoding: word, as: UTF8.self) }
    return ["==", "!=", "<=", ">=", "&&", "||", "+", "-", "*", "/", "%", "!", "<", ">", "?"]
      .first { rest.starts(with: $0.utf8) }
  }

  // MARK: Costs

  /// Counts passes through a macro, or as many bytes by the kilobyte; false when there were too many.
  @inline(__always)
  func spend(_ iterations: Int) -> Bool {
    self.iterationsLeft &-= iterations
    return self.iterationsLeft >= 0
  }

  /// Counts a pass through the parts of a macro. The compiler emits them after its list or map.
  @inline(__always)
  func spend(passing macro: Instruction) -> Bool {
    self.spend(1 + Int(max(macro.b, macro.d) - macro.a) >> 6)
  }

  @inline(__always)
  func spend(comparing bytes: Int) -> Bool { self.spend(bytes >> 10) }

  /// Counts memory that is about to be used.
  func spend(making bytes: Int) -> Bool {
    self.bytesLeft -= bytes
    return self.bytesLeft >= 0
  }
}

extension Failure.Reason {
  fileprivate var explanation: (CELError.Code, String) {
    switch self {
    case .absent: (.absent, "the event does not have this column, and the result depends on it")
    case .unknown:
      (.evaluation, "the value of this column is not known, and the result depends on it")
    case .nullOrdering: (.nullOrdering, "null has no order; test for it first: Column != null && …")
    case .noOverload:
      (
        .evaluation,
        "no such operation for values of these types; null has none but == and !=, so test for it "
          + "first: Column == null ? … : …"
      )
    case .noSuchKey: (.evaluation, "no such key in the map")
    case .indexOutOfRange: (.evaluation, "the index is outside of the list")
    case .divisionByZero: (.evaluation, "division by zero")
    case .overflow: (.evaluation, "the result is out of range")
    case .outOfRange: (.evaluation, "the value is out of the range of the type")
    case .invalidText: (.evaluation, "the text cannot be converted to this type")
    case .invalidUTF8: (.evaluation, "the bytes are invalid UTF-8")
    case .duplicateKey: (.evaluation, "the map has one key twice")
    case .invalidKey: (.evaluation, "a key of a map is bool, int, uint or string")
    case .noSelection: (.evaluation, "only maps have fields")
    case .invalidPattern: (.evaluation, "the text is an invalid regular expression")
    case .unknownTimeZone:
      (.evaluation, "no such time zone; write 'UTC', an offset as '+02:00', or a name of IANA")
    case .tooExpensive: (.evaluation, "the evaluation takes too many steps or too much memory")
    }
  }
}
