/// An object whose records a run reads beside the stream of its changes.
public struct ReadObject: Sendable {
  /// API name.
  public var entity: String
  /// Name of the topic that brings its events.
  public var topic: String
  /// The layout of the object's events by the current schema, before any stage; records come in its rows.
  public var layout: RecordLayout
  /// Names of the stores that get all records again, whatever was read before.
  public var anew: Set<String>
  /// Names of the stores that get all records if these were never read.
  public var initial: Set<String>
  /// An SOQL condition for the records of `anew`; nil selects all. With a condition there is no
  /// pass: no store keeps the progress, and records that it does not bring are not checked.
  public var condition: String?
  /// Whether records that are wrong in a store are read again.
  public var isRepaired: Bool
  /// Whether a column of the layout is read; nil: all are. Other columns are absent in the rows.
  public var reads: (@Sendable (Column) -> Bool)?

  public init(
    entity: String, topic: String, layout: RecordLayout, initial: Set<String> = [],
    anew: Set<String> = [], condition: String? = nil, isRepaired: Bool = false,
    reads: (@Sendable (Column) -> Bool)? = nil
  ) {
    self.entity = entity
    self.topic = topic
    self.layout = layout
    self.initial = initial
    self.anew = anew
    self.condition = condition
    self.isRepaired = isRepaired
    self.reads = reads
  }
}

/// What a reader has to tell; `object` is an index into its `objects`.
public enum ReadSignal {
  /// How far a pass has come, without records.
  case progress(object: Int, ReadPass)
  /// Records, in rows of the object's layout, and how far the pass has come with them.
  case records(object: Int, RecordBatch, ReadPass)
  /// Records requested by ID, in rows; missing ones were not found. `calls` counts the API calls
  /// for them and for earlier failures.
  case found(object: Int, store: Int, RecordBatch, missing: [String], calls: Int)
  /// Records could not be requested by ID; a later run can repair them. `calls` counts the API
  /// calls that were still made.
  case notAsked(object: Int, store: Int, SourceFailure, calls: Int)
  /// A record of a pass, or one requested for a store, cannot become a row.
  case unreadable(object: Int, store: Int?, UnreadableRecord)
  /// Something failed and is retried after `delay`.
  case retrying(object: Int, SourceFailure, delay: Duration)
  /// The pass cannot continue in this run.
  case failed(object: Int, SourceFailure)
}

/// A record that was read and cannot become a row.
public struct UnreadableRecord: Sendable, Equatable {
  /// Nil if the ID itself is the fault.
  public var recordID: String?
  /// `SystemModstamp`, milliseconds since 1970; nil when it is not usable.
  public var stamp: Int64?
  /// The reason, without values.
  public var reason: String

  public init(recordID: String?, stamp: Int64?, reason: String) {
    self.recordID = recordID
    self.stamp = stamp
    self.reason = reason
  }
}

/// Reads the records of objects from the org, beside the stream. Driven by the runner; reads in tasks
/// of its own, and no further ahead than it has memory for.
public protocol RecordReader: AnyObject {
  var objects: [ReadObject] { get }

  /// Continues a pass over an object.
  func begin(object: Int, _ pass: ReadPass)

  /// Requests records by ID, for one store.
  func read(object: Int, ids: [String], store: Int)

  /// The next signal; nil if there is none yet.
  func next() -> ReadSignal?

  /// A batch of records has been written; its memory may be used again.
  func recycle(_ batch: RecordBatch)
}

extension RecordReader {
  public func recycle(_ batch: RecordBatch) {}
}
