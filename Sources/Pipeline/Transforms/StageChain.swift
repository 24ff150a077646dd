import JSON

/// The stages of a pipeline, one after the other.
///
/// Layouts pass through once, when a schema is first seen; later batches find the result by the
/// identity of their layout. Used by one thread at a time.
public final class StageChain {
  private let stages: [any Transform]
  /// The stages that remember something, with the names under which their memory is stored.
  private let remembering: [(name: String, stage: any Transform)]
  /// What each stage made of a layout, in order.
  private var paths = LayoutCache<[RecordLayout]>()
  /// Rows that stages have left out since this was last taken.
  private var leftOutCount = 0

  /// - Parameter sink: whose stages they are; nil for those of the whole pipeline.
  public init(_ stages: [any Transform], sink: String? = nil) {
    self.stages = stages
    var counts: [String: Int] = [:]
    self.remembering = stages.compactMap { stage in
      guard let name = stage.memoryName else { return nil }
      let count = counts[name, default: 0] + 1
      counts[name] = count
      return ((sink.map { "\($0)/" } ?? "") + name + (count > 1 ? "#\(count)" : ""), stage)
    }
  }

  /// Whether any stage does more than arrange columns.
  var changesRows: Bool { self.stages.contains(where: \.changesRows) }

  /// The columns that leave the last stage.
  ///
  /// Throws what the stages throw, `TransformError` for mistakes the layout shows.
  public func layout(for input: RecordLayout) throws -> RecordLayout {
    try self.outputs(of: input).last ?? input
  }

  /// Passes a batch through all stages. Its layout, which the decoder has set, is replaced by that
  /// of each stage in turn before the stage sees the rows.
  public func apply(to batch: RecordBatch) throws {
    for (stage, output) in zip(self.stages, try self.outputs(of: batch.layout)) {
      batch.layout = output
      let rowCount = batch.rowCount
      try stage.apply(to: batch)
      self.leftOutCount += rowCount - batch.rowCount
    }
  }

  /// The rows that stages have left out since the last call.
  func takeLeftOutCount() -> Int {
    defer { self.leftOutCount = 0 }
    return self.leftOutCount
  }

  /// What the stages remember of a topic; the names tell whose stages they are.
  public func memory(ofTopic topic: String) -> StageMemory {
    var memory: StageMemory = [:]
    for (name, stage) in self.remembering { memory[name] = stage.memory(ofTopic: topic) }
    return memory
  }

  /// - Parameter memory: may hold that of other stages as well.
  public func recall(_ memory: StageMemory, ofTopic topic: String) throws {
    for (name, stage) in self.remembering {
      if let known = memory[name] { try stage.recall(known, ofTopic: topic) }
    }
  }

  /// Lends a batch with the columns that leave the last stage, and gives it back as it was.
  func lend(_ batch: RecordBatch, to body: (RecordBatch) throws -> Void) throws {
    let layout = batch.layout
    defer { batch.layout = layout }
    try self.apply(to: batch)
    try body(batch)
  }

  /// What the configuration of stages names, and which of it no layout has had so far.
  public var namedColumns: [NamedColumns] {
    self.stages.enumerated().compactMap { index, stage in
      var columns = stage.namedColumns
      columns?.stage = index
      return columns
    }
  }

  /// Whether any layout has come by.
  public var hasSeenLayouts: Bool { self.paths.count > 0 }

  private func outputs(of input: RecordLayout) throws -> [RecordLayout] {
    if let known = self.paths[input] { return known }
    try input.checkNames(stage: "decode")
    var outputs: [RecordLayout] = []
    for stage in self.stages {
      outputs.append(try stage.layout(for: outputs.last ?? input))
    }
    self.paths.insert(outputs, for: input)
    return outputs
  }
}
