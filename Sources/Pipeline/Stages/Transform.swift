/// A stage between decoder and sinks.
///
/// To add one: a file with one type that conforms, its configuration, and one line in
/// `TransformRegistry`.
public protocol Transform {
  /// The columns that leave the stage for the columns that enter it. Called once for each layout.
  ///
  /// Throws `TransformError` for a mistake that the layout shows: two columns with one name (both
  /// paths named), a selected column that the schema does not have and must.
  func layout(for input: RecordLayout) throws -> RecordLayout

  /// Changes rows in place; slots belong to the decoder's layout. Stages that only arrange columns
  /// do nothing here; others say so with `changesRows`.
  /// The batch's layout is already the one this stage has made.
  func apply(to batch: RecordBatch) throws

  /// Whether `apply` changes anything.
  var changesRows: Bool { get }

  /// Columns that the configuration names; nil for a stage that names none.
  var namedColumns: NamedColumns? { get }
}

extension Transform {
  public func apply(to batch: RecordBatch) throws {}
  public var changesRows: Bool { false }
  public var namedColumns: NamedColumns? { nil }
}
