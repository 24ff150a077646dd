internal import Pipeline
internal import PostgresClient

/// A commit from its `seal` until its transaction is known to be committed: its content, and the
/// state of the attempts to send it, each in a transaction of its own.
struct SealedCommit {
  /// How the rows are sent, more carefully after each refusal.
  enum Care {
    /// All at once.
    case none
    /// In halves under savepoints, until each refused row is isolated.
    case savepoints
    /// Under savepoints with immediate checks of deferred constraints, because COMMIT refused and
    /// does not name the row.
    case immediateConstraints
  }

  /// A row, of an event or of a record that was read, that the database has refused.
  struct RefusedRow {
    var rows: PendingRows
    var index: Int
    var error: PostgresError
  }

  let content: OpenCommit
  /// Rows that are new or have changed because their records were read.
  var changedReadCount = 0
  /// Positions to be stored, JSON text.
  var topics = "{}"
  /// Milliseconds since 1970; nil if unknown for any topic.
  var completeThrough: Int64?
  /// The holes that the transaction notes.
  var holes: [MissingRanges.Hole] = []
  /// Events that could not be decoded.
  var undecodable: [DeadLetter] = []
  private(set) var care = Care.none
  /// The transaction has come to the checks that COMMIT would make.
  var isChecking = false
  /// Rows of events that the database has refused in the current transaction.
  var refusedRows: [RefusedRow] = []
  /// Rows whose letters the current transaction has marked together with them.
  var marked: Set<ObjectIdentifier> = []
  /// Rows of records that were read and that it has refused.
  var refusedReads: [RefusedRow] = []
  /// Refused events that `prepare` has reported.
  private var told: Set<EventPlace> = []
  /// COMMIT was sent and not answered.
  var isInDoubt = false

  init(_ content: OpenCommit) { self.content = content }

  /// Whether the rows come from dead letters: see `PostgresSink+Redriving`.
  var isRedriving: Bool { !self.content.redriven.isEmpty }

  /// Begins the transaction, again after a failed one.
  mutating func begin() {
    self.isChecking = false
    self.refusedRows.removeAll()
    self.refusedReads.removeAll()
    self.marked.removeAll()
  }

  /// Call this when a row of the transaction was refused.
  mutating func takeCare() {
    self.care = self.isChecking || self.care != .none ? .immediateConstraints : .savepoints
  }

  /// Refused events. Each appears once, however many of its rows were refused.
  func refused(by sink: String) -> [RefusedEvent] {
    var places: Set<EventPlace> = []
    let refusals = self.refusedRows.map { $0.rows.refusal(ofRow: $0.index, by: sink, $0.error) }
    return (self.content.refused + refusals).filter { places.insert(EventPlace($0)).inserted }
  }

  /// Refused events that `prepare` has not reported yet, and now reports.
  mutating func tellRefused(by sink: String) -> [RefusedEvent] {
    self.refused(by: sink).filter { self.told.insert(EventPlace($0)).inserted }
  }

  /// Whether `prepare` has reported all refused events.
  func hasToldRefused(by sink: String) -> Bool {
    self.refused(by: sink).allSatisfy { self.told.contains(EventPlace($0)) }
  }

  /// Whether the letters among some rows are marked together with these.
  func foldsGaps(of rows: PendingRows) -> Bool {
    self.care == .none && !self.isRedriving && !rows.sealed.gaps.isEmpty
      && rows.loader.takesGaps(of: rows.sealed)
  }

  /// Notes for `_etl_resync` about events without rows.
  ///
  /// - Parameter rows: the rows among which the events had their places.
  func letters(among rows: PendingRows) -> [ResyncTable.Entry] {
    self.content.letters.filter { $0.rows === rows }.map(\.entry)
      + self.refusedRows.filter { $0.rows === rows }.map { rows.deadLetter(ofRow: $0.index) }
  }

  /// Records that were read and have no row, by object: those that could not be encoded, and those
  /// that the database has refused.
  var unreadable: [String: [UnreadableRecord]] {
    self.refusedReads.reduce(into: self.content.unreadable) { unreadable, refused in
      let reads = refused.rows.sealedReads
      unreadable[refused.rows.entity, default: []].append(
        UnreadableRecord(
          recordID: reads.recordID(refused.index), stamp: reads.rows[refused.index].read?.stamp,
          reason: refused.error.message))
    }
  }
}
