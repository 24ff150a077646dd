/// The progress of a pass over all records of an object, which a store keeps with its rows.
///
/// A pass begins when the positions of the stream are durable, so that everything before them can be
/// read and everything after them is streamed (RESTAndBulk.md#records-and-events).
package struct ReadPass: Sendable, Equatable {
  package enum State: String, Sendable {
    /// The positions are stored, and nothing has been requested yet.
    case begun
    /// Records are being read.
    case reading
    /// Every record has arrived.
    case complete
  }

  /// API name of the object.
  package var entity: String
  /// Identifies the columns of a pass that reads only some, or is `changes`; nil for a pass that
  /// reads everything.
  package var part: String?
  /// Counts the passes over the object, from 1.
  package var number: Int
  package var state: State
  /// The Bulk job whose rows are being taken; nil before the first job, and if pages are read
  /// instead.
  package var job: String?
  /// The locator of the current page; nil for the first.
  package var locator: String?
  /// Rows of that page that have been taken.
  package var row: Int
  /// Rows taken from all jobs of the pass; never decreases.
  package var rowCount: Int
  /// `rowCount` at the end of the job; nil before the job is complete.
  package var total: Int?
  /// When the pass began; nil if it has not.
  package var begunAt: ContinuousClock.Instant?
  /// When the job was posted, so no value is older; nil before that.
  package var requestedAt: ContinuousClock.Instant?
  /// The beginning of the read since which records have to have changed. Not stored, because every
  /// run knows it.
  package var since: ContinuousClock.Instant?
  /// Dotted names of the fields that a refresh reads. Not stored, because every run knows them.
  package var fields: Set<String>?

  package init(entity: String, part: String? = nil, number: Int, state: State = .begun) {
    self.entity = entity
    self.part = part
    self.number = number
    self.state = state
    self.row = 0
    self.rowCount = 0
  }

  /// Identifies the pass among those of a store: the object, which is one word, and the part.
  package var key: String { Self.key(entity: self.entity, part: self.part) }

  static func key(entity: String, part: String?) -> String {
    part.map { "\(entity) \($0)" } ?? entity
  }

  /// The beginning of the parts of passes over columns that rows lack.
  package static let fillingPrefix = "fields:"

  static func hash(_ fields: Set<String>) -> String {
    let hash = fields.sorted().joined(separator: ",").utf8.reduce(0xcbf2_9ce4_8422_2325) {
      (hash: UInt64, byte) in (hash ^ UInt64(byte)) &* 0x100_0000_01b3
    }
    return String(hash, radix: 16)
  }

  /// The part of a pass over all columns of the records that have changed.
  package static let changes = "changes"

  /// The key of passes over the changed records of an object.
  package static func changesKey(of entity: String) -> String {
    Self.key(entity: entity, part: Self.changes)
  }

  /// The object of a key.
  package static func entity(ofKey key: String) -> String {
    key.split(separator: " ", maxSplits: 1).first.map { String($0) } ?? key
  }

  /// Whether the pass reads only the records that have changed, and deleted ones with them.
  package var isOfChanges: Bool { self.part == Self.changes }

  /// Whether the pass reads fields that change without events.
  package var isRefresh: Bool { self.part?.hasPrefix(Refresh.partPrefix) == true }

  /// Whether the pass reads columns that rows lack.
  package var isFilling: Bool { self.part?.hasPrefix(Self.fillingPrefix) == true }

  /// Forgets a lost job, of which nothing can be used: all records will be requested again.
  package mutating func forgetJob() {
    self.job = nil
    self.locator = nil
    self.row = 0
    self.total = nil
    self.requestedAt = nil
  }

  /// Whether both have the same rows of the same job.
  func isSamePlace(as other: ReadPass) -> Bool {
    (self.number, self.state, self.job, self.locator, self.row, self.rowCount)
      == (other.number, other.state, other.job, other.locator, other.row, other.rowCount)
  }

  /// Whether a run can have stored these numbers; others come from a damaged checkpoint or table.
  /// More rows than the total are possible, because a job may return more than it announced, which
  /// is noticed at the end of a page.
  package var isPlausible: Bool {
    let counts = 0...1_000_000_000_000_000
    guard (1...1_000_000_000).contains(self.number), counts.contains(self.row),
      counts.contains(self.rowCount), self.row <= self.rowCount
    else { return false }
    return self.total.map { counts.contains($0) } ?? true
  }

  /// Whether rows up to here include those of another place of the pass.
  package func isAtLeast(_ other: ReadPass) -> Bool {
    if self.number != other.number { return self.number > other.number }
    if self.state == .complete || other.state == .complete { return self.state == .complete }
    return self.job == other.job && self.rowCount >= other.rowCount
  }
}
