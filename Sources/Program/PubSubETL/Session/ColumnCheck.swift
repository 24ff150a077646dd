internal import Checkpoint
import Pipeline

/// Compares the columns that a pipeline file names with the current schemas, before anything is
/// exported.
///
/// The schema of a single-object topic is known beforehand, that of a channel is not. A name that
/// no schema has ends the run, unless a channel may still deliver it or an earlier run has seen it:
/// deleting a field in the org must not stop an established pipeline, unless the field was to be
/// masked.
struct ColumnCheck {
  /// Warnings for the log, one sentence each.
  private(set) var warnings: [String] = []
  /// Topics whose schemas are known only from their events.
  private(set) var unknown: [String] = []

  /// - Parameter earlier: `CheckpointDocument.matchedColumns`.
  /// - Throws: `RunFailure` (78) naming every stage, column, and the nearest existing names; what
  ///   stages throw for the current schemas.
  init(
    _ stages: RunStages, _ planned: PlannedLayouts, earlier: [String: Set<String>] = [:]
  ) throws {
    for layout in planned.inputs { try stages.show(layout) }
    self.unknown = planned.unknown
    var mistakes: [RunStages.Finding] = []
    // A channel's schemas are known only from its events, so it may still have the column.
    for finding in stages.findings() where planned.unknown.isEmpty {
      // A mask that no longer matches would let the field be exported under its new name.
      if !finding.isHidden, earlier[finding.key]?.contains(finding.name) ?? false {
        self.warnings.append(
          "\(finding.description) is not in any current schema but was in an earlier one; if "
            + "the field was renamed in the org, use its new name in the pipeline file")
      } else {
        mistakes.append(finding)
      }
    }
    if let unknown = stages.unknownClassifications.first {
      let message =
        "\(unknown): no field of the pipeline's objects has this classification; correct the name, or "
        + "set \"missing\" to \"ignore\" in the stage"
      guard !planned.unknown.isEmpty else {
        throw RunFailure(.stages, message)
      }
      self.warnings.append(message)
    }
    guard mistakes.isEmpty else {
      throw RunFailure(
        .stages,
        mistakes.map { $0.sentence(schemas: "of this pipeline's topics") }.joined(separator: "; ")
          + "; \(RunStages.Finding.remedy(mistakes))")
    }
  }

  /// The warnings at the end of a run: names that no schema of the run has had. None for a run
  /// without events, which has seen too little.
  static func warnings(
    atEndOf stages: RunStages, earlier: [String: Set<String>]
  ) -> [String] {
    guard stages.hasSeenLayouts else { return [] }
    return stages.findings()
      .filter { !(earlier[$0.key]?.contains($0.name) ?? false) }
      .map { "\($0.sentence(schemas: "of this run")); \(RunStages.Finding.remedy([$0]))" }
  }
}

extension PipelineConfiguration {
  /// Whether any stage, or a sink's `column_types`, names columns that have to exist.
  var namesColumns: Bool { !RunStages(self, org: "").findings().isEmpty }

  private var allStages: [any Transform] {
    (self.stages + self.sinks.flatMap(\.stages)).map { $0.transform() }
  }

  var masksColumns: Bool { self.allStages.contains { $0.hides != nil } }

  /// The classifications that stages mask by; empty if the org need not be asked.
  var classificationSelectors: [ClassificationSelector] {
    self.allStages.compactMap(\.classificationSelector)
  }

  /// The checkpoint's entry, read without its lock; empty without a readable checkpoint.
  var matchedColumns: [String: Set<String>] {
    (try? FileCheckpointStore.peek(self.statePaths))?.matchedColumns ?? [:]
  }
}
