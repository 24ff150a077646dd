import Pipeline

/// The stages of one run: the pipeline's, and each sink's behind them.
///
/// Knows which columns the pipeline file names that no schema has: in `drop` a typing mistake would
/// export what was to be left out.
struct RunStages {
  let pipeline: StageChain
  /// By the sink's name; of those only that name columns or change them.
  let sinks: [String: StageChain]

  init(_ configuration: PipelineConfiguration) {
    self.pipeline = StageChain(configuration.stages.map { $0.transform() })
    var sinks: [String: StageChain] = [:]
    for sink in configuration.sinks where !sink.stages.isEmpty || sink.columnWatcher != nil {
      sinks[sink.name] = sink.stageChain()
    }
    self.sinks = sinks
  }

  /// Shows a layout to every stage, as the first event of its schema would.
  func show(_ layout: RecordLayout) throws {
    let output = try self.pipeline.layout(for: layout)
    for (_, chain) in self.sinks.sorted(by: { $0.key < $1.key }) {
      _ = try chain.layout(for: output)
    }
  }

  private var chains: [(place: String, chain: StageChain)] {
    [("", self.pipeline)] + self.sinks.sorted { $0.key < $1.key }.map { ("sinks/\($0)/", $1) }
  }

  /// Any schema has come by.
  var hasSeenLayouts: Bool { self.pipeline.hasSeenLayouts }

  /// A name is in the pipeline file but in none of the schemas so far.
  struct Finding {
    /// Of `CheckpointDocument.matchedColumns`: kind of the stage, and whose it is. Places of stages
    /// are left out, since adding one moves the others.
    var key: String
    var name: String
    /// `stage drop (stages[0]): column 'Emial' (nearest: Email)`
    var description: String
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
        return Finding(
          key: place + columns.type, name: name,
          description: "\(what): \(columns.description(of: name))")
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
