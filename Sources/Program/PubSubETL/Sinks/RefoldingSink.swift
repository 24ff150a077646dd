/// A sink that may rebuild the present state of records from their history.
protocol RefoldingSink: ConfiguredSink {
  /// Why this one cannot, as it is configured; nil when it can.
  var refoldObstacle: String? { get }

  /// - Parameters:
  ///   - say: takes lines of a label and a value for standard output.
  ///   - remark: takes a line for standard error.
  func refold(
    _ selection: RefoldSelection, of configuration: PipelineConfiguration,
    say: ([(label: String, value: String)]) throws -> Void, remark: (String) -> Void) throws
}

/// What is to be rebuilt.
struct RefoldSelection {
  /// Nil: all that have tables.
  var entity: String?
  /// IDs of records; empty: all.
  var records: [String]
}
