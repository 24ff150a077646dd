public import JSON

/// A sink with stages of its own, after those of the pipeline: selected columns to one directory,
/// full lines to another.
///
/// Its stages see the columns that the pipeline's have made and leave the batch as it was, so that
/// the order of sinks does not matter. They arrange columns: a stage that changed rows would change
/// them for later sinks too, and belongs into the pipeline's.
public final class StagedSink: Sink {
  private let base: any Sink
  private let stages: StageChain

  public init(_ base: any Sink, stages: StageChain) {
    self.base = base
    self.stages = stages
  }

  public var name: String { self.base.name }
  public var isDue: Bool { self.base.isDue }
  public var pendingByteCount: Int { self.base.pendingByteCount }

  public func recover(from state: JSONValue?) throws { try self.base.recover(from: state) }

  public func write(_ batch: RecordBatch) throws {
    try self.stages.lend(batch, to: self.base.write)
  }

  public func flush(finish: Bool) throws -> JSONValue { try self.base.flush(finish: finish) }
  public func committed() throws -> Bool { try self.base.committed() }
}

/// The same for a sink that keeps its own position.
public final class StagedTransactionalSink: TransactionalSink {
  private let base: any TransactionalSink
  private let stages: StageChain

  public init(_ base: any TransactionalSink, stages: StageChain) {
    self.base = base
    self.stages = stages
  }

  public var name: String { self.base.name }
  public var isDue: Bool { self.base.isDue }
  public var pendingByteCount: Int { self.base.pendingByteCount }

  public func write(_ batch: RecordBatch) throws {
    try self.stages.lend(batch, to: self.base.write)
  }

  public func noteDeadLetter(_ letter: DeadLetter) throws { try self.base.noteDeadLetter(letter) }

  public func prepare(
    _ topics: [String: JSONValue], refused: (RefusedEvent) throws -> Void
  ) throws {
    try self.base.prepare(topics, refused: refused)
  }

  public func commit() throws { try self.base.commit() }
}
