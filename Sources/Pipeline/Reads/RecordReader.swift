/// An object whose records a run reads beside the stream of its changes.
public struct ReadObject: Sendable {
  /// API name.
  public var entity: String
  /// Name of the topic that brings its events.
  public var topic: String
  /// The layout of the object's events by the current schema, before any stage; records come in its rows.
  public var layout: RecordLayout
  /// Names of the stores in which all records are read anew, whatever was read before.
  public var anew: Set<String>
  /// Names of the stores in which all records are read if they never were.
  public var initial: Set<String>
  /// SOQL: of `anew`, the records to be read; nil: all. Then no pass is made: no store remembers how far
  /// the read has come, and nothing follows for records that it does not bring.
  public var condition: String?
  /// Records that a store does not have right are read again.
  public var isRepaired: Bool
  /// Whether a column of the layout is read; nil: all are. What is not read is absent in the rows.
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
  /// Records that were asked for by ID, in rows; the others were not found. `calls` were made for them,
  /// and for what failed before.
  case found(object: Int, store: Int, RecordBatch, missing: [String], calls: Int)
  /// Records could not be asked for by ID. What they wait for can wait for another run.
  /// `calls` were made all the same.
  case notAsked(object: Int, store: Int, SourceFailure, calls: Int)
  /// A record cannot become a row: of a pass, or one that was asked for for a store.
  case unreadable(object: Int, store: Int?, UnreadableRecord)
  /// Something failed and is tried again after `delay`.
  case retrying(object: Int, SourceFailure, delay: Duration)
  /// The pass cannot go on in this run.
  case failed(object: Int, SourceFailure)
}

/// A record that was read and cannot become a row.
public struct UnreadableRecord: Sendable, Equatable {
  /// Nil when that is what is wrong with it.
  public var recordID: String?
  /// `SystemModstamp`, milliseconds since 1970; nil when it is not usable.
  public var stamp: Int64?
  /// Why, without values.
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

  /// Goes on with a pass over an object from where it is.
  func begin(object: Int, _ pass: ReadPass)

  /// Asks for records by ID, for one store.
  func read(object: Int, ids: [String], store: Int)

  /// What has come; nil when there is nothing yet.
  func next() -> ReadSignal?

  /// A batch of records has been written; its memory may be used again.
  func recycle(_ batch: RecordBatch)
}

extension RecordReader {
  public func recycle(_ batch: RecordBatch) {}
}
