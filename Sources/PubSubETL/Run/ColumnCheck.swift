internal import Checkpoint
import Pipeline

/// Compares the columns that a pipeline file names with the schemas of today, before anything is
/// exported.
///
/// A topic of one object tells its schema beforehand, a channel does not. A name that none of the
/// schemas has ends the run, unless a channel may still bring it, or an earlier run has seen it: a
/// field that is deleted in the org must not stop a run of long standing, unless it is one to be masked.
struct ColumnCheck {
  /// For the log, one sentence each.
  private(set) var warnings: [String] = []
  /// Topics whose schemas are known from their events only.
  private(set) var unknown: [String] = []

  /// - Parameter earlier: `CheckpointDocument.matchedColumns`.
  /// - Throws: `RunFailure` (78) naming every stage, column, and the nearest names there are; what
  ///   stages throw for today's schemas.
  init(
    _ stages: RunStages, _ planned: PlannedLayouts, earlier: [String: Set<String>] = [:]
  ) throws {
    for layout in planned.inputs { try stages.show(layout) }
    self.unknown = planned.unknown
    var mistakes: [String] = []
    // A channel tells its schemas with its events: what it has had before it may have again.
    for finding in stages.findings() where planned.unknown.isEmpty {
      // A mask that fits nothing any more would let the field out under its new name.
      if !finding.isOfMask, earlier[finding.key]?.contains(finding.name) ?? false {
        self.warnings.append(
          "\(finding.description) is not in any current schema but was in an earlier one; if "
            + "the field was renamed in the org, use its new name in the pipeline file")
      } else {
        mistakes.append(finding.description)
      }
    }
    if let unknown = stages.unknownClassifications.first {
      let message =
        "\(unknown): no field of the pipeline's objects has this classification; correct the name, or "
        + "set \"missing\" to \"ignore\" in the stage"
      guard !planned.unknown.isEmpty else {
        throw RunFailure(.configuration, reason: "stages", message)
      }
      self.warnings.append(message)
    }
    guard mistakes.isEmpty else {
      throw RunFailure(
        .configuration, reason: "stages",
        mistakes.map { "\($0) is not in any schema of this pipeline's topics" }.joined(
          separator: "; ")
          + "; correct the name" + (mistakes.count == 1 ? "" : "s")
          + ", or set \"missing\" to \"ignore\" in the stage")
    }
  }

  /// What to say when a run ends: names that no schema of the run has had. A run without events has
  /// seen too little.
  static func warnings(
    atEndOf stages: RunStages, earlier: [String: Set<String>]
  ) -> [String] {
    guard stages.hasSeenLayouts else { return [] }
    return stages.findings()
      .filter { !(earlier[$0.key]?.contains($0.name) ?? false) }
      .map { "\($0.description) is in no schema of this run; check the spelling" }
  }
}

extension PipelineConfiguration {
  /// Whether any stage, or a sink's `column_types`, names columns that have to be somewhere.
  var namesColumns: Bool { !RunStages(self, org: "").findings().isEmpty }

  var masks: [Mask] {
    (self.stages + self.sinks.flatMap(\.stages)).compactMap { $0.transform() as? Mask }
  }

  var masksColumns: Bool { !self.masks.isEmpty }

  /// What stages mask by the org's classification of fields; empty when the org need not be asked.
  var classificationSelectors: [ClassificationSelector] {
    self.masks.compactMap(\.selector)
  }

  /// The checkpoint's entry, read without its lock; empty without a readable checkpoint.
  var matchedColumns: [String: Set<String>] {
    (try? FileCheckpointStore.peek(self.statePaths))?.matchedColumns ?? [:]
  }
}
