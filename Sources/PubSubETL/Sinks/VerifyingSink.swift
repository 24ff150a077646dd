import Pipeline

/// A sink whose copy can be compared with the org: a conforming type answers for how.
protocol VerifyingSink: ConfiguredSink {
  /// Why this one has no copy to compare, as it is configured; nil when it has.
  func verifyObstacle(_ configuration: PipelineConfiguration) -> String?

  /// What else corrects differences, if runs cannot read single records again; nil when they can.
  var repairObstacle: String? { get }

  /// How far the copy is complete, by object. Read without lock.
  func copyStates(_ configuration: PipelineConfiguration) throws -> CopyStates

  /// Begins to compare the copy of one object.
  ///
  /// - Parameters:
  ///   - layout: of the object's records, after the stages of the pipeline.
  ///   - stages: those of the sink.
  ///   - horizon: milliseconds since 1970; what has changed since is not judged.
  func verification(
    of layout: RecordLayout, through stages: StageChain, horizon: Int64,
    _ configuration: PipelineConfiguration
  ) throws -> any CopyVerification
}

/// A sink's description of its copies before they are compared.
struct CopyStates {
  /// ID of the org that they are of; nil when it is not known.
  var org: String?
  /// The run that holds the sink now, in words; nil when none does.
  var holder: String?
  var objects: [String: State] = [:]

  enum State {
    /// Every change through this time is in the copy, milliseconds since 1970.
    case complete(through: Int64)
    /// Why it cannot be compared yet.
    case incomplete(String)
    /// The records of the object were never read: the copy has changes only.
    case unread
  }
}

/// A comparison under way. Records come in rows of the layout that it was begun with.
protocol CopyVerification: AnyObject {
  /// Takes records of the whole object.
  func take(_ batch: RecordBatch) throws
  /// Forgets the records so far, because all are read again.
  func startOver() throws
  /// A record that the org has, and that cannot become a row.
  func noteUnreadable(_ recordID: String?) throws
  /// Called after all records.
  func finishPass() throws
  /// IDs of records chosen by chance.
  func sample(_ count: Int) throws -> [String]
  func takeSample(_ batch: RecordBatch) throws
  /// IDs of some of what still differed when it was last read.
  func candidates(inRound round: Int, after id: String, limit: Int) throws -> [String]
  /// Takes candidates that were read again.
  func takeAgain(_ batch: RecordBatch, asked: [String], missing: [String], round: Int) throws
  func findings(idLimit: Int) throws -> CopyFindings
  /// Has what differs read again by the next run, unless the sink has a `repairObstacle`.
  func noteForRepair() throws
}

extension VerifyingSink {
  var repairObstacle: String? { nil }
}
