import Pipeline

/// The stages of one run: the pipeline's, followed by each sink's.
///
/// Knows which columns in the pipeline file no schema has, because a typo in `drop` would export a
/// column that should be left out.
struct RunStages {
  let pipeline: StageChain
  /// By the sink's name; only sinks whose columns are named or whose rows are changed.
  let sinks: [String: StageChain]
  private let route: (any Transform)?

  /// - Parameters:
  ///   - org: ID of the org; empty without a login.
  ///   - classification: how the org classifies its fields; nil if that is not needed.
  init(
    _ configuration: PipelineConfiguration, org: String, classification: OrgClassification? = nil
  ) {
    let run = RunValues(pipeline: configuration.name, org: org, classification: classification)
    let stages = configuration.stages.map { $0.transform() }
    self.pipeline = StageChain(stages)
    self.pipeline.begin(run)
    let route = stages.first { $0.sinks != nil }
    self.route = route
    var sinks: [String: StageChain] = [:]
    for sink in configuration.sinks {
      let own =
        [route?.filter(for: sink.name)].compactMap(\.self) + sink.stages.map { $0.transform() }
        + [(sink as? any ColumnNamingSink)?.columnWatcher].compactMap(\.self)
      guard !own.isEmpty else { continue }
      let chain = StageChain(own, sink: sink.name)
      chain.begin(run)
      sinks[sink.name] = chain
    }
    self.sinks = sinks
  }

  func chain(of sink: some ConfiguredSink) -> StageChain {
    self.sinks[sink.name] ?? StageChain([], sink: sink.name)
  }

  /// Whether rows of a layout may reach a sink.
  func bringsRows(of layout: RecordLayout, to sink: String) throws -> Bool {
    guard try self.pipeline.bringsRows(of: layout) else { return false }
    guard let chain = self.sinks[sink] else { return true }
    return try chain.bringsRows(of: self.pipeline.layout(for: layout))
  }

  /// Shows a layout to every stage, as the first event of its schema would.
  func show(_ layout: RecordLayout) throws {
    let output = try self.pipeline.layout(for: layout)
    for (_, chain) in self.sinks.sorted(by: { $0.key < $1.key }) {
      _ = try chain.layout(for: output)
    }
  }

  /// The slots of the pipeline stages' output whose values the sinks do not write: those masked for
  /// any sink, and those removed by every sink that gets all rows. If no sink gets all rows, those
  /// removed by any sink.
  func concealedSlots(of output: RecordLayout, sinks: [String]) throws -> Set<Int> {
    var concealed: Set<Int> = []
    var removed: Set<Int>?
    var removedByAny: Set<Int> = []
    for sink in sinks {
      guard let chain = self.sinks[sink] else {
        removed = []
        continue
      }
      concealed.formUnion(try chain.concealedSlots(of: output, masksOnly: true)[0])
      let own = try chain.concealedSlots(of: output)[0]
      removedByAny.formUnion(own)
      if !chain.mayLeaveOutRows { removed = removed?.intersection(own) ?? own }
    }
    return concealed.union(removed ?? removedByAny)
  }

  /// Why a stage cannot process an event.
  ///
  /// - Parameters:
  ///   - lacking: the sinks that lack the event; nil for all of them.
  ///   - decode: decodes the event, each time into a new batch.
  func refusal(sinks lacking: [String]?, _ decode: () throws -> RecordBatch) throws -> String? {
    try self.pipeline.apply(to: decode())
    if let refused = self.pipeline.takeRefusedEvents().first { return refused.reason }
    for sink in lacking ?? [] {
      guard let filter = self.route?.filter(for: sink) else { break }
      let batch = try decode()
      try self.pipeline.apply(to: batch)
      let hasRows = batch.rowCount > 0
      try StageChain([filter]).apply(to: batch)
      if hasRows, batch.rowCount == 0 {
        return
          "sink '\(sink)' refused it, and the stage 'route' does not send it there now; send it "
          + "there and retry, or use 'dead-letters export'"
      }
    }
    for (name, chain) in self.sinks where lacking?.contains(name) ?? true {
      let batch = try decode()
      try self.pipeline.apply(to: batch)
      try chain.apply(to: batch)
      if let refused = chain.takeRefusedEvents().first {
        return "sink '\(name)', \(refused.reason)"
      }
    }
    return nil
  }

  private var chains: [(place: String, chain: StageChain)] {
    [("", self.pipeline)] + self.sinks.sorted { $0.key < $1.key }.map { ("sinks/\($0)/", $1) }
  }

  /// The columns of an input layout that stages hide, one line each: `Contact.Email: redact by
  /// stages[1], named`.
  func maskedColumns(of layout: RecordLayout) throws -> [String] {
    let output = try self.pipeline.layout(for: layout)
    return try self.pipeline.maskedColumns(of: layout).map { "\(layout.entity).\($0)" }
      + self.sinks.sorted { $0.key < $1.key }.flatMap { name, chain in
        try chain.maskedColumns(of: output).map { "\(layout.entity).\($0) of sink '\(name)'" }
      }
  }

  /// Values of classifications that stages name and no field has, with the stages.
  var unknownClassifications: [String] {
    self.chains.flatMap { place, chain in
      chain.unknownClassifications.map { text in
        place.isEmpty ? text : "sink '\(place.split(separator: "/")[1])', \(text)"
      }
    }
  }

  /// Whether any schema has been seen.
  var hasSeenLayouts: Bool { self.pipeline.hasSeenLayouts }

  /// A name that is in the pipeline file but in no schema so far.
  struct Finding {
    /// The key in `CheckpointDocument.matchedColumns`: the kind of the stage and its owner. Places
    /// of stages are left out, because adding one moves the others.
    var key: String
    var name: String
    /// Whether the stage hides what it names.
    var isHidden: Bool
    /// `stage drop (stages[0]): 'Emial' (nearest: Email)`
    var description: String
    /// The stage before that removes or renames the column: `stage drop (stages[0])`.
    var removedBy: String?

    /// What is wrong, and where a schema was looked for: `of this run`.
    func sentence(schemas: String) -> String {
      self.removedBy.map { "\(self.description) does not reach it: \($0) removes or renames it" }
        ?? "\(self.description) is not in any schema \(schemas)"
    }

    /// What to change about all of them.
    static func remedy(_ findings: [Self]) -> String {
      let isMisspelled = findings.contains { $0.removedBy == nil }
      let change =
        isMisspelled ? "correct the name\(findings.count == 1 ? "" : "s")" : "reorder the stages"
      return "\(change), or set \"missing\" to \"ignore\" in the stage"
    }
  }

  /// Findings that the configuration does not allow.
  func findings() -> [Finding] {
    let named = self.chains.flatMap { place, chain in chain.namedColumns.map { (place, $0) } }
    return named.filter { !$0.1.isAllowed }.flatMap { place, columns in
      columns.unmatched.sorted().map { name in
        let sink = place.isEmpty ? "" : "sink '\(place.split(separator: "/")[1])', "
        let what =
          columns.isOfStage
          ? "\(sink)stage \(columns.type) (stages[\(columns.stage)])" : "\(sink)\(columns.type)"
        let earlier = place.isEmpty ? nil : self.pipeline.remover(of: name)
        return Finding(
          key: place + columns.type, name: name, isHidden: columns.isHidden,
          description: "\(what): \(columns.description(of: name))",
          removedBy: columns.removedBy[name] ?? earlier)
      }
    }
  }

  /// Names that some schema has had, now or according to an earlier run.
  func matched(since earlier: [String: Set<String>]) -> [String: Set<String>] {
    var matched: [String: Set<String>] = [:]
    for (place, chain) in self.chains {
      for columns in chain.namedColumns {
        let key = place + columns.type
        let known = earlier[key]?.intersection(columns.names) ?? []
        let names = columns.names.subtracting(columns.unmatched).union(known)
        if !names.isEmpty { matched[key, default: []].formUnion(names) }
      }
    }
    return matched
  }
}
