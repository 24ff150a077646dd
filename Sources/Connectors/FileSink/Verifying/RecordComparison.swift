/// The outcome of comparing a record of the org with the files' state of it.
struct RecordComparison {
  enum Outcome: UInt8 {
    case equal, young, marked, outdated, missing, differing, extra, notFound, leftOut, outside
    case refused, refusedMissing, unreadable, unreadableMissing
    /// Deleted in both.
    case gone

    /// The kind under which `CopyFindings` counts it.
    var kind: String {
      switch self {
      case .equal: "equal"
      case .young: "young"
      case .marked: "marked"
      case .outdated: "outdated"
      case .missing: "missing"
      case .differing: "differing"
      case .extra: "extra"
      case .notFound: "not_found"
      case .leftOut: "left_out"
      case .outside: "outside"
      case .refused: "refused"
      case .refusedMissing: "refused_missing"
      case .unreadable: "unreadable"
      case .unreadableMissing: "unreadable_missing"
      case .gone: "gone"
      }
    }

    /// Whether the outcome is drift if it remains.
    var isDrift: Bool {
      switch self {
      case .missing, .differing, .extra, .notFound, .outside: true
      case .equal, .young, .marked, .outdated, .leftOut, .refused, .refusedMissing, .unreadable,
        .unreadableMissing, .gone:
        false
      }
    }
  }

  /// How much later a record's `SystemModstamp` may be than the time of its last change, in
  /// milliseconds.
  private static let stampTolerance: Int64 = 5000

  /// Milliseconds since 1970; later changes are not compared.
  let horizon: Int64
  /// Later times in the copy are in the future, which is wrong, and do not keep a record from being
  /// judged; milliseconds since 1970.
  var latest = Int64.max
  /// The differing columns, for the outcome `differing`.
  private(set) var fields: [Int] = []
  /// For each column, its value in the org's record; empty for null and if it was not read.
  private var values: [Range<Int>]
  private var isThere: [Bool]

  init(columnCount: Int, horizon: Int64) {
    self.horizon = horizon
    self.values = Array(repeating: 0..<0, count: columnCount)
    self.isThere = Array(repeating: false, count: columnCount)
  }

  /// The outcome for a record that the org has, live or in its recycle bin.
  ///
  /// - Parameters:
  ///   - record: the record as it was read, as a patch.
  ///   - copy: the files' state of the record; nil if they have none.
  ///   - comparesStamps: a record changed after the last change in the files differs.
  mutating func outcome(
    of record: [UInt8], copy: [UInt8]?, comparesStamps: Bool = false
  ) -> Outcome {
    self.fields.removeAll(keepingCapacity: true)
    let read = RecordPatch(record)
    let state = copy.map { RecordPatch($0) }
    // The copy was folded before the record was read, so it cannot be newer. A copy that seems
    // newer was edited, and is compared.
    if read.time >= self.horizon { return .young }
    let isLive = state.map { $0.effect != .deletion } ?? false
    if read.flags.contains(.isLeftOut) { return isLive ? .outside : .leftOut }
    if read.flags.contains(.isRefused) { return isLive ? .refused : .refusedMissing }
    if read.flags.contains(.isUnreadable) { return isLive ? .unreadable : .unreadableMissing }
    let isStale = state?.flags.contains(.isStale) ?? false
    if read.effect == .deletion {
      guard isLive else { return .gone }
      return isStale ? .outdated : .extra
    }
    guard isLive, let state, let copy else { return .missing }
    let isPartial = Self.isPartial(state)
    let hasStaleCells = self.findDifferences(record, copy, isPartial: isPartial)
    let isLate = comparesStamps && read.time - Self.stampTolerance > state.time
    if !self.fields.isEmpty || isLate { return isStale ? .outdated : .differing }
    return isStale || isPartial || hasStaleCells ? .marked : .equal
  }

  /// The outcome for a record of the files that the org does not have.
  func outcomeOfMissing(copy: [UInt8]?, asked: Bool) -> Outcome {
    guard let copy else { return .gone }
    let state = RecordPatch(copy)
    if state.time >= self.horizon, state.time <= self.latest { return .young }
    if state.effect == .deletion { return .gone }
    if state.flags.contains(.isStale) || Self.isPartial(state) { return .marked }
    return asked ? .notFound : .extra
  }

  /// Whether only part of the record is known. A record that was read lacks the fields that the
  /// user may not see, which are not compared.
  private static func isPartial(_ state: RecordPatch) -> Bool {
    state.flags.contains(.isPartial) && !state.flags.contains(.isRead)
  }

  /// - Returns: whether the copy has columns whose texts are known to be wrong.
  private mutating func findDifferences(
    _ record: [UInt8], _ copy: [UInt8], isPartial: Bool
  ) -> Bool {
    var hasStaleCells = false
    record.withUnsafeBufferPointer { left in
      copy.withUnsafeBufferPointer { right in
        RecordPatch.forEachCell(of: record) { column, _, value in
          self.isThere[column] = true
          self.values[column] = value
        }
        RecordPatch.forEachCell(of: copy) { column, state, value in
          if state.isStale {
            hasStaleCells = true
            self.isThere[column] = false
          }
          guard self.isThere[column] else { return }
          self.isThere[column] = false
          let isSame = ValueForm.isSame(
            UnsafeBufferPointer(rebasing: left[self.values[column]]),
            UnsafeBufferPointer(rebasing: right[value]))
          if !isSame { self.fields.append(column) }
        }
        // Columns without a value in the copy.
        RecordPatch.forEachCell(of: record) { column, state, _ in
          if self.isThere[column], !state.isNull, !isPartial { self.fields.append(column) }
          self.isThere[column] = false
        }
      }
    }
    return hasStaleCells
  }
}
