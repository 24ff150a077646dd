import Checkpoint
import Clocks
import Pipeline

/// A sink from whose output the values of records can be erased.
///
/// `noteErased` comes first: from then on, no run writes values of the records. So an erasure that was
/// killed can be repeated until it is complete.
protocol ErasingSink: ConfiguredSink {
  /// The output in a few words, for people.
  var output: String { get }

  /// The records that were erased from the sink before.
  func erasedRecords(_ configuration: PipelineConfiguration) throws -> ErasedRecords

  /// The objects of which the sink has output.
  func objects(_ configuration: PipelineConfiguration) throws -> [String]

  /// The first characters of the IDs of an object's records, according to the output; nil if unknown.
  func keyPrefix(of entity: String, _ configuration: PipelineConfiguration) throws -> String?

  /// Says what `erase` would change. Takes no lock and changes nothing.
  func examine(_ erasure: ErasureRequest) throws -> ErasureResult

  /// Keeps later rows of the records from the sink. Durable on return.
  func noteErased(_ erasure: ErasureRequest) throws

  /// Clears the values. Durable on return; does nothing where that is done already.
  func erase(_ erasure: ErasureRequest) throws -> ErasureResult
}

/// What is to be erased.
struct ErasureRequest {
  var configuration: PipelineConfiguration
  var entity: String
  var records: [RecordID]
  /// The checkpoint; nil before the first run.
  var document: CheckpointDocument?
  /// Nil if nothing is changed.
  var owner: RunOwner?
  var clock: ProcessClock
}

/// What was erased from a sink, or would be.
struct ErasureResult: Equatable {
  struct Part: Equatable {
    /// A table or a file.
    var name: String
    /// Rows or lines.
    var count: Int
  }

  /// `row` or `line`.
  var unit: String
  var parts: [Part] = []
  /// What could not be searched or changed, as text.
  var faults: [String] = []
}
