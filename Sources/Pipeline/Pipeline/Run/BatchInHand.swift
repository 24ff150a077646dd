/// The rows of the current response that no store has taken yet, all of one layout. Memory is
/// reused.
struct BatchInHand {
  private var batch: RecordBatch?
  /// The layout that the decoder fills; stages replace the one in the batch.
  private var layout: RecordLayout?
  /// Where the last event begins.
  private var start = (rows: 0, arena: 0)
  /// The stores that take the rows.
  var recipients = StoreSet()

  /// The batch if it has events.
  var pending: RecordBatch? {
    guard let batch, !batch.events.isEmpty else { return nil }
    return batch
  }

  var isLarge: Bool { self.batch?.isLarge ?? false }

  /// Whether rows of a layout may follow those gathered so far.
  func takes(_ layout: RecordLayout) -> Bool { self.layout === layout }

  /// Whether the event just added needs a batch of its own, because other stores take it.
  func ends(before recipients: StoreSet) -> Bool {
    recipients != self.recipients && self.batch.map { $0.events.count > 1 } ?? false
  }

  /// Returns the batch for the next event; it is empty if the layout is another one.
  mutating func beginEvent(of layout: RecordLayout) -> RecordBatch {
    let batch = self.batch ?? RecordBatch(layout: layout)
    if self.layout !== layout {
      batch.removeAll(layout: layout)
      self.layout = layout
      self.batch = batch
    }
    self.start = (batch.rowCount, batch.arenaCount)
    return batch
  }

  /// Removes the event that was added since `beginEvent`.
  func removeLastEvent() {
    self.batch?.events.removeLast()
    self.batch?.truncate(rows: self.start.rows, arena: self.start.arena)
  }

  /// Removes all rows, and the changes of stages to the layout.
  func clear() {
    if let batch, let layout { batch.removeAll(layout: layout) }
  }
}
