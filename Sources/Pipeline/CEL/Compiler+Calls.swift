extension Compiler {
  mutating func call(
    _ name: String, _ receiver: Expression?, _ arguments: [Expression], _ offset: Int
  ) throws(CELError) -> Part {
    if let receiver {
      if Function.macros.contains(name) || name == "existsOne" {
        return try self.macro(name, receiver, arguments, offset)
      }
      try self.refuseExtensions(receiver, name, offset)
      let parts = try self.compile([receiver] + arguments)
      guard let function = Function.member[name] else {
        throw self.unknownFunction(name, Function.member.keys + Function.macros, offset)
      }
      return try self.call(function, name, parts, arguments.last, offset)
    }
    switch name {
    case "has": return try self.has(arguments, at: offset)
    case "?:": return try self.conditional(arguments, offset)
    case "==", "!=": return try self.equality(name, arguments, offset)
    case "in": return try self.membership(arguments, offset)
    default: break
    }
    if let function = Function.operators[name] {
      return try self.call(function, name, try self.compile(arguments), nil, offset)
    }
    guard let function = Function.global[name] else {
      throw self.unknownFunction(name, Function.global.keys + ["has"], offset)
    }
    return try self.call(function, name, try self.compile(arguments), arguments.last, offset)
  }

  private mutating func compile(_ expressions: [Expression]) throws(CELError) -> [Part] {
    var parts: [Part] = []
    for expression in expressions { parts.append(try self.compile(expression)) }
    return parts
  }

  /// - Parameter pattern: the last argument, of `matches` the regular expression.
  private mutating func call(
    _ function: Function, _ name: String, _ parts: [Part], _ pattern: Expression?, _ offset: Int
  ) throws(CELError) -> Part {
    let types = parts.map(\.type)
    let matching = function.overloads.filter { overload in
      overload.parameters.count == types.count
        && zip(types, overload.parameters).allSatisfy { $0.isAccepted(as: $1) }
    }
    guard let first = matching.first else {
      throw self.noOverload(function, name, types, offset)
    }
    var result = matching.allSatisfy { $0.result == first.result } ? first.result : .dyn
    if function.operation == .add, case .list(let left) = types[0], case .list(let right) = types[1]
    {
      result = .list(left.joined(with: right) ?? .dyn)
    }
    if function.operation == .matches, case .literal(.string(let text), let place)? = pattern {
      let index = try self.pattern(text, at: place)
      return self.emit(.matchesPattern, result, offset, parts[0].place, index)
    }
    let places = parts.map(\.place)
    return self.emit(
      function.operation, result, offset, places[0], places.count > 1 ? places[1] : -1,
      places.count > 2 ? places[2] : -1)
  }

  private mutating func pattern(_ text: [UInt8], at offset: Int) throws(CELError) -> Int32 {
    switch text.withUnsafeBufferPointer({ Pattern.compile(BorrowedBytes($0)) }) {
    case .mistake(let reason):
      throw self.error(.type, "invalid regular expression: \(reason)", at: offset)
    case .pattern(let pattern):
      let total = self.patterns.reduce(pattern.instructionCount) { $0 + $1.instructionCount }
      guard self.patterns.count < PatternLimits.countPerExpression,
        total <= PatternLimits.instructionCountPerExpression
      else {
        throw self.error(
          .type,
          "the expression has more than \(PatternLimits.countPerExpression) regular expressions, "
            + "or they are too large together", at: offset)
      }
      self.patterns.append(pattern)
      return Int32(self.patterns.count - 1)
    }
  }

  private func noOverload(
    _ function: Function, _ name: String, _ types: [CELType], _ offset: Int
  ) -> CELError {
    let operands = types.map(\.description).joined(separator: ", ")
    let symbol = name.hasSuffix("_") ? String(name.dropLast()) : name
    let choices = function.overloads.map { overload in
      "(" + overload.parameters.map(\.description).joined(separator: ", ") + ")"
    }
    let isArithmetic = ["+", "-", "*", "/", "%", "-_"].contains(name)
    let hint =
      isArithmetic && types.contains(.decimal)
      ? "decimals can be compared, not calculated with; convert with double()"
      : isArithmetic && types.count == 2 && types.allSatisfy(\.isNumber)
        ? "arithmetic does not mix types; convert with int(), uint() or double()"
        : name.hasPrefix("<") || name.hasPrefix(">")
          ? "it orders numbers, or two of one type: bool, string, bytes, timestamp, duration"
          : "it takes " + choices.prefix(6).joined(separator: ", ")
            + (choices.count > 6 ? ", …" : "")
    return self.error(.type, "'\(symbol)' does not take (\(operands)); \(hint)", at: offset)
  }

  private func unknownFunction(_ name: String, _ known: [String], _ offset: Int) -> CELError {
    self.error(
      .type,
      "there is no function '\(name)'"
        + NameSuggestion.text(for: name, among: known, kind: "functions"), at: offset)
  }

  /// `math.greatest(…)`, `x.split(',')`: functions of extension libraries.
  private func refuseExtensions(
    _ receiver: Expression, _ name: String, _ offset: Int
  ) throws(CELError) {
    guard !Function.unsupported.contains(name) else {
      throw self.error(
        .unsupported, "unsupported: '\(name)' is not part of this profile of CEL", at: offset)
    }
    var root = receiver
    while case .select(let operand, _, _) = root { root = operand }
    guard case .name(let namespace, _, _) = root,
      Function.unsupportedNamespaces.contains(namespace),
      self.scope.index(of: namespace) == nil, !self.locals.contains(where: { $0.name == namespace })
    else { return }
    throw self.error(
      .unsupported, "unsupported: the library '\(namespace)' is not part of this profile of CEL",
      at: root.offset)
  }

  // MARK: Operators of any type

  private mutating func conditional(
    _ arguments: [Expression], _ offset: Int
  ) throws(CELError) -> Part {
    let parts = try self.compile(arguments)
    guard parts[0].type.isAccepted(as: .bool) else {
      throw self.error(.type, "the condition before '?' is \(parts[0].type), not bool", at: offset)
    }
    // If a column exists in no event, the other branch decides the type.
    let known =
      self.isAbsentColumn(parts[1])
      ? parts[2].type : self.isAbsentColumn(parts[2]) ? parts[1].type : nil
    guard let type = known ?? parts[1].type.joined(with: parts[2].type) else {
      throw self.error(
        .type,
        "the choices of '?' are of different types, \(parts[1].type) and \(parts[2].type); "
          + "convert one of them, or use dyn()", at: offset)
    }
    return self.emit(
      .conditional, type, offset, parts[0].place, parts[1].place, parts[2].place)
  }

  private func isAbsentColumn(_ part: Part) -> Bool {
    let instruction = self.instructions[Int(part.place)]
    guard instruction.operation == .constant else { return false }
    if case .failure = self.constants[Int(instruction.a)] { return true }
    return false
  }

  private mutating func equality(
    _ name: String, _ arguments: [Expression], _ offset: Int
  ) throws(CELError) -> Part {
    let parts = try self.compile(arguments)
    guard parts[0].type.isComparable(to: parts[1].type) else {
      throw self.error(
        .type, "'\(name)' does not compare \(parts[0].type) with \(parts[1].type)", at: offset)
    }
    return self.emit(
      name == "==" ? .equal : .notEqual, .bool, offset, parts[0].place, parts[1].place)
  }

  private mutating func membership(
    _ arguments: [Expression], _ offset: Int
  ) throws(CELError) -> Part {
    let parts = try self.compile(arguments)
    switch parts[1].type {
    case .dyn: break
    case .list(let element) where parts[0].type.isComparable(to: element): break
    case .map(let key, _) where parts[0].type.isComparable(to: key): break
    default:
      throw self.error(
        .type, "'in' does not look for \(parts[0].type) in \(parts[1].type)", at: offset)
    }
    return self.emit(.in, .bool, offset, parts[0].place, parts[1].place)
  }

  // MARK: Macros

  private mutating func macro(
    _ name: String, _ receiver: Expression, _ arguments: [Expression], _ offset: Int
  ) throws(CELError) -> Part {
    let isMap = name == "map"
    guard arguments.count == 2 || (isMap && arguments.count == 3), name != "existsOne" else {
      throw self.error(
        arguments.count == 3 || name == "existsOne" ? .unsupported : .syntax,
        arguments.count == 3 || name == "existsOne"
          ? "unsupported: macros of two variables are not part of this profile of CEL"
          : "\(name)() takes a variable and an expression: list.\(name)(x, …)", at: offset)
    }
    guard case .name(let variable, false, _) = arguments[0] else {
      throw self.error(
        .syntax, "the first argument of \(name)() is the name of a variable",
        at: arguments[0].offset)
    }
    let range = try self.compile(receiver)
    let element: CELType
    switch range.type {
    case .dyn: element = .dyn
    case .list(let type), .map(let type, _): element = type
    default:
      throw self.error(
        .type, "\(name)() goes through a list or the keys of a map, not \(range.type)",
        at: receiver.offset)
    }
    let slot = Int32(self.locals.count)
    self.locals.append((variable, element))
    self.localCount = max(self.localCount, self.locals.count)
    defer { self.locals.removeLast() }
    let body = try self.compile(arguments[1])
    if !isMap || arguments.count == 3 {
      guard body.type.isAccepted(as: .bool) else {
        throw self.error(
          .type, "the condition of \(name)() is \(body.type), not bool", at: arguments[1].offset)
      }
    }
    switch name {
    case "all": return self.emit(.all, .bool, offset, range.place, body.place, slot)
    case "exists": return self.emit(.exists, .bool, offset, range.place, body.place, slot)
    case "exists_one": return self.emit(.existsOne, .bool, offset, range.place, body.place, slot)
    case "filter": return self.emit(.filter, .list(element), offset, range.place, body.place, slot)
    default: break
    }
    guard arguments.count == 3 else {
      return self.emit(.mapEach, .list(body.type), offset, range.place, body.place, slot)
    }
    let result = try self.compile(arguments[2])
    return self.emit(
      .mapIf, .list(result.type), offset, range.place, body.place, slot, result.place)
  }
}
