// Long-text diffs, and parts of compound fields that were not flattened: values that can be
// computed only from the value before. If the fold does not know it, they wait for the table's
// value.
extension RecordFold {
  /// The number of diffs that may wait for values in the table, which limits the memory for
  /// resolving them.
  static let maxPendingDiffs = 256

  struct PendingDiff {
    var offset: UInt32
    var count: Int32
    /// The diff to apply to this one's result; -1 if none.
    var next: Int32
    /// The patch is an object with the changed parts of a compound, not a diff.
    var isParts: Bool
  }

  /// The value is an object of a compound column: the parts that it lacks do not change. (After an
  /// image, which first sets all columns to null, it is the whole value.)
  func holdsParts(_ cell: RowBuffer.Cell, _ buffer: RowBuffer) -> Bool {
    guard !self.isCompound.isEmpty, self.isCompound[Int(cell.column)] else { return false }
    return Self.withBytes(buffer, cell.offset, cell.count) { CompoundValue.isObject($0) }
  }

  mutating func patch(
    _ delta: Int, _ index: Int, with diff: RowBuffer.Cell, _ buffer: RowBuffer
  ) {
    let cell = self.cells[index]
    if cell.isSet, !diff.isDiff {
      self.mergeParts(index, of: diff, buffer)
      return
    }
    if cell.isSet {
      self.cells[index].isStale = true
      guard !cell.isNull else { return }
      let new = self.withValue(cell, buffer) { previous in
        Self.withBytes(buffer, diff.offset, diff.count) { TextDiff.apply($0, to: previous) }
      }
      if let new { self.cells[index] = self.own(new) }
      return
    }
    if self.isFromNothing {
      // A fold from nothing has no previous value.
      if diff.isDiff {
        self.cells[index].isStale = true
      } else {
        self.cells[index] = .value(offset: diff.offset, count: diff.count, isOwn: false)
      }
      return
    }
    let entry = Int32(self.pending.count)
    self.pending.append(
      PendingDiff(offset: diff.offset, count: diff.count, next: -1, isParts: !diff.isDiff))
    guard cell.isPending else {
      self.cells[index] = .pending(Int(entry))
      self.deltas[delta].pendingDiffCount += 1
      return
    }
    var last = Int(cell.offset)
    while self.pending[last].next >= 0 { last = Int(self.pending[last].next) }
    self.pending[last].next = entry
  }

  /// Merges the parts of a row into a known value.
  private mutating func mergeParts(
    _ index: Int, of row: RowBuffer.Cell, _ buffer: RowBuffer
  ) {
    let known = self.cells[index]
    let merged =
      known.isNull
      ? nil
      : self.withValue(known, buffer) { base in
        Self.withBytes(buffer, row.offset, row.count) {
          CompoundValue.merged($0, into: base)
        }
      }
    self.cells[index] =
      merged.map { self.own($0) } ?? .value(offset: row.offset, count: row.count, isOwn: false)
    self.cells[index].isStale = known.isStale
  }

  /// Whether too many diffs wait for table values, so that they have to be resolved first.
  var awaitsValues: Bool { self.pending.count >= Self.maxPendingDiffs }

  /// Call this when all diffs are resolved.
  mutating func endResolving() {
    precondition(self.deltas.allSatisfy { $0.pendingDiffCount == 0 }, "a diff without a value")
    self.pending.removeAll(keepingCapacity: true)
  }

  /// Whether the delta's column has diffs or parts that wait for the value in the table.
  package func isPending(_ delta: Int, column: Int) -> Bool {
    self.cells[delta * self.columnCount + column].isPending
  }

  /// Applies the diffs and the parts that wait for the column's value in the table.
  ///
  /// - Parameter base: nil if the row is missing or its value is null.
  package mutating func resolve(
    _ delta: Int, column: Int, base: UnsafeBufferPointer<UInt8>?, _ buffer: RowBuffer
  ) {
    let index = delta * self.columnCount + column
    guard self.cells[index].isPending else { return }
    var entry = Int(self.cells[index].offset)
    var value: [UInt8]?
    var isStale = false
    while entry >= 0 {
      let diff = self.pending[entry]
      let new: [UInt8]? = Self.withBytes(buffer, diff.offset, diff.count) { change in
        func apply(to base: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
          diff.isParts
            ? CompoundValue.merged(change, into: base) ?? Array(change)
            : TextDiff.apply(change, to: base)
        }
        if let value { return value.withUnsafeBufferPointer { apply(to: $0) } }
        return base.map { apply(to: $0) } ?? (diff.isParts ? Array(change) : nil)
      }
      isStale = new == nil || isStale && diff.isParts
      value = new ?? value
      entry = Int(diff.next)
    }
    self.cells[index] = value.map { self.own($0) } ?? .kept
    self.cells[index].isStale = isStale
    self.deltas[delta].pendingDiffCount -= 1
  }

  /// A cell with a computed value.
  private mutating func own(_ value: some Collection<UInt8>) -> DeltaCell {
    let offset = UInt32(self.ownBytes.count)
    self.ownBytes.append(contentsOf: value)
    return .value(offset: offset, count: Int32(value.count), isOwn: true)
  }
}
