/// Rows of one layout, in stream order, passed from the decoder through the stages to the sinks.
///
/// Row-major. Each row has, per slot, one presence byte and one 64-bit cell; strings and other long
/// values are ranges of the arena, which rows of one event share. `removeAll` keeps the memory, so
/// in the steady state nothing is allocated per event. Not `Sendable`: used by one thread at a
/// time.
@usableFromInline package final class RecordBatch {
  @usableFromInline package enum Presence {
    /// Not in the event: an update that did not touch the field, or null in a full image.
    @inlinable package static var absent: UInt8 { 0 }
    /// Set to null by the event.
    @inlinable package static var null: UInt8 { 1 }
    @inlinable package static var value: UInt8 { 2 }
  }

  /// A range of arena bytes, packed into a cell: the offset in the high 32 bits, the length in the
  /// low 32 bits.
  @usableFromInline package struct Range {
    @usableFromInline package var offset: Int
    @usableFromInline package var count: Int
    @inlinable @inline(__always)
    package init(offset: Int, count: Int) {
      self.offset = offset
      self.count = count
    }
    @inlinable @inline(__always)
    package init(cell: UInt64) {
      self.offset = Int(cell >> 32)
      self.count = Int(cell & 0xFFFF_FFFF)
    }
    @inlinable @inline(__always)
    package var cell: UInt64 { UInt64(self.offset) << 32 | UInt64(self.count) }
  }

  /// NaN or an infinity inside JSON text, which has `null` in its place.
  @usableFromInline package struct NonfiniteNumber: Sendable {
    /// The cell that holds the text.
    package var text: UInt64
    /// The offset of the `null` in the text.
    package var offset: UInt32
    /// NaN or an infinity.
    package var value: Float

    package init(text: UInt64, offset: Int, value: Float) {
      self.text = text
      self.offset = UInt32(truncatingIfNeeded: offset)
      self.value = value
    }
  }

  /// An event that a stage has refused.
  package struct Refusal: Sendable {
    /// Index into `events`.
    package var event: Int
    /// Why, without values.
    package var reason: String
  }

  /// The properties of an event other than its rows.
  @usableFromInline package struct Event {
    package var firstRow: Int
    package var rowCount: Int
    /// Raw bytes of the replay ID.
    package var replayID: Range
    /// UTF-8 of `ProducerEvent.id`.
    package var eventID: Range
    /// UTF-8 of the transaction key; empty for platform events.
    package var transactionKey: Range
    /// Milliseconds since 1970, within `CommitTime.range`; nil for platform events. For a record
    /// that was read, its `SystemModstamp`.
    package var commitTimestamp: Int64?
    package var kind: EventKind
    /// The event's place in the epoch, from 0; set by the runner.
    package var ordinal: Int64
    /// The record IDs of all its rows, joined, if a stage has removed rows.
    var recordIDs: Range?

    package init(
      firstRow: Int, rowCount: Int, replayID: Range, eventID: Range,
      transactionKey: Range = Range(offset: 0, count: 0), commitTimestamp: Int64?, kind: EventKind,
      ordinal: Int64 = 0
    ) {
      self.firstRow = firstRow
      self.rowCount = rowCount
      self.replayID = replayID
      self.eventID = eventID
      self.transactionKey = transactionKey
      self.commitTimestamp = commitTimestamp
      self.kind = kind
      self.ordinal = ordinal
    }
  }

  /// The layout whose columns are to be written. Stages replace it; slots stay.
  @inlinable package var layout: RecordLayout {
    get { self.currentLayout }
    set { self.currentLayout = newValue }
  }
  @inlinable package var rowCount: Int { self.rows }
  @inlinable package var events: [Event] {
    _read { yield self.storedEvents }
    _modify { yield &self.storedEvents }
  }
  /// The number of the epoch in which `Event.ordinal` counts; set by the runner.
  package var epoch = 1
  /// Later commit times are in the future and say nothing about how far the stream has been read;
  /// set by the runner, nil if unknown.
  package var latestCommit: Int64?
  /// The events come from dead letters. They, and events after them, may have been written before.
  package var isRedriven = false
  /// When the records were requested, in a batch of records that were read; nil in a batch of
  /// events.
  package var readAt: ContinuousClock.Instant?
  /// In a batch of records that were read, the ordinal of the next event to be taken; set by the
  /// runner.
  package var nextOrdinal: Int64 = 0

  @inlinable package var arenaBase: UnsafeMutablePointer<UInt8> { self.arena }
  @inlinable package var arenaCount: Int { self.arenaUsed }
  /// Numbers that JSON text cannot express, of all rows, in the order of their texts in the arena.
  /// Rows of one event share texts.
  @inlinable package var nonfinite: [NonfiniteNumber] { _read { yield self.nonfiniteNumbers } }
  /// Events that the current stage cannot process, each once; see `refuse`.
  package private(set) var refusals: [Refusal] = []
  /// The memory that a row needs outside the arena.
  package var rowByteCount: Int { self.slotCount * MemoryLayout<UInt64>.size + self.stride }
  /// The memory of the rows and of what they point to. A batch is written long before ranges of the
  /// arena no longer fit into a cell.
  package var byteCount: Int { self.arenaUsed + self.rows * self.rowByteCount }

  // Only the batch accesses its storage. Run-time checks of exclusive access would take a quarter of
  // the time of decoding an event. Other modules do not see that a property is unchecked, so they get
  // accessors to be inlined.
  @usableFromInline @exclusivity(unchecked) var currentLayout: RecordLayout
  @usableFromInline @exclusivity(unchecked) var storedEvents: [Event] = []
  @usableFromInline @exclusivity(unchecked) private(set) var nonfiniteNumbers: [NonfiniteNumber] =
    []
  @usableFromInline @exclusivity(unchecked) private(set) var rows = 0
  /// Each row in memory has the slots of the layout that `removeAll` was given, and those that stages add.
  @usableFromInline @exclusivity(unchecked) private(set) var slotCount: Int
  /// Slots of the layout that the rows were made for.
  @exclusivity(unchecked) private var ownSlotCount: Int
  @usableFromInline @exclusivity(unchecked) private(set) var stride: Int
  @usableFromInline @exclusivity(unchecked) private(set) var cells: UnsafeMutablePointer<UInt64>
  @usableFromInline @exclusivity(unchecked) private(set) var presence: UnsafeMutablePointer<UInt8>
  /// The number of cells that there is memory for, and of presence bytes.
  @exclusivity(unchecked) private var cellCapacity: Int
  @exclusivity(unchecked) private var rowCapacity = 0
  @usableFromInline @exclusivity(unchecked) private(set) var arena: UnsafeMutablePointer<UInt8>
  @usableFromInline @exclusivity(unchecked) private(set) var arenaCapacity: Int
  @usableFromInline @exclusivity(unchecked) var arenaUsed = 0

  /// At this size, a batch is written before another event is added.
  static let maxByteCount = 32 << 20
  /// Whether the batch is written before another event is added.
  package var isLarge: Bool { self.byteCount >= Self.maxByteCount }

  /// A stage refuses an event rather than exceed this size. Stages check the limit themselves.
  static let maxStagedByteCount = 256 << 20

  package init(layout: RecordLayout) {
    self.currentLayout = layout
    self.slotCount = layout.slotCount
    self.ownSlotCount = layout.slotCount
    self.stride = (layout.slotCount + 7) & ~7
    self.rowCapacity = 16
    self.cellCapacity = self.rowCapacity * self.stride
    self.cells = .allocate(capacity: self.cellCapacity)
    self.presence = .allocate(capacity: self.cellCapacity)
    self.arenaCapacity = 16384
    self.arena = .allocate(capacity: self.arenaCapacity)
  }

  deinit {
    self.cells.deallocate()
    self.presence.deallocate()
    self.arena.deallocate()
  }

  @inlinable @inline(__always)
  package func row(_ index: Int) -> Row {
    Row(
      cells: self.cells(ofRow: index), presence: self.presence(ofRow: index), arena: self.arena)
  }

  /// Cells of a row, at least `layout.slotCount` of them; valid until the next row is added.
  @inlinable @inline(__always)
  func cells(ofRow row: Int) -> UnsafeMutablePointer<UInt64> {
    self.cells + row * self.slotCount
  }

  /// Presence bytes of a row, rounded up to a multiple of 8; valid until the next row is added.
  @inlinable @inline(__always)
  func presence(ofRow row: Int) -> UnsafeMutablePointer<UInt8> {
    self.presence + row * self.stride
  }

  /// Bytes of a cell that holds a range; valid until the arena grows.
  @inlinable @inline(__always)
  package func bytes(_ range: Range) -> UnsafeBufferPointer<UInt8> {
    UnsafeBufferPointer(start: self.arena + range.offset, count: range.count)
  }

  /// Adds a row in which every slot is absent and returns its index.
  package func addRow() -> Int {
    self.reserveRows(1)
    let row = self.rows
    self.presence(ofRow: row).update(repeating: Presence.absent, count: self.stride)
    self.rows += 1
    return row
  }

  /// Moves a row to the place of an earlier one.
  func moveRow(_ row: Int, to place: Int) {
    guard row != place else { return }
    self.cells(ofRow: place).update(from: self.cells(ofRow: row), count: self.slotCount)
    self.presence(ofRow: place).update(from: self.presence(ofRow: row), count: self.stride)
  }

  /// Adds `count` copies of a row (fan-out over record IDs) and returns the index of the first.
  package func addCopies(ofRow row: Int, count: Int) -> Int {
    self.reserveRows(count)
    let first = self.rows
    for copy in first..<first + count {
      self.cells(ofRow: copy).update(from: self.cells(ofRow: row), count: self.slotCount)
      self.presence(ofRow: copy).update(
        from: self.presence(ofRow: row), count: self.stride)
    }
    self.rows += count
    return first
  }

  /// Copies bytes into the arena.
  package func append(_ bytes: UnsafeBufferPointer<UInt8>) -> Range {
    let place = self.reserveArena(bytes.count)
    if let start = bytes.baseAddress { place.update(from: start, count: bytes.count) }
    return self.commitArena(bytes.count)
  }

  /// Reserves `count` arena bytes, which count only after `commitArena`.
  @inlinable
  package func reserveArena(_ count: Int) -> UnsafeMutablePointer<UInt8> {
    if self.arenaUsed + count > self.arenaCapacity { self.growArena(count) }
    return self.arena + self.arenaUsed
  }

  @inline(never) @usableFromInline
  func growArena(_ count: Int) {
    let needed = self.arenaUsed + count
    precondition(needed <= UInt32.max, "a batch of \(needed) bytes: flush batches earlier")
    // Doubled only while small, so that memory for one hostile event is not requested twice.
    let capacity = max(min(self.arenaCapacity * 2, self.arenaCapacity + (32 << 20)), needed)
    let grown = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
    grown.update(from: self.arena, count: self.arenaUsed)
    self.arena.deallocate()
    self.arena = grown
    self.arenaCapacity = capacity
  }

  @inlinable
  package func commitArena(_ count: Int) -> Range {
    defer { self.arenaUsed += count }
    return Range(offset: self.arenaUsed, count: count)
  }

  /// Makes room for the slots of `layout` that stages have added after those of the rows; they are
  /// absent. The room is kept for later rows.
  func makeRoom(for layout: RecordLayout) {
    guard layout.slotCount > self.slotCount else { return }
    let (oldCount, oldStride) = (self.slotCount, self.stride)
    let (oldCells, oldPresence) = (self.cells, self.presence)
    self.setSlotCount(layout.slotCount)
    self.rowCapacity = max(self.rows, 16)
    self.cellCapacity = self.rowCapacity * self.stride
    self.cells = .allocate(capacity: self.cellCapacity)
    self.presence = .allocate(capacity: self.cellCapacity)
    self.presence.update(repeating: Presence.absent, count: self.cellCapacity)
    for row in 0..<self.rows {
      self.cells(ofRow: row).update(from: oldCells + row * oldCount, count: oldCount)
      self.presence(ofRow: row).update(from: oldPresence + row * oldStride, count: oldCount)
    }
    oldCells.deallocate()
    oldPresence.deallocate()
  }

  private func setSlotCount(_ count: Int) {
    self.slotCount = count
    self.stride = (count + 7) & ~7
  }

  /// Notes that the current stage cannot process an event, which goes to the dead letters with all
  /// its rows. The first reason counts.
  ///
  /// - Parameters:
  ///   - event: index into `events`.
  ///   - reason: why, naming the column, without values.
  package func refuse(event: Int, reason: String) {
    guard !self.refusals.contains(where: { $0.event == event }) else { return }
    self.refusals.append(Refusal(event: event, reason: reason))
  }

  func removeRefusals() { self.refusals.removeAll() }

  /// Removes everything added after a mark, so that an undecodable event leaves nothing.
  package func truncate(rows: Int, arena: Int) {
    precondition(rows <= self.rows && arena <= self.arenaUsed, "truncate beyond the end")
    self.rows = rows
    self.arenaUsed = arena
    while let last = self.nonfiniteNumbers.last, Range(cell: last.text).offset >= arena {
      self.nonfiniteNumbers.removeLast()
    }
  }

  /// Notes a number that JSON text cannot express; texts must come in the order of the arena.
  package func note(_ number: NonfiniteNumber) { self.nonfiniteNumbers.append(number) }

  /// Empties the batch for rows of `layout`, whose slots may differ from before.
  package func removeAll(layout: RecordLayout) {
    self.rows = 0
    self.arenaUsed = 0
    if !self.nonfiniteNumbers.isEmpty { self.nonfiniteNumbers.removeAll(keepingCapacity: true) }
    self.removeRefusals()
    self.events.removeAll(keepingCapacity: true)
    if layout.slotCount != self.ownSlotCount {
      self.setSlotCount(layout.slotCount + self.slotCount - self.ownSlotCount)
      self.ownSlotCount = layout.slotCount
      // On a channel, the layout may change with every event, so the memory is kept.
      self.rowCapacity = self.cellCapacity / max(self.stride, 1)
    }
    self.layout = layout
  }

  /// Becomes equal to another batch and keeps its own memory.
  func replaceAll(with other: RecordBatch) {
    self.removeAll(layout: other.layout)
    if self.slotCount < other.slotCount {
      self.setSlotCount(other.slotCount)
      self.rowCapacity = self.cellCapacity / max(self.stride, 1)
    }
    self.reserveRows(other.rows)
    self.rows = other.rows
    for row in 0..<other.rows {
      self.cells(ofRow: row).update(from: other.cells(ofRow: row), count: other.slotCount)
      self.presence(ofRow: row).update(repeating: Presence.absent, count: self.stride)
      self.presence(ofRow: row).update(from: other.presence(ofRow: row), count: other.slotCount)
    }
    _ = self.append(UnsafeBufferPointer(start: other.arena, count: other.arenaUsed))
    self.nonfiniteNumbers = other.nonfinite
    self.events = other.events
    self.epoch = other.epoch
    self.latestCommit = other.latestCommit
    self.readAt = other.readAt
    self.isRedriven = other.isRedriven
    self.nextOrdinal = other.nextOrdinal
  }

  private func reserveRows(_ count: Int) {
    guard self.rows + count > self.rowCapacity else { return }
    self.rowCapacity = max(self.rowCapacity * 2, self.rows + count, 16)
    self.cellCapacity = self.rowCapacity * self.stride
    let cells = UnsafeMutablePointer<UInt64>.allocate(capacity: self.cellCapacity)
    cells.update(from: self.cells, count: self.rows * self.slotCount)
    self.cells.deallocate()
    self.cells = cells
    let presence = UnsafeMutablePointer<UInt8>.allocate(capacity: self.cellCapacity)
    presence.update(from: self.presence, count: self.rows * self.stride)
    self.presence.deallocate()
    self.presence = presence
  }
}

extension [RecordBatch.NonfiniteNumber] {
  /// The numbers of one text, in its order. Few batches have any, so check `isEmpty` first.
  package func numbers(ofText cell: UInt64) -> ArraySlice<RecordBatch.NonfiniteNumber> {
    var low = self.startIndex
    var high = self.endIndex
    while low < high {
      let middle = (low + high) / 2
      if self[middle].text < cell { low = middle + 1 } else { high = middle }
    }
    return self[low...].prefix { $0.text == cell }
  }
}
