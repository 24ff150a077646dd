internal import EventLoop
internal import Pipeline

/// Reusable batches of records. A new batch costs 1 MiB of memory that the system has to clear.
final class BatchPool: Sendable {
  /// The number of batches in use at a time; the memory of any others is released.
  private static let limit = 4

  private struct Batches: @unchecked Sendable {
    // Guard: the lock around this value; a batch that was taken has left it.
    var batches: [RecordBatch] = []
  }

  private let free = Lock(Batches())

  /// An empty batch for rows of the layout.
  func take(_ layout: RecordLayout) -> RecordBatch {
    guard let batch = self.free.withLock({ $0.batches.popLast() }) else {
      return RecordBatch(layout: layout)
    }
    batch.removeAll(layout: layout)
    batch.readAt = nil
    return batch
  }

  /// Takes back a batch after use.
  func giveBack(_ batch: RecordBatch) {
    self.free.withLock { free in
      if free.batches.count < Self.limit { free.batches.append(batch) }
    }
  }
}
