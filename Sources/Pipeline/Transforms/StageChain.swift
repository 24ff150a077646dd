/// The stages of a pipeline, one after the other.
///
/// Layouts pass through once, when a schema is first seen; later batches find the result by the
/// identity of their layout. Used by one thread at a time.
public final class StageChain {
  private let stages: [any Transform]
  /// What each stage made of a layout, in order.
  private var paths = LayoutCache<[RecordLayout]>()

  public init(_ stages: [any Transform]) { self.stages = stages }

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
      try stage.apply(to: batch)
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
