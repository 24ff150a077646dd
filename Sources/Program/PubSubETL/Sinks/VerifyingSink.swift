import Pipeline

/// A sink whose copy can be compared with the org.
protocol VerifyingSink: ConfiguredSink {
  /// Why this one has no copy to compare, as it is configured; nil when it has.
  func verifyObstacle(_ configuration: PipelineConfiguration) -> String?

  /// What else corrects differences, if runs cannot read single records again; nil when they can.
  var repairObstacle: String? { get }

  /// How far the copy is complete, by object. Read without lock.
  func copyStates(_ configuration: PipelineConfiguration) throws -> CopyStates

  /// Begins to compare the copy of one object.
  ///
  /// - Parameter layout: of the object's records, after all stages.
  func verification(
    of layout: RecordLayout, _ scope: CopyScope, _ configuration: PipelineConfiguration
  ) throws -> any CopyVerification
}

/// A sink that computes formulas from its copy.
protocol FormulaSink: VerifyingSink {
  /// Begins to compare the formulas of an object with the org's values.
  ///
  /// - Parameter horizon: milliseconds since 1970; later changes are not judged.
  /// - Returns: nil for an object without formulas.
  func formulas(
    of entity: String, horizon: Int64, _ configuration: PipelineConfiguration
  ) throws -> (any FormulaVerification)?
}

/// A comparison of formulas in progress.
protocol FormulaVerification: AnyObject {
  /// API names of the formulas that can be compared.
  var fields: [String] { get }
  /// IDs of records chosen by chance.
  func sample(_ count: Int) throws -> [String]
  func compare(_ records: [FormulaRecord]) throws
  func findings(idLimit: Int) throws -> FormulaFindings
}

/// The parts of an object's records that are compared.
struct CopyScope {
  /// Milliseconds since 1970; later changes are not judged.
  var horizon: Int64
  /// Names of fields that are not compared.
  var excluded: Set<String> = []
  /// Names of fields that are not read, `Parent.Child` for a part of a compound.
  var unread: Set<String> = []
  /// `SystemModstamp` shows which records have changed, because no field of the copy does.
  var comparesStamps = false
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

/// Why records are read for a comparison.
enum CopyReading {
  /// All records of the object are read, in several batches.
  case all
  case sample
  /// These IDs of candidates were read again, and some were not found.
  case again(asked: [String], missing: [String], round: Int)
}

/// A comparison in progress. Records come in rows of the layout that it was begun with.
protocol CopyVerification: AnyObject {
  /// - Parameter omitted: records without a row.
  func take(_ batch: RecordBatch, omitted: [OmittedRecord], of reading: CopyReading) throws
  /// Forgets the records so far, because all are read again.
  func startOver() throws
  /// Called after all records.
  func finishPass() throws
  /// IDs of records chosen by chance.
  func sample(_ count: Int) throws -> [String]
  /// IDs of some of the records that still differed when they were last read.
  func candidates(inRound round: Int, after id: String, limit: Int) throws -> [String]
  func findings(idLimit: Int) throws -> CopyFindings
}

/// A comparison with a copy that was read once, when it began.
protocol StaleVerification: CopyVerification {
  /// Reads the copy of the candidates again. Called after the wait, before the records are read.
  func lookAgain() throws
}

/// A comparison with a copy whose records runs read again.
protocol RepairingVerification: CopyVerification {
  /// Has what differs read again by the next run.
  func noteForRepair() throws
}
