package import JSON

/// A sink whose state the checkpoint holds: rows count as soon as the checkpoint that includes them
/// is durable. Driven by one thread; calls block until done.
///
/// `CheckpointedStore` calls, per commit: `write` for each batch, `flush` once, then stores the
/// returned state together with the positions in the checkpoint, then `committed`. Rows of the next
/// commit may be written between `flush` and `committed`; they do not affect the returned state.
///
/// What only some sinks can do is a protocol of its own: `BufferingSink`, `DescribedSink`,
/// `RecordReceiver`.
package protocol CheckpointedSink: AnyObject {
  /// Identity of the sink in checkpoints, unique in the pipeline.
  var name: String { get }

  /// Reconciles the state of an earlier run with the last checkpoint: finishes what was committed
  /// and discards the rest. Afterwards `flush` returns the state to store.
  ///
  /// - Parameter state: what `flush` returned for the last durable checkpoint; nil on a first run.
  func recover(from state: JSONValue?) throws

  /// Takes the rows of a batch in stream order. Not durable yet.
  func write(_ batch: RecordBatch) throws

  /// Makes everything written so far durable and returns the state for the checkpoint. Segments
  /// that are due (by size, age or idleness; all of them with `finish`) are closed as part of the
  /// commit.
  func flush(finish: Bool) throws -> JSONValue

  /// The checkpoint with the state of the last `flush` is durable: completes what it announced
  /// (final names, manifest). Returns true if the state has changed and has to be stored again.
  func committed() throws -> Bool
}

/// A sink that keeps rows in memory or files in progress, and so decides when to commit.
package protocol BufferingSink: CheckpointedSink {
  /// Whether something is due (rotation by age or idleness) although nothing was written.
  var isDue: Bool { get }

  /// Output bytes taken since the last `flush`, before compression.
  var pendingByteCount: Int { get }
}

/// A sink whose output says how complete it is.
package protocol DescribedSink: CheckpointedSink {
  /// Describes, for readers of the output, how complete it is. Called after `committed`.
  ///
  /// - Parameters:
  ///   - positions: the positions in the durable checkpoint, by topic.
  ///   - letters: the dead letters that wait; read when it is called first.
  ///   - isLast: no other commit of this run follows.
  func describe(
    _ positions: [String: TopicPosition], lacking letters: () -> WaitingLetters, isLast: Bool
  ) throws
}
