/// The state of a record after some lines in order; can be applied to the state after earlier
/// lines.
struct RecordState {
  private enum Cell { case untouched, null, value }
  /// Whether the record exists, according to the lines.
  private enum Existence { case untold, there, deleted }

  private var cells: [Cell]
  private var isStaleCell: [Bool]
  /// Memory is kept from record to record.
  private var values: [[UInt8]]
  /// Columns with a cell or a mark, each once.
  private var touched: [Int] = []
  private var isTouched: [Bool]
  /// Columns without a cell are null, whatever their earlier value.
  private var replacesAll = false
  private var existence = Existence.untold
  /// nil: unchanged.
  private var isStale: Bool?

  init(columnCount: Int) {
    self.cells = Array(repeating: .untouched, count: columnCount)
    self.isStaleCell = Array(repeating: false, count: columnCount)
    self.values = Array(repeating: [], count: columnCount)
    self.isTouched = self.isStaleCell
  }

  var isUntouched: Bool {
    self.touched.isEmpty && !self.replacesAll && self.existence == .untold && self.isStale == nil
  }

  mutating func clear() {
    self.clearCells()
    self.replacesAll = false
    self.existence = .untold
    self.isStale = nil
  }

  private mutating func clearCells() {
    for column in self.touched {
      self.cells[column] = .untouched
      self.isStaleCell[column] = false
      self.isTouched[column] = false
    }
    self.touched.removeAll(keepingCapacity: true)
  }

  private mutating func touch(_ column: Int) {
    guard !self.isTouched[column] else { return }
    self.isTouched[column] = true
    self.touched.append(column)
  }

  // MARK: Lines

  /// - Parameter bytes: the bytes of the patch, including cells.
  mutating func apply(_ patch: RecordPatch, _ bytes: [UInt8]) {
    switch patch.effect {
    case .image:
      self.clearCells()
      self.replacesAll = true
      self.existence = .there
      self.isStale = false
    case .update:
      if patch.flags.contains(.isRead) {
        self.existence = .there
        self.isStale = false
      }
    case .fields: break
    // As in tables, the last values are kept; a gap event may bring the record back.
    case .deletion: self.existence = .deleted
    case .gapUpdate: self.isStale = true
    case .gapDeletion:
      self.existence = .deleted
      self.isStale = true
    case .gapRevival:
      self.existence = .there
      self.isStale = true
    }
    RecordPatch.forEachCell(of: bytes) { column, state, value in
      self.touch(column)
      if state.isStale {
        // The older text is kept.
        self.isStaleCell[column] = true
        return
      }
      self.isStaleCell[column] = false
      self.cells[column] = state.isNull ? .null : .value
      self.values[column].removeAll(keepingCapacity: true)
      self.values[column].append(contentsOf: bytes[value])
    }
  }

  /// Applies the state of later lines.
  mutating func apply(_ later: RecordState) {
    if later.replacesAll {
      self.clearCells()
      self.replacesAll = true
    }
    if later.existence != .untold { self.existence = later.existence }
    self.isStale = later.isStale ?? self.isStale
    for column in later.touched {
      self.touch(column)
      switch later.cells[column] {
      case .untouched:
        self.isStaleCell[column] = self.isStaleCell[column] || later.isStaleCell[column]
      case .null, .value:
        self.cells[column] = later.cells[column]
        self.isStaleCell[column] = later.isStaleCell[column]
        self.values[column].removeAll(keepingCapacity: true)
        self.values[column].append(contentsOf: later.values[column])
      }
    }
  }

  // MARK: Outcome

  /// Replaces `bytes` by the record after all lines; null cells are left out.
  func write(
    isPartial: Bool, wasRead: Bool, newest: Int64, readAt: Int64, to bytes: inout [UInt8]
  ) {
    var patch = RecordPatch(self.existence == .deleted ? .deletion : .image)
    if self.isStale == true { patch.flags.insert(.isStale) }
    if isPartial { patch.flags.insert(.isPartial) }
    if wasRead { patch.flags.insert(.isRead) }
    patch.time = newest
    patch.readAt = readAt
    bytes.removeAll(keepingCapacity: true)
    patch.append(to: &bytes)
    guard self.existence != .deleted else { return }
    for column in self.touched {
      let isValue = self.cells[column] == .value
      let isStale = self.isStaleCell[column]
      guard isValue || isStale else { continue }
      let state: RecordPatch.CellState =
        isValue ? (isStale ? .staleValue : .value) : .staleNull
      RecordPatch.appendCell(column, state, isValue ? self.values[column] : [], to: &bytes)
    }
  }
}
