import JSON

/// The stages of a pipeline, one after the other.
///
/// Layouts pass through once, when a schema is first seen; later batches find the result by the
/// identity of their layout. Used by one thread at a time.
package final class StageChain {
  private let stages: [any Transform]
  /// The sink that the stages belong to; nil for stages of the whole pipeline.
  package let sink: String?
  /// The stages with memory, and the names under which it is stored.
  private let remembering: [(name: String, stage: any Transform)]
  /// The layouts that the stages returned, in order.
  private var paths = LayoutCache<[RecordLayout]>()
  /// Whether rows of a layout may leave the chain.
  private var reaches = LayoutCache<Bool>()
  /// Rows that stages have removed since this was last taken.
  private var leftOutCount = 0
  private var refusals = StageRefusals()
  /// The last stage after which a column's name was gone, by name.
  private var removals: [String: Int] = [:]
  /// The copy of a lent batch that stages work on if they change rows; its memory is reused.
  private var copy: RecordBatch?
  /// Records whose rows do not reach the first stage.
  package var erased = ErasedRecords()
  /// Receives every batch before the first stage and after each stage.
  package weak var observer: (any StageObserver)?

  /// - Parameter sink: the sink that the stages belong to; nil for stages of the whole pipeline.
  package init(_ stages: [any Transform], sink: String? = nil) {
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

  /// Whether any stage needs complete rows.
  package var readsAcrossColumns: Bool { self.stages.contains(where: \.readsAcrossColumns) }

  /// The columns that leave the last stage.
  ///
  /// Throws the errors of the stages: `TransformError` for a layout that does not fit.
  package func layout(for input: RecordLayout) throws -> RecordLayout {
    try self.outputs(of: input).last ?? input
  }

  /// Whether rows of a layout may leave the last stage.
  package func bringsRows(of input: RecordLayout) throws -> Bool {
    if let known = self.reaches[input] { return known }
    let inputs = [input] + (try self.outputs(of: input)).dropLast()
    let brings = zip(self.stages, inputs).allSatisfy { $0.bringsRows(of: $1) }
    self.reaches.insert(brings, for: input)
    return brings
  }

  /// Passes a batch through all stages. Its layout, which the decoder has set, is replaced by that
  /// of each stage in turn before the stage sees the rows.
  package func apply(to batch: RecordBatch) throws {
    let outputs = try self.outputs(of: batch.layout)
    if !self.erased.isEmpty { self.leftOutCount += self.erased.removeRows(from: batch) }
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

  /// The place of a stage in the pipeline file; some stages are not in the file.
  private func place(ofStage index: Int) -> Int {
    self.stages[..<index].count(where: \.isConfigured)
  }

  /// The place of a stage in the pipeline file; nil for a stage that is not in the file.
  private func configuredPlace(of index: Int) -> Int? {
    self.stages[index].isConfigured ? self.place(ofStage: index) : nil
  }

  /// `stage filter (stages[1])`, for messages.
  private func name(ofStage index: Int) -> String {
    let kind = self.stages[index].kind
    guard let place = self.configuredPlace(of: index) else { return "stage \(kind)" }
    return "stage \(kind) (stages[\(place)])"
  }

  /// The slots whose values do not leave the chain unchanged, because a stage masks them or removes
  /// their columns.
  ///
  /// - Parameters:
  ///   - masksOnly: ignores columns that are removed by stages that hide nothing.
  ///   - behind: slots that are hidden after the chain.
  /// - Returns: the hidden slots of rows before the first stage and after each stage.
  package func concealedSlots(
    of input: RecordLayout, masksOnly: Bool = false,
    behind: (RecordLayout) throws -> Set<Int> = { _ in [] }
  ) throws -> [Set<Int>] {
    let layouts = [input] + (try self.outputs(of: input))
    var concealed = [try behind(layouts[layouts.count - 1])]
    for (index, stage) in self.stages.enumerated().reversed() {
      let (before, after) = (layouts[index], layouts[index + 1])
      var slots = concealed[concealed.count - 1].union(stage.maskedSlots(of: after))
      if !masksOnly || stage.hides != nil {
        slots.formUnion(before.columnSlots.subtracting(after.columnSlots))
      }
      concealed.append(slots)
    }
    return concealed.reversed()
  }

  /// Whether some rows may not reach the end of the chain.
  package var mayLeaveOutRows: Bool { self.stages.contains(where: \.leavesOutRows) }

  /// The conditions by which stages leave out rows of a layout, with the stages for messages.
  package func conditions(
    of input: RecordLayout
  ) throws -> [(stage: String, condition: StageCondition)] {
    try zip(self.stages.indices, self.outputs(of: input)).compactMap { index, output in
      try self.stages[index].condition(for: output).map { (self.name(ofStage: index), $0) }
    }
  }

  /// Events that stages could not process since the last call.
  package func takeRefusedEvents() -> [RefusedEvent] { self.refusals.takeEvents() }

  /// Records that were read and that stages could not process since the last call.
  package func takeUnreadable() -> [UnreadableRecord] { self.refusals.takeRecords() }

  /// Gives the stages the values of the run. Called once, before the first layout.
  package func begin(_ run: RunValues) {
    for stage in self.stages { stage.begin(run) }
  }

  /// The rows that stages have left out since the last call.
  func takeLeftOutCount() -> Int {
    defer { self.leftOutCount = 0 }
    return self.leftOutCount
  }

  /// The stages' memory of a topic; the names identify the stages.
  package func memory(ofTopic topic: String) -> StageMemory {
    var memory: StageMemory = [:]
    for (name, stage) in self.remembering { memory[name] = stage.memory(ofTopic: topic) }
    return memory
  }

  /// - Parameter memory: may also contain the memory of other stages.
  package func recall(_ memory: StageMemory, ofTopic topic: String) throws {
    for (name, stage) in self.remembering {
      if let known = memory[name] { try stage.recall(known, ofTopic: topic) }
    }
  }

  /// Runs a closure with the batch as it leaves the last stage, and leaves the batch as it was.
  func lend(_ batch: RecordBatch, to body: (RecordBatch) throws -> Void) throws {
    guard !self.changesRows else {
      let copy = self.copy ?? RecordBatch(layout: batch.layout)
      self.copy = copy
      copy.replaceAll(with: batch)
      try self.apply(to: copy)
      return try body(copy)
    }
    let layout = batch.layout
    defer { batch.layout = layout }
    try self.apply(to: batch)
    try body(batch)
  }

  /// The columns of an input layout that stages hide, ordered by stage, then by column.
  ///
  /// Throws the errors of the stages for the layout.
  package func maskedColumns(of input: RecordLayout) throws -> [MaskedColumn] {
    zip(self.stages, try self.outputs(of: input)).enumerated().flatMap { index, pair in
      pair.0.maskedColumns(leading: pair.1).map { column in
        var column = column
        column.stage = self.place(ofStage: index)
        return column
      }
    }
  }

  /// Values of classifications that stages name and no field has, for messages.
  package var unknownClassifications: [String] {
    self.stages.enumerated().flatMap { index, stage in
      stage.unknownClassifications.map { "\(self.name(ofStage: index)): \($0)" }
    }
  }

  /// The columns that the stages' configuration names, with those that no layout has had so far.
  package var namedColumns: [NamedColumns] {
    self.stages.enumerated().compactMap { index, stage in
      var columns = stage.namedColumns
      columns?.stage = self.place(ofStage: index)
      columns?.isHidden = stage.hides != nil
      for name in columns?.unmatched ?? [] {
        guard let remover = self.removals[name], remover < index else { continue }
        columns?.removedBy[name] = self.name(ofStage: remover)
      }
      return columns
    }
  }

  /// The stage that removes or renames a column that some layout had: `stage drop (stages[0])`.
  package func remover(of column: String) -> String? {
    self.removals[column].map(self.name(ofStage:))
  }

  /// Whether there was any layout.
  package var hasSeenLayouts: Bool { self.paths.count > 0 }

  private func outputs(of input: RecordLayout) throws -> [RecordLayout] {
    // A stage counts the slots that it adds, so its cache may be emptied before this one.
    if let known = self.paths[input], zip(self.stages, known).allSatisfy({ $0.knows($1) }) {
      return known
    }
    try input.checkNames(stage: "decode")
    var outputs: [RecordLayout] = []
    for (index, stage) in self.stages.enumerated() {
      let before = outputs.last ?? input
      let after = try stage.layout(for: before)
      outputs.append(after)
      self.noteRemovals(by: index, before, after)
    }
    self.paths.insert(outputs, for: input)
    return outputs
  }

  private func noteRemovals(by stage: Int, _ before: RecordLayout, _ after: RecordLayout) {
    let lost = Set(before.columns.map(\.name)).subtracting(after.columns.map(\.name))
    for name in lost { self.removals[name] = stage }
  }
}

/// Observes each batch on its way through the stages of a chain.
package protocol StageObserver: AnyObject {
  /// The batch is about to enter the first stage, with the layout of the decoder or of the previous
  /// chain.
  func willEnter(_ chain: StageChain, _ batch: RecordBatch)

  /// The batch has left a stage. Events that the stage has refused are still in it (`refusals`).
  ///
  /// - Parameter place: the stage's place in the pipeline file; nil for a stage that is not in the
  ///   file.
  func didLeave(_ stage: any Transform, place: Int?, _ chain: StageChain, _ batch: RecordBatch)
}
