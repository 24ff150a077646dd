/// The findings of comparing a copy of one object with the org. Names and IDs, never values.
public struct CopyFindings: Sendable, Equatable {
  public struct Field: Sendable, Equatable {
    /// Dotted: `BillingAddress.City`.
    public var field: String
    public var count: Int
    /// IDs of some of the records.
    public var records: [String]

    public init(field: String, count: Int, records: [String] = []) {
      self.field = field
      self.count = count
      self.records = records
    }
  }

  /// A field that was not compared.
  public struct LeftOut: Sendable, Equatable {
    /// Dotted: `BillingAddress.City`.
    public var field: String
    public var reason: String

    public init(field: String, reason: String) {
      self.field = field
      self.reason = reason
    }
  }

  public var equal = 0
  /// Records with changes too recent to be judged.
  public var tooYoung = 0
  /// Known to be wrong: stale, partial, or waiting to be read again.
  public var marked = 0
  /// In the org, but not in the copy, or deleted there.
  public var missing = 0
  public var differing = 0
  /// Deleted in the org, but not in the copy.
  public var extra = 0
  /// In the copy, but not found in the org: purged, or not shared with the user.
  public var notFound = 0
  /// Cannot be compared, because a value cannot be read or encoded.
  public var unreadable = 0
  /// Randomly chosen records whose values were compared.
  public var sampled = 0
  public var fields: [Field] = []
  /// IDs of some of the records, by kind: `missing`, `differing`, `extra`, `not_found`.
  public var records: [String: [String]] = [:]
  public var notComparable: [LeftOut] = []

  public init() {}

  public enum Verdict: String, Sendable {
    case equal, drift
    /// There are records, but none of them could be judged.
    case notCompared = "not_compared"
  }

  public var verdict: Verdict {
    if self.missing + self.differing + self.extra + self.notFound > 0 { return .drift }
    let unjudged = self.tooYoung + self.marked + self.unreadable
    return self.compared == 0 && unjudged > 0 ? .notCompared : .equal
  }

  /// Records that were judged.
  public var compared: Int { self.equal + self.missing + self.differing }

  /// Counts records of one kind: `equal`, `young`, `marked`, `unreadable`, or a kind of drift.
  public mutating func add(_ count: Int, kind: String) {
    switch kind {
    case "equal": self.equal += count
    case "young": self.tooYoung += count
    case "marked": self.marked += count
    case "missing": self.missing += count
    case "differing": self.differing += count
    case "extra": self.extra += count
    case "not_found": self.notFound += count
    case "unreadable": self.unreadable += count
    default: break
    }
  }
}
