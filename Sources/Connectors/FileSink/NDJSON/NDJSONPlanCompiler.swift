internal import Bytes
internal import JSON
internal import Pipeline

/// Builds the tables of an `NDJSONPlan`. Runs once for each layout.
struct NDJSONPlanCompiler: ~Copyable {
  /// Padding after the text, so that keys can be copied 16 bytes at a time.
  static let padding = 16
  /// A scan spans at most this many unused slots.
  private static let widestGap = 64

  private let layout: RecordLayout
  private let options: NDJSONFormat
  /// The last column that every line has.
  private let lastMetadataColumn: Int?
  private let isOfReads: Bool
  /// Lines have columns that the layout lacks.
  private let hasReadKeys: Bool
  private(set) var readKeys = NDJSONPlan.ReadKeys()
  private(set) var readMasks: [UInt64] = []
  private var pool = ByteBuffer()
  private(set) var entries: [NDJSONPlan.Entry] = []
  private(set) var masks: [UInt64] = []
  private(set) var steps: [NDJSONPlan.Step] = []
  private(set) var symbols: [NDJSONPlan.Text] = []
  private(set) var records: [NDJSONPlan.Record] = []
  private(set) var nameScans: [NDJSONPlan.NameScan] = []
  private(set) var nameMasks: [UInt64] = []
  private(set) var names: [NDJSONPlan.ListName]
  private(set) var sharedNameCount: UInt32 = 0
  /// The name that the slots of the current record share; nil for columns of the line.
  private var sharedName: NDJSONPlan.ListName?

  init(layout: RecordLayout, options: NDJSONFormat, lines: NDJSONPlan.Lines) {
    self.layout = layout
    self.isOfReads = lines == .reads
    self.hasReadKeys = lines != .plain
    self.lastMetadataColumn = layout.columns.lastIndex(where: \.isMetadata)
    self.options = options
    self.names = Array(
      repeating: .init(text: .init(offset: 0, count: 0), shared: 0), count: layout.slotCount)
    guard self.hasReadKeys else { return }
    self.readMasks = Array(repeating: 0, count: (layout.slotCount + 7) / 8)
    self.addReadSlots(layout.columns.filter { !$0.isMetadata })
    func key(_ name: String) -> NDJSONPlan.Text? {
      layout.columns.contains { $0.name == name } ? nil : self.key(name)
    }
    self.readKeys = .init(
      stamp: key(ReadColumn.stamp), readAt: key(ReadColumn.readAt), epoch: key(ReadColumn.epoch),
      ordinal: key(ReadColumn.ordinal))
  }

  private mutating func addReadSlots(_ columns: [Column]) {
    func add(_ slot: Int) { self.readMasks[slot / 8] |= 1 << UInt64(slot % 8 * 8) }
    for column in columns {
      switch column.content {
      case .constant: break
      case .slot(let slot, _): add(slot)
      case .record(_, let scalar, let children):
        if let scalar { add(scalar.slot) }
        self.addReadSlots(children)
      }
    }
  }

  func finishText() -> UnsafeMutableBufferPointer<UInt8> {
    let text = UnsafeMutableBufferPointer<UInt8>.allocate(
      capacity: self.pool.count + Self.padding)
    text.initialize(repeating: 0)
    _ = text.update(fromContentsOf: self.pool.bytes)
    return text
  }

  /// Compiles the columns of the line or of a record and returns their steps.
  mutating func compile(_ columns: [Column], parent: [String]) -> NDJSONPlan.Rows {
    var steps: [NDJSONPlan.Step] = []
    var run: [(slot: Int, entry: NDJSONPlan.Entry)] = []
    for (index, column) in columns.enumerated() {
      if self.hasReadKeys, parent.isEmpty, index == self.lastMetadataColumn.map({ $0 + 1 }) ?? 0 {
        self.finish(&run, into: &steps)
        steps.append(.read)
      }
      switch column.content {
      case .constant(let value):
        self.finish(&run, into: &steps)
        let text = self.constant(column.name, value)
        // The pool grows only at its end, so consecutive constants form one piece.
        if case .text(let previous) = steps.last, previous.offset + previous.count == text.offset {
          steps[steps.count - 1] = .text(
            .init(offset: previous.offset, count: previous.count + text.count))
        } else {
          steps.append(.text(text))
        }
        continue
      case .slot(let slot, .fieldSet) where self.layout.family == .changeEvent:
        guard !self.isOfReads || slot == MetadataSlot.changedFields else { continue }
        self.finish(&run, into: &steps)
        let entry = self.entry(column.name, type: .fieldSet, slot: slot, parent: parent)
        steps.append(
          self.isOfReads ? .fieldsRead(key: entry.key) : .fieldSet(slot: slot, key: entry.key))
        continue
      case .slot(let slot, let type):
        let entry = self.entry(column.name, type: type, slot: slot, parent: parent)
        self.add(slot, entry, to: &run, steps: &steps)
      case .record(let slot, let scalar, let children):
        let entry = self.record(column.name, slot, scalar, children, parent: parent)
        self.add(slot, entry, to: &run, steps: &steps)
      }
    }
    self.finish(&run, into: &steps)
    if self.hasReadKeys, parent.isEmpty, self.lastMetadataColumn == columns.count - 1 {
      steps.append(.read)
    }
    let first = self.steps.count
    self.steps += steps
    return .init(first: first, end: self.steps.count)
  }

  private mutating func add(
    _ slot: Int, _ entry: NDJSONPlan.Entry, to run: inout [(slot: Int, entry: NDJSONPlan.Entry)],
    steps: inout [NDJSONPlan.Step]
  ) {
    if let last = run.last, !(last.slot + 1...last.slot + Self.widestGap).contains(slot) {
      self.finish(&run, into: &steps)
    }
    run.append((slot, entry))
  }

  /// Turns a run of ascending slots into a scan.
  private mutating func finish(
    _ run: inout [(slot: Int, entry: NDJSONPlan.Entry)], into steps: inout [NDJSONPlan.Step]
  ) {
    guard let first = run.first, let last = run.last else { return }
    let firstWord = first.slot / 8
    let wordCount = last.slot / 8 - firstWord + 1
    let firstMask = self.masks.count
    let firstEntry = self.entries.count
    self.masks += repeatElement(0, count: wordCount)
    // Entries of slots outside the mask are never read.
    self.entries += repeatElement(first.entry, count: wordCount * 8)
    for (slot, entry) in run {
      self.masks[firstMask + slot / 8 - firstWord] |= 0xFF << UInt64(slot % 8 * 8)
      self.entries[firstEntry + slot - firstWord * 8] = entry
    }
    steps.append(
      .scan(
        .init(
          firstWord: firstWord, masks: .init(first: firstMask, end: firstMask + wordCount),
          entries: firstEntry)))
    run.removeAll()
  }

  private mutating func entry(
    _ name: String, type: ColumnType, slot: Int, parent: [String]
  ) -> NDJSONPlan.Entry {
    let operation = self.operation(type)
    let keyOfNull = self.key(name)
    var key = keyOfNull
    if operation.isQuoted {
      self.pool.append(UInt8(ascii: "\""))
      key.count += 1
    }
    var entry = NDJSONPlan.Entry(
      key: key, keyOfNull: keyOfNull, name: self.name(name, slot: slot, parent: parent),
      operation: operation, argument: 0)
    switch type {
    case .decimal(_, let scale): entry.argument = scale
    case .enumeration(let symbols):
      entry.argument = self.symbols.count
      entry.count = symbols.count
      for symbol in symbols { self.symbols.append(self.quoted(symbol)) }
    default: break
    }
    return entry
  }

  private mutating func record(
    _ name: String, _ slot: Int, _ scalar: Column.ScalarBranch?, _ children: [Column],
    parent: [String]
  ) -> NDJSONPlan.Entry {
    let isOutermost = self.sharedName == nil
    if isOutermost {
      self.sharedNameCount += 1
      self.sharedName = .init(text: self.quotedName([name]), shared: self.sharedNameCount)
    }
    defer { if isOutermost { self.sharedName = nil } }
    let key = self.key(name)
    var entry = NDJSONPlan.Entry(
      key: key, keyOfNull: key, name: self.name(name, slot: slot, parent: parent),
      operation: .record, argument: 0)
    let branch = scalar.map { self.entry(name, type: $0.type, slot: $0.slot, parent: parent) }
    let steps = self.compile(children, parent: parent + [name])
    entry.argument = self.records.count
    self.records.append(
      .init(steps: steps, scalarSlot: scalar?.slot ?? -1, scalar: branch ?? entry))
    return entry
  }

  private func operation(_ type: ColumnType) -> NDJSONPlan.Operation {
    switch type {
    case .boolean: .boolean
    case .int32: .integer
    case .int64: self.options.int64AsStrings ? .quotedInteger : .integer
    case .float: .float
    case .double: .double
    case .string, .uuid: .string
    case .enumeration: .enumeration
    case .bytes: .bytes
    case .decimal: .decimal
    case .date(.days): .dateOfDays
    case .date(.milliseconds): .dateOfMilliseconds
    case .time(.milliseconds): .timeMilliseconds
    case .time(.microseconds): .timeMicroseconds
    case .time(.nanoseconds): .timeNanoseconds
    case .timestamp(.milliseconds, let isLocal):
      isLocal ? .localMilliseconds : .timestampMilliseconds
    case .timestamp(.microseconds, let isLocal):
      isLocal ? .localMicroseconds : .timestampMicroseconds
    case .timestamp(.nanoseconds, let isLocal):
      isLocal ? .localNanoseconds : .timestampNanoseconds
    case .duration: .duration
    case .stringList, .json: .jsonText
    case .fieldSet: .fieldSet
    }
  }

  /// Divides the order of names into runs of ascending slots, as columns are divided into scans.
  mutating func compileNameScans() {
    var run: [Int] = []
    for slot in self.layout.fieldOrder where self.names[slot].text.count > 0 {
      if let last = run.last, !(last + 1...last + Self.widestGap).contains(slot) {
        self.finishNameScan(&run)
      }
      run.append(slot)
    }
    self.finishNameScan(&run)
  }

  private mutating func finishNameScan(_ run: inout [Int]) {
    guard let first = run.first, let last = run.last else { return }
    let firstMask = self.nameMasks.count
    let firstWord = first / 64
    self.nameMasks += repeatElement(0, count: last / 64 - firstWord + 1)
    for slot in run { self.nameMasks[firstMask + slot / 64 - firstWord] |= 1 << (slot % 64) }
    self.nameScans.append(
      .init(firstWord: firstWord, masks: .init(first: firstMask, end: self.nameMasks.count)))
    run.removeAll()
  }

  // MARK: Text

  private mutating func key(_ name: String) -> NDJSONPlan.Text {
    let offset = self.pool.count
    self.pool.append(UInt8(ascii: ","))
    self.pool.appendJSONString(name)
    self.pool.append(UInt8(ascii: ":"))
    return self.text(from: offset)
  }

  private mutating func constant(_ name: String, _ value: String) -> NDJSONPlan.Text {
    let offset = self.pool.count
    _ = self.key(name)
    self.pool.appendJSONString(value)
    return self.text(from: offset)
  }

  private mutating func quoted(_ value: String) -> NDJSONPlan.Text {
    let offset = self.pool.count
    self.pool.appendJSONString(value)
    return self.text(from: offset)
  }

  /// The name of a slot in `_nonfinite`. In lists of fields, it is the same, or that of the current
  /// record.
  private mutating func name(_ name: String, slot: Int, parent: [String]) -> NDJSONPlan.Text {
    let text = self.quotedName(parent + [name])
    self.names[slot] = self.sharedName ?? .init(text: text, shared: 0)
    return text
  }

  /// `,"BillingAddress.Latitude"`
  private mutating func quotedName(_ path: [String]) -> NDJSONPlan.Text {
    let offset = self.pool.count
    self.pool.append(UInt8(ascii: ","))
    self.pool.appendJSONString(path.joined(separator: "."))
    return self.text(from: offset)
  }

  private func text(from offset: Int) -> NDJSONPlan.Text {
    .init(offset: UInt32(offset), count: UInt32(self.pool.count - offset))
  }
}
