/// An object whose records a run reads in addition to the stream of its changes.
package struct ReadObject: Sendable {
  /// API name.
  package var entity: String
  /// The name of the topic with its events.
  package var topic: String
  /// The layout of the object's events in the current schema, before any stage. Records are rows of
  /// it.
  package var layout: RecordLayout
  /// Names of the stores that get all records again, whatever was read before.
  package var anew: Set<String>
  /// Names of the stores that get all records if they have never been read.
  package var initial: Set<String>
  /// An SOQL condition for the records of `anew`; nil selects all. With a condition there is no
  /// pass: no store keeps the progress, and records that do not match are not checked.
  package var condition: String?
  /// An SOQL condition that limits passes over all fields; nil reads all records. Records that do
  /// not meet it are read only by their IDs, and to fill columns that their rows lack.
  package var scope: String?
  /// The copy has the records that meet `scope` and no others: one that is read by its ID and does
  /// not meet it becomes a row that says that the record is deleted.
  package var isSubset = false
  /// Whether records that are wrong in a store are read again.
  package var isRepaired: Bool
  /// Dotted names of the only fields to read, for columns that rows lack; nil reads all.
  package var filling: Set<String>?
  /// Whether to read a column of the layout; nil reads all. Columns not read are absent in the
  /// rows.
  package var reads: (@Sendable (Column) -> Bool)?
  /// Set for an object whose changes no topic of the run delivers. `topic` is then the name that its
  /// change events would have, and `initial` names every store that gets the records.
  package var poll: PollSchedule?
  /// Set for fields that are read again and again because they change without events. `initial` then
  /// names every store that gets them.
  package var refresh: Refresh?

  package init(
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

  /// Identifies the fields of `filling` or `refresh`; nil for all.
  var part: String? {
    self.refresh?.part ?? self.filling.map { ReadPass.fillingPrefix + ReadPass.hash($0) }
  }

  /// The key of the object's pass.
  package var passKey: String { ReadPass.key(entity: self.entity, part: self.part) }
}

/// A signal from a reader; `object` is an index into its `objects`.
package enum ReadSignal {
  /// The progress of a pass, without records.
  case progress(object: Int, ReadPass)
  /// Records, in rows of the object's layout, and the progress of the pass including them.
  case records(object: Int, RecordBatch, ReadPass)
  /// Records requested by ID, in rows; missing ones were not found. `calls` counts the API calls
  /// for them and for earlier failures.
  case found(object: Int, store: Int, RecordBatch, missing: [String], calls: Int)
  /// Records could not be requested by ID; a later run can repair them. `calls` counts the API
  /// calls that were still made.
  case notAsked(object: Int, store: Int, SourceFailure, calls: Int)
  /// A record of a pass, or one requested for a store, cannot become a row.
  case unreadable(object: Int, store: Int?, UnreadableRecord)
  /// A request failed and is retried after `delay`.
  case retrying(object: Int, SourceFailure, delay: Duration)
  /// The pass waits for something that can take long, described as in "waiting for …".
  case waiting(object: Int, String)
  /// The org is still working on a job of a pass, which has this many rows so far.
  case underWay(object: Int, job: String, recordCount: Int)
  /// The pass cannot continue in this run.
  case failed(object: Int, SourceFailure)
}

/// A record that was read and cannot become a row.
package struct UnreadableRecord: Sendable, Equatable {
  /// Nil if the ID itself is invalid.
  package var recordID: String?
  /// `SystemModstamp`, milliseconds since 1970; nil if unusable.
  package var stamp: Int64?
  /// The reason, without values.
  package var reason: String

  package init(recordID: String?, stamp: Int64?, reason: String) {
    self.recordID = recordID
    self.stamp = stamp
    self.reason = reason
  }
}

/// Reads the records of objects from the org, in addition to the stream. Driven by the runner;
/// reads in its own tasks, no further ahead than its memory allows.
package protocol RecordReader: AnyObject {
  var objects: [ReadObject] { get }

  /// Continues a pass over an object.
  func begin(object: Int, _ pass: ReadPass)

  /// Requests records by ID, for one store.
  func read(object: Int, ids: [String], store: Int)

  /// The next signal; nil if there is none yet.
  func next() -> ReadSignal?

  /// Returns a batch of records that has been written, so that its memory can be reused.
  func recycle(_ batch: RecordBatch)
}

extension RecordReader {
  package func recycle(_ batch: RecordBatch) {}
}
