package import JSON

/// A stage between the decoder and the sinks.
///
/// To add one, write a file with one conforming type, its configuration, one line in
/// `TransformRegistry`, tests, and a page (WritingAStage.md).
package protocol Transform {
  /// The kind of stage, for messages.
  var kind: String { get }

  /// Whether the stage is one that the pipeline file names.
  var isConfigured: Bool { get }

  /// The columns that leave the stage for the columns that enter it. Called once for each layout.
  ///
  /// Throws `TransformError` for a mistake that the layout shows: two columns with the same name
  /// (naming both paths), or a required column that the schema does not have.
  func layout(for input: RecordLayout) throws -> RecordLayout

  /// Whether `apply` can take rows of a layout that this stage has made. False if its compiled plan
  /// was evicted; `layout(for:)` is then called again.
  func knows(_ output: RecordLayout) -> Bool

  /// Called once, before the first layout.
  func begin(_ run: RunValues)

  /// Changes rows in place, leaves rows out (`RecordBatch.keepRows`), or refuses events
  /// (`RecordBatch.refuse`). Stages that only arrange columns do nothing here; others say so with
  /// `changesRows`. The batch's layout is already the one this stage has made.
  ///
  /// Slots belong to the decoder's layout; those that this stage's layout has added after them
  /// (`RecordLayout.adding`) are absent. Bytes in the arena are shared by rows and never change;
  /// new text is appended, which may move the arena.
  ///
  /// Events come in stream order. An event is delivered again whenever the stream is read again for
  /// a store that lacks it, so the result must depend only on the event, the stage's configuration
  /// and its memory.
  func apply(to batch: RecordBatch) throws

  /// Whether `apply` changes anything.
  var changesRows: Bool { get }

  /// Whether the result for a column depends on other columns of the row.
  var readsAcrossColumns: Bool { get }

  /// The values that the stage hides from everything after it, in words: `hash Email, *Phone*`. Nil
  /// for a stage that hides nothing. Dead letters must not hold hidden values in clear.
  var hides: String? { get }

  /// The slots whose values the stage hides in rows of a layout that it has made.
  func maskedSlots(of output: RecordLayout) -> Set<Int>

  /// The columns that the stage hides, and why, for a layout that it has made.
  func maskedColumns(leading output: RecordLayout) -> [MaskedColumn]

  /// The classifications by which the stage selects columns; nil if the org need not be asked.
  var classificationSelector: ClassificationSelector? { get }

  /// Classifications that the configuration names and no field has, unless it accepts that.
  var unknownClassifications: [String] { get }

  /// The names of sinks that rows may go to, each once, in order; nil for a stage that does not decide
  /// that.
  var sinks: [String]? { get }

  /// Keeps the rows that the stage has sent to a sink; it runs before the sink's own stages.
  func filter(for sink: String) -> (any Transform)?

  /// Routes that no row of these objects can take, each with the reason.
  ///
  /// - Parameter entities: the objects of the pipeline's topics.
  func unreachableRoutes(among entities: [String]) -> [(rule: Int, reason: String)]

  /// Whether the stage leaves out some rows of a layout and keeps others.
  var leavesOutRows: Bool { get }

  /// The columns whose values decide where a row goes.
  var conditionNames: Set<String> { get }

  /// Whether rows of a layout that enters the stage may leave it. If false, sinks do not prepare
  /// for them, and what they hold of the object lacks its changes.
  func bringsRows(of input: RecordLayout) -> Bool

  /// By what the stage leaves out rows of a layout that it has made; nil if it leaves out none, or
  /// another stage decides.
  func condition(for output: RecordLayout) throws -> StageCondition?

  /// Columns that the configuration names; nil for a stage that names none.
  var namedColumns: NamedColumns? { get }

  /// The name under which `memory` is stored; nil for a stage that remembers nothing.
  var memoryName: String? { get }

  /// The stage's memory of the topic's events so far; nil for none. It is stored with the position
  /// after the last of them in every commit, so keep it small.
  func memory(ofTopic topic: String) -> JSONValue?

  /// Restores the memory that was stored with the position from which the topic's stream resumes.
  ///
  /// - Throws: `TransformError` for a value that the stage cannot have stored.
  func recall(_ memory: JSONValue, ofTopic topic: String) throws
}

extension Transform {
  package var kind: String { "\(Self.self)" }
  package var isConfigured: Bool { false }
  package func knows(_ output: RecordLayout) -> Bool { true }
  package func begin(_ run: RunValues) {}
  package func apply(to batch: RecordBatch) throws {}
  package var changesRows: Bool { false }
  package var readsAcrossColumns: Bool { false }
  package var hides: String? { nil }
  package func maskedSlots(of output: RecordLayout) -> Set<Int> { [] }
  package func maskedColumns(leading output: RecordLayout) -> [MaskedColumn] { [] }
  package var classificationSelector: ClassificationSelector? { nil }
  package var unknownClassifications: [String] { [] }
  package var sinks: [String]? { nil }
  package func filter(for sink: String) -> (any Transform)? { nil }
  package func unreachableRoutes(among entities: [String]) -> [(rule: Int, reason: String)] { [] }
  package var leavesOutRows: Bool { false }
  package var conditionNames: Set<String> { [] }
  package func bringsRows(of input: RecordLayout) -> Bool { true }
  package func condition(for output: RecordLayout) throws -> StageCondition? { nil }
  package var namedColumns: NamedColumns? { nil }
  package var memoryName: String? { nil }
  package func memory(ofTopic topic: String) -> JSONValue? { nil }
  package func recall(_ memory: JSONValue, ofTopic topic: String) throws {}
}

/// By what a stage decides which rows it keeps.
package struct StageCondition: Sendable {
  /// The slots that it reads.
  package var slots: Set<Int>
  /// It drops records that were read, because how they were changed is not known.
  package var dropsReads: Bool

  package init(slots: Set<Int>, dropsReads: Bool) {
    self.slots = slots
    self.dropsReads = dropsReads
  }
}

/// The memory of stages, by `sink/stage`, or by `stage` for stages of the whole pipeline; a second
/// stage with the same name is `stage#2`.
package typealias StageMemory = [String: JSONValue]
