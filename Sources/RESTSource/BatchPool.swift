internal import EventLoop
internal import Pipeline

/// Batches of records whose memory is used again: a fresh one is a MiB that the system has to clear.
final class BatchPool: Sendable {
  /// As many as are on their way at a time; beyond that their memory is given back.
  private static let limit = 4

  private struct Batches: @unchecked Sendable {
    // Guard: a batch belongs to whoever has taken it; here it belongs to nobody.
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

  /// Takes a batch that nobody needs any more.
  func giveBack(_ batch: RecordBatch) {
    self.free.withLock { free in
      if free.batches.count < Self.limit { free.batches.append(batch) }
    }
  }
}
