/// Rows of one layout, in stream order: the one currency between decoder, stages and sinks.
///
/// Row-major. Each row has, per slot, one presence byte and one 64-bit cell; strings and other
/// long values are ranges of the arena, which rows of one event share. Memory is kept by
/// `removeAll`, so in the steady state nothing is allocated per event. Not `Sendable`: used by
/// one thread at a time.
public final class RecordBatch {
  public enum Presence {
    /// Not in the event: an update that did not touch the field, or null in a full image.
    public static let absent: UInt8 = 0
    /// Set to null by the event.
    public static let null: UInt8 = 1
    public static let value: UInt8 = 2
  }

  /// A run of arena bytes, packed into a cell: offset in the high, length in the low 32 bits.
  public struct Range {
    public var offset: Int
    public var count: Int
    @inline(__always)
    public init(offset: Int, count: Int) {
      self.offset = offset
      self.count = count
    }
    @inline(__always)
    public init(cell: UInt64) {
      self.offset = Int(cell >> 32)
      self.count = Int(cell & 0xFFFF_FFFF)
    }
    @inline(__always)
    public var cell: UInt64 { UInt64(self.offset) << 32 | UInt64(self.count) }
  }

  /// What is known of an event besides its rows.
  public struct Event {
    public var firstRow: Int
    public var rowCount: Int
    /// Raw bytes of the replay ID.
    public var replayID: Range
    /// UTF-8 of `ProducerEvent.id`.
    public var eventID: Range
    /// UTF-8 of the transaction key; empty for platform events.
    public var transactionKey: Range
    /// Milliseconds since 1970; nil for platform events.
    public var commitTimestamp: Int64?
    public var kind: EventKind
    /// Place in the epoch, from 0; set by the runner.
    public var ordinal: Int64

    public init(
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
  public var layout: RecordLayout
  public private(set) var rowCount = 0
  public var events: [Event] = []
  /// Counts the epoch of `Event.ordinal`; set by the runner.
  public var epoch = 1

  /// Presence bytes of a row, rounded up to a multiple of 8; the padding stays 0.
  public private(set) var presenceStride: Int
  private var cells: UnsafeMutablePointer<UInt64>
  private var presence: UnsafeMutablePointer<UInt8>
  private var rowCapacity = 0
  public private(set) var arenaBase: UnsafeMutablePointer<UInt8>
  private var arenaCapacity: Int
  public private(set) var arenaCount = 0

  public init(layout: RecordLayout) {
    self.layout = layout
    self.presenceStride = (layout.slotCount + 7) & ~7
    self.rowCapacity = 16
    self.cells = .allocate(capacity: self.rowCapacity * layout.slotCount)
    self.presence = .allocate(capacity: self.rowCapacity * self.presenceStride)
    self.arenaCapacity = 16384
    self.arenaBase = .allocate(capacity: self.arenaCapacity)
  }

  deinit {
    self.cells.deallocate()
    self.presence.deallocate()
    self.arenaBase.deallocate()
  }

  /// Cells of a row, `layout.slotCount` of them; valid until the next row is added.
  @inline(__always)
  public func cells(ofRow row: Int) -> UnsafeMutablePointer<UInt64> {
    self.cells + row * self.layout.slotCount
  }

  /// Presence bytes of a row, `presenceStride` of them; valid until the next row is added.
  @inline(__always)
  public func presence(ofRow row: Int) -> UnsafeMutablePointer<UInt8> {
    self.presence + row * self.presenceStride
  }

  /// Bytes of a cell that holds a range; valid until the arena grows.
  @inline(__always)
  public func bytes(_ range: Range) -> UnsafeBufferPointer<UInt8> {
    UnsafeBufferPointer(start: self.arenaBase + range.offset, count: range.count)
  }

  /// Adds a row in which every slot is absent and returns its index.
  public func addRow() -> Int {
    self.reserveRows(1)
    let row = self.rowCount
    self.presence(ofRow: row).update(repeating: Presence.absent, count: self.presenceStride)
    self.rowCount += 1
    return row
  }

  /// Adds `count` copies of a row (fan-out over record IDs) and returns the index of the first.
  public func addCopies(ofRow row: Int, count: Int) -> Int {
    self.reserveRows(count)
    let first = self.rowCount
    for copy in first..<first + count {
      self.cells(ofRow: copy).update(from: self.cells(ofRow: row), count: self.layout.slotCount)
      self.presence(ofRow: copy).update(
        from: self.presence(ofRow: row), count: self.presenceStride)
    }
    self.rowCount += count
    return first
  }

  /// Copies bytes into the arena.
  public func append(_ bytes: UnsafeBufferPointer<UInt8>) -> Range {
    let place = self.reserveArena(bytes.count)
    if let start = bytes.baseAddress { place.update(from: start, count: bytes.count) }
    return self.commitArena(bytes.count)
  }

  /// Room for `count` arena bytes; they count only after `commitArena`.
  public func reserveArena(_ count: Int) -> UnsafeMutablePointer<UInt8> {
    let needed = self.arenaCount + count
    if needed > self.arenaCapacity {
      precondition(needed <= UInt32.max, "a batch of \(needed) bytes: flush batches earlier")
      let capacity = max(self.arenaCapacity * 2, needed)
      let grown = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
      grown.update(from: self.arenaBase, count: self.arenaCount)
      self.arenaBase.deallocate()
      self.arenaBase = grown
      self.arenaCapacity = capacity
    }
    return self.arenaBase + self.arenaCount
  }

  public func commitArena(_ count: Int) -> Range {
    defer { self.arenaCount += count }
    return Range(offset: self.arenaCount, count: count)
  }

  /// Takes back everything added after a mark: an event that could not be decoded leaves nothing.
  public func truncate(rows: Int, arena: Int) {
    precondition(rows <= self.rowCount && arena <= self.arenaCount, "truncate beyond the end")
    self.rowCount = rows
    self.arenaCount = arena
  }

  /// Empties the batch for rows of `layout`, whose slots may differ from before.
  public func removeAll(layout: RecordLayout) {
    self.rowCount = 0
    self.arenaCount = 0
    self.events.removeAll(keepingCapacity: true)
    if layout.slotCount != self.layout.slotCount {
      self.presenceStride = (layout.slotCount + 7) & ~7
      self.cells.deallocate()
      self.presence.deallocate()
      self.cells = .allocate(capacity: self.rowCapacity * layout.slotCount)
      self.presence = .allocate(capacity: self.rowCapacity * self.presenceStride)
    }
    self.layout = layout
  }

  private func reserveRows(_ count: Int) {
    guard self.rowCount + count > self.rowCapacity else { return }
    let capacity = max(self.rowCapacity * 2, self.rowCount + count)
    let slots = self.layout.slotCount
    let cells = UnsafeMutablePointer<UInt64>.allocate(capacity: capacity * slots)
    cells.update(from: self.cells, count: self.rowCount * slots)
    self.cells.deallocate()
    self.cells = cells
    let presence = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity * self.presenceStride)
    presence.update(from: self.presence, count: self.rowCount * self.presenceStride)
    self.presence.deallocate()
    self.presence = presence
    self.rowCapacity = capacity
  }
}
