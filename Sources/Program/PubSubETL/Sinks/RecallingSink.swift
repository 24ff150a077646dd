import JSON
import Pipeline

/// A sink whose copy shows what has changed lately.
protocol RecallingSink: ConfiguredSink {
  /// Visits changes, as lines of files or rows of history tables: at least the last `count` if the
  /// copy has as many, and some earlier ones, those of each topic oldest first. Takes no lock.
  ///
  /// - Throws: `RunFailure` if the sink keeps no changes; what its parts throw.
  func recall(
    _ count: Int, _ configuration: PipelineConfiguration, _ body: (JSONValue) throws -> Void
  ) throws
}
