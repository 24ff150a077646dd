import JSON

/// The stages of a pipeline, one after the other.
///
/// Layouts pass through once, when a schema is first seen; later batches find the result by the
/// identity of their layout. Used by one thread at a time.
public final class StageChain {
  private let stages: [any Transform]
  /// Whose stages they are; nil for those of the whole pipeline.
  package let sink: String?
  /// The stages that remember something, with the names under which their memory is stored.
  private let remembering: [(name: String, stage: any Transform)]
  /// What each stage made of a layout, in order.
  private var paths = LayoutCache<[RecordLayout]>()
  /// Rows that stages have left out since this was last taken.
  private var leftOutCount = 0
  private var refusals = StageRefusals()
  /// Sees every batch before, between and behind the stages.
  package weak var observer: (any StageObserver)?

  /// - Parameter sink: whose stages they are; nil for those of the whole pipeline.
  public init(_ stages: [any Transform], sink: String? = nil) {
    self.stages = stages
    self.sink = sink
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

  /// Whether rows of a layout may leave the last stage.
  public func bringsRows(of input: RecordLayout) throws -> Bool {
    let inputs = [input] + (try self.outputs(of: input)).dropLast()
    return zip(self.stages, inputs).allSatisfy { $0.bringsRows(of: $1) }
  }

  /// Passes a batch through all stages. Its layout, which the decoder has set, is replaced by that
  /// of each stage in turn before the stage sees the rows.
  public func apply(to batch: RecordBatch) throws {
    let outputs = try self.outputs(of: batch.layout)
    self.observer?.willEnter(self, batch)
    for (index, output) in outputs.enumerated() {
      batch.layout = output
      batch.makeRoom(for: output)
      let rowCount = batch.rowCount
      try self.stages[index].apply(to: batch)
      self.leftOutCount += rowCount - batch.rowCount
      self.observer?.didLeave(
        self.stages[index], place: self.configuredPlace(of: index), self, batch)
      if !batch.refusals.isEmpty {
        self.refusals.take(from: batch, stage: self.name(ofStage: index), sink: self.sink)
      }
    }
  }

  /// The place of a stage in the pipeline file, which does not have all of them.
  private func place(ofStage index: Int) -> Int {
    self.stages[..<index].count { $0 is any ConfiguredTransform }
  }

  /// The same; nil for a stage that the pipeline file does not have.
  private func configuredPlace(of index: Int) -> Int? {
    self.stages[index] is any ConfiguredTransform ? self.place(ofStage: index) : nil
  }

  /// `stage filter (stages[1])`, for messages.
  private func name(ofStage index: Int) -> String {
    let kind = self.stages[index].kind
    guard let place = self.configuredPlace(of: index) else { return "stage \(kind)" }
    return "stage \(kind) (stages[\(place)])"
  }

  /// The slots whose values do not reach the end of the chain as they are: a stage masks them, or
  /// removes their columns.
  ///
  /// - Parameters:
  ///   - masksOnly: what other stages than `mask` remove does not count.
  ///   - behind: slots that count as such behind the last stage.
  /// - Returns: of the rows that enter, and of those behind each stage.
  package func concealedSlots(
    of input: RecordLayout, masksOnly: Bool = false,
    behind: (RecordLayout) throws -> Set<Int> = { _ in [] }
  ) throws -> [Set<Int>] {
    let layouts = [input] + (try self.outputs(of: input))
    var concealed = [try behind(layouts[layouts.count - 1])]
    for (index, stage) in self.stages.enumerated().reversed() {
      let (before, after) = (layouts[index], layouts[index + 1])
      var slots = concealed[concealed.count - 1].union(stage.maskedSlots(of: after))
      if !masksOnly || stage is Mask {
        slots.formUnion(before.columnSlots.subtracting(after.columnSlots))
      }
      concealed.append(slots)
    }
    return concealed.reversed()
  }

  /// Whether some rows may not reach the end of the chain.
  package var mayLeaveOutRows: Bool {
    self.stages.contains { $0 is Filter || $0 is RouteFilter }
  }

  /// Events that stages could not process since the last call.
  package func takeRefusedEvents() -> [RefusedEvent] { self.refusals.takeEvents() }

  /// Records that were read and that stages could not process since the last call.
  func takeUnreadable() -> [UnreadableRecord] { self.refusals.takeRecords() }

  /// Tells the stages what belongs to the run; called once, before there are layouts.
  public func begin(_ run: RunValues) {
    for stage in self.stages { stage.begin(run) }
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

  /// The columns that stages hide of an input layout, by their order, stages first.
  ///
  /// Throws what the stages throw for the layout.
  public func maskedColumns(of input: RecordLayout) throws -> [MaskedColumn] {
    zip(self.stages, try self.outputs(of: input)).enumerated().flatMap { index, pair in
      (pair.0 as? Mask)?.maskedColumns(leading: pair.1).map { column in
        var column = column
        column.stage = self.place(ofStage: index)
        return column
      } ?? []
    }
  }

  /// Values of classifications that stages name and no field has, for messages.
  public var unknownClassifications: [String] {
    self.stages.enumerated().flatMap { index, stage in
      ((stage as? Mask)?.unknownClassifications ?? []).map { "\(self.name(ofStage: index)): \($0)" }
    }
  }

  /// What the configuration of stages names, and which of it no layout has had so far.
  public var namedColumns: [NamedColumns] {
    self.stages.enumerated().compactMap { index, stage in
      var columns = stage.namedColumns
      columns?.stage = self.place(ofStage: index)
      return columns
    }
  }

  /// Whether any layout has come by.
  public var hasSeenLayouts: Bool { self.paths.count > 0 }

  private func outputs(of input: RecordLayout) throws -> [RecordLayout] {
    // A stage counts the slots that it adds, so its cache may be emptied before this one.
    if let known = self.paths[input], zip(self.stages, known).allSatisfy({ $0.knows($1) }) {
      return known
    }
    try input.checkNames(stage: "decode")
    var outputs: [RecordLayout] = []
    for stage in self.stages {
      outputs.append(try stage.layout(for: outputs.last ?? input))
    }
    self.paths.insert(outputs, for: input)
    return outputs
  }
}

/// Watches what the stages of a chain make of each batch.
package protocol StageObserver: AnyObject {
  /// The batch is about to enter the first stage, with the decoder's layout or that of the chain before.
  func willEnter(_ chain: StageChain, _ batch: RecordBatch)

  /// The batch has left a stage. Events that the stage has refused are still in it (`refusals`).
  ///
  /// - Parameter place: of the stage in the pipeline file; nil when it does not have it.
  func didLeave(_ stage: any Transform, place: Int?, _ chain: StageChain, _ batch: RecordBatch)
}
