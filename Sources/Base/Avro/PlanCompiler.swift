/// Compiles the programs of a `DecodePlan` from a schema.
struct PlanCompiler {
  struct NamedStep {
    var step: Step
    var name: String
    /// Whether a zero byte means null.
    var isNullFirst: Bool
  }

  private let schema: Schema
  private let options: DecodePlan.Options
  private let recursive: Set<Int>
  private(set) var programs: [[NamedStep]] = []
  private(set) var nextSlot: Int
  private var branchCount = 0

  init(_ schema: Schema, options: DecodePlan.Options) {
    self.schema = schema
    self.options = options
    self.recursive = schema.recursiveTypes()
    self.nextSlot = options.firstSlot
  }

  mutating func compileRoot() throws(AvroError) -> [DecodePlan.Field] {
    if case .record(let fields) = self.schema[self.schema.root].kind {
      return try self.program(of: fields, path: [], depth: 0).fields
    }
    let root = Schema.Field(
      name: "", aliases: [], doc: nil, type: self.schema.root, defaultValue: nil,
      order: .ascending)
    return try self.program(of: [root], path: [], depth: 0).fields
  }

  /// The program of a record's fields; the root's has number 0.
  private mutating func program(
    of fields: [Schema.Field], path: [String], depth: Int
  ) throws(AvroError) -> (index: Int, fields: [DecodePlan.Field]) {
    let index = self.programs.count
    self.programs.append([])
    var steps: [NamedStep] = []
    var planned: [DecodePlan.Field] = []
    for field in fields {
      let path = path + [field.name]
      let (step, content) = try self.field(field, path: path, depth: depth)
      steps.append(step)
      planned.append(
        DecodePlan.Field(name: field.name, path: path, doc: field.doc, content: content))
    }
    var run = 0
    for place in steps.indices.reversed() {
      run = steps[place].isNullFirst ? run + 1 : 0
      steps[place].step.nullRun = UInt16(min(run, Int(UInt16.max)))
    }
    self.programs[index] = steps
    return (index, planned)
  }

  private mutating func field(
    _ field: Schema.Field, path: [String], depth: Int
  ) throws(AvroError) -> (NamedStep, DecodePlan.Field.Content) {
    guard case .union(let branches) = self.schema[field.type].kind else {
      let (step, content) = try self.value(field, field.type, path: path, depth: depth)
      return (NamedStep(step: step, name: field.name, isNullFirst: false), content)
    }
    let isNull = branches.map { self.isNull($0) }
    if branches.count == 2, isNull[0] != isNull[1] {
      let other = isNull[0] ? branches[1] : branches[0]
      var (step, content) = try self.value(field, other, path: path, depth: depth)
      step.nullBranch = isNull[0] ? .first : .second
      return (NamedStep(step: step, name: field.name, isNullFirst: isNull[0]), content)
    }
    let isNullFirst = isNull.first ?? false
    self.branchCount += branches.count
    guard self.branchCount <= self.options.maxSlots * 4 else {
      throw AvroError(
        .limitExceeded, "more than \(self.options.maxSlots * 4) branches of unions",
        path: path.joined(separator: "."))
    }
    let (steps, content) = try self.branches(branches, field: field, path: path, depth: depth)
    self.programs.append(
      steps.map { NamedStep(step: $0, name: "", isNullFirst: false) })
    let step = Step(.union, slot: -1, argument: self.programs.count - 1)
    return (NamedStep(step: step, name: field.name, isNullFirst: isNullFirst), content)
  }

  /// Steps for the branches of a union that is not simply nullable.
  private mutating func branches(
    _ branches: [Schema.TypeID], field: Schema.Field, path: [String], depth: Int
  ) throws(AvroError) -> ([Step], DecodePlan.Field.Content) {
    let nothing = Step(.nothing, slot: -1)
    let others = branches.filter { !self.isNull($0) }
    if others.count == 1 {
      let (step, content) = try self.value(field, others[0], path: path, depth: depth)
      return (branches.map { $0 == others[0] ? step : nothing }, content)
    }
    let records = others.filter { self.isFlattened($0, depth: depth) }
    let scalars = others.filter { self.isScalar($0) }
    if others.count == 2, records.count == 1, scalars.count == 1 {
      // The scalar's slot comes first, because flattened it is written before the record's fields.
      let (scalarStep, scalarContent) = try self.value(field, scalars[0], path: [], depth: depth)
      let (recordStep, recordContent) = try self.value(
        field, records[0], path: path, depth: depth)
      guard case .record(let slot, _, let fields) = recordContent,
        case .value(let scalarSlot, let type) = scalarContent
      else { preconditionFailure("a record and a scalar were compiled as something else") }
      let steps = branches.map {
        $0 == records[0] ? recordStep : $0 == scalars[0] ? scalarStep : nothing
      }
      let scalar = DecodePlan.Field.Scalar(slot: scalarSlot, type: type)
      return (steps, .record(slot: slot, scalar: scalar, fields: fields))
    }
    let slot = try self.slot(path)
    let steps = branches.map { branch in
      self.isNull(branch) ? nothing : Step(.json, slot: slot, argument: branch.index)
    }
    return (steps, .value(slot: slot, .json))
  }

  private func isNull(_ type: Schema.TypeID) -> Bool {
    if case .null = self.schema[type].kind { true } else { false }
  }

  private func isFlattened(_ type: Schema.TypeID, depth: Int) -> Bool {
    guard case .record = self.schema[type].kind else { return false }
    return !self.recursive.contains(type.index) && depth < self.options.flattenDepth
  }

  private func isScalar(_ type: Schema.TypeID) -> Bool {
    switch self.schema[type].kind {
    case .record, .array, .map, .union: false
    default: true
    }
  }

  private mutating func value(
    _ field: Schema.Field, _ type: Schema.TypeID, path: [String], depth: Int
  ) throws(AvroError) -> (Step, DecodePlan.Field.Content) {
    let definition = self.schema[type]
    let slot = try self.slot(path)
    func step(_ operation: Step.Operation, _ argument: Int = 0, size: Int = 0) -> Step {
      Step(operation, slot: slot, argument: argument, size: size)
    }
    let valueType = definition.valueType(interpretation: self.options.interpretation(field))
    if case .decimal(_, let scale)? = valueType, scale > LogicalType.maxDecimalDigits {
      throw AvroError(
        .limitExceeded,
        "a decimal of \(scale) digits after the decimal point; the limit is "
          + "\(LogicalType.maxDecimalDigits)", path: path.joined(separator: "."))
    }
    switch (definition.kind, valueType) {
    case (.record(let fields), _) where self.isFlattened(type, depth: depth):
      let (program, planned) = try self.program(of: fields, path: path, depth: depth + 1)
      return (step(.record, program), .record(slot: slot, scalar: nil, fields: planned))
    case (.array(let items), _):
      let isStrings = self.schema.isPlainString(items)
      if isStrings, self.options.lists.contains(path) { return (step(.list), .list(slot: slot)) }
      return (step(.json, type.index), .value(slot: slot, isStrings ? .stringList : .json))
    case (.null, _):
      return (step(.nothing), .value(slot: slot, .json))
    case (.boolean, let valueType?):
      return (step(.boolean), .value(slot: slot, valueType))
    case (.int, let valueType?):
      return (step(.int), .value(slot: slot, valueType))
    case (.long, let valueType?):
      return (step(.long), .value(slot: slot, valueType))
    case (.float, let valueType?):
      return (step(.float), .value(slot: slot, valueType))
    case (.double, let valueType?):
      return (step(.double), .value(slot: slot, valueType))
    case (.enumeration(let symbols, _), let valueType?):
      return (step(.enumeration, symbols.count), .value(slot: slot, valueType))
    case (.string, .uuid?):
      return (step(.uuidString), .value(slot: slot, .uuid))
    case (.string, let valueType?):
      return (step(.string), .value(slot: slot, valueType))
    case (.bytes, .decimal(let precision, _)?):
      return (
        step(.decimalBytes, maxDecimalBytes(precision)), .value(slot: slot, valueType ?? .bytes)
      )
    case (.bytes, .bigDecimal?):
      return (step(.bigDecimal), .value(slot: slot, .bigDecimal))
    case (.bytes, let valueType?):
      return (step(.bytes), .value(slot: slot, valueType))
    case (.fixed(let size), .decimal(let precision, _)?):
      return (
        step(.decimalFixed, maxDecimalBytes(precision), size: size),
        .value(slot: slot, valueType ?? .bytes)
      )
    case (.fixed, .uuid?):
      return (step(.uuidFixed), .value(slot: slot, .uuid))
    case (.fixed(let size), let valueType?):
      return (step(.fixed, size), .value(slot: slot, valueType))
    default:
      return (step(.json, type.index), .value(slot: slot, .json))
    }
  }

  private mutating func slot(_ path: [String]) throws(AvroError) -> Int {
    if let given = self.options.slots[path] { return given }
    guard self.nextSlot < self.options.maxSlots else {
      throw AvroError(
        .limitExceeded, "more than \(self.options.maxSlots) columns after flattening",
        path: path.joined(separator: "."))
    }
    defer { self.nextSlot += 1 }
    return self.nextSlot
  }
}

extension Step {
  init(_ operation: Operation, slot: Int, argument: Int = 0, size: Int = 0) {
    self.init(
      operation: operation, nullBranch: .none, nullRun: 0, slot: Int32(slot),
      argument: Int32(argument), size: Int32(size))
  }
}

/// The number of bytes that hold any number with that many decimal digits and a sign: (n × log2(10)
/// + 1) / 8, rounded up.
func maxDecimalBytes(_ precision: Int) -> Int { (precision * 3322 + 1000) / 8000 + 1 }

extension Schema.Definition {
  /// The value type of a scalar type; nil for records, arrays, maps, unions and null.
  func valueType(interpretation: ValueType?) -> ValueType? {
    switch (self.kind, self.logicalType) {
    case (_, .decimal(let precision, let scale)): .decimal(precision: precision, scale: scale)
    case (_, .bigDecimal): .bigDecimal
    case (_, .uuid): .uuid
    case (_, .date): .date
    case (_, .time(let unit)): .time(unit)
    case (_, .timestamp(let unit, let isLocal)): .timestamp(unit, isLocal: isLocal)
    case (_, .duration): .duration
    case (.boolean, nil): .boolean
    case (.int, nil): .int
    case (.long, nil): interpretation ?? .long
    case (.float, nil): .float
    case (.double, nil): .double
    case (.string, nil): .string
    case (.bytes, nil), (.fixed, nil): .bytes
    case (.enumeration(let symbols, _), nil): .enumeration(symbols)
    default: nil
    }
  }
}

extension Schema {
  func isPlainString(_ type: TypeID) -> Bool {
    if case .string = self[type].kind { true } else { false }
  }

  /// Types that contain themselves: the strongly connected components of the table with more
  /// than one member, or with a reference to themselves (Tarjan; without recursion, because a
  /// chain of references may be as long as the table).
  func recursiveTypes() -> Set<Int> {
    let references = self.definitions.map { definition -> [Int] in
      switch definition.kind {
      case .record(let fields): fields.map(\.type.index)
      case .array(let part), .map(let part): [part.index]
      case .union(let branches): branches.map(\.index)
      default: []
      }
    }
    var found: Set<Int> = []
    var order = [Int](repeating: -1, count: references.count)
    var low = order
    var isOpen = [Bool](repeating: false, count: references.count)
    var open: [Int] = []
    var counter = 0
    for root in references.indices where order[root] < 0 {
      var work: [(node: Int, next: Int)] = [(root, 0)]
      while let (node, next) = work.last {
        if next == 0 {
          order[node] = counter
          low[node] = counter
          counter += 1
          open.append(node)
          isOpen[node] = true
        }
        if next < references[node].count {
          work[work.count - 1].next += 1
          let target = references[node][next]
          if order[target] < 0 {
            work.append((target, 0))
          } else if isOpen[target] {
            low[node] = min(low[node], order[target])
            if target == node { found.insert(node) }
          }
          continue
        }
        work.removeLast()
        if let parent = work.last { low[parent.node] = min(low[parent.node], low[node]) }
        guard low[node] == order[node] else { continue }
        var component: [Int] = []
        repeat {
          component.append(open.removeLast())
          isOpen[component[component.count - 1]] = false
        } while component[component.count - 1] != node
        if component.count > 1 { found.formUnion(component) }
      }
    }
    return found
  }
}
