/// The progress of a pass over all records of an object, which a store keeps with its rows.
///
/// A pass begins when the positions of the stream are durable, so that everything before them can be
/// read and everything after them is streamed (RESTAndBulk.md#records-and-events).
public struct ReadPass: Sendable, Equatable {
  public enum State: String, Sendable {
    /// The positions are stored, and nothing has been requested yet.
    case begun
    /// Records are being read.
    case reading
    /// Every record has arrived.
    case complete
  }

  /// API name of the object.
  public var entity: String
  /// Identifies the columns of a pass that reads only some; nil for one that reads all.
  public var part: String?
  /// Counts the passes over the object, from 1.
  public var number: Int
  public var state: State
  /// The Bulk job whose rows are being taken; nil before the first job, and if pages are read
  /// instead.
  public var job: String?
  /// The locator of the current page; nil for the first.
  public var locator: String?
  /// Rows of that page that have been taken.
  public var row: Int
  /// Rows taken from all jobs of the pass; never decreases.
  public var rowCount: Int
  /// `rowCount` at the end of the job; nil before the job is complete.
  public var total: Int?
  /// When the pass began; nil if it has not.
  public var begunAt: ContinuousClock.Instant?
  /// When the job was posted, so no value is older; nil before that.
  public var requestedAt: ContinuousClock.Instant?

  public init(entity: String, part: String? = nil, number: Int, state: State = .begun) {
    self.entity = entity
    self.part = part
    self.number = number
    self.state = state
    self.row = 0
    self.rowCount = 0
  }

  /// Identifies the pass among those of a store: the object, which is one word, and the part.
  public var key: String { Self.key(entity: self.entity, part: self.part) }

  static func key(entity: String, part: String?) -> String {
    part.map { "\(entity) \($0)" } ?? entity
  }

  /// Forgets a lost job, of which nothing can be used: all records will be requested again.
  public mutating func forgetJob() {
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
  public var isPlausible: Bool {
    let counts = 0...1_000_000_000_000_000
    guard (1...1_000_000_000).contains(self.number), counts.contains(self.row),
      counts.contains(self.rowCount), self.row <= self.rowCount
    else { return false }
    return self.total.map { counts.contains($0) } ?? true
  }

  /// Whether rows up to here include those of another place of the pass.
  public func isAtLeast(_ other: ReadPass) -> Bool {
    if self.number != other.number { return self.number > other.number }
    if self.state == .complete || other.state == .complete { return self.state == .complete }
    return self.job == other.job && self.rowCount >= other.rowCount
  }
}
