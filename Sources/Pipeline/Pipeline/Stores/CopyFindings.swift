/// The findings of comparing a copy of one object with the org. Names and IDs, never values.
///
/// Every record of the org and every row of the copy is in exactly one of the classes, whose sum is
/// `total`.
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

  // MARK: Classes

  public var equal = 0
  /// Records with changes too recent to be judged.
  public var tooYoung = 0
  /// Marked in the copy as stale or partial, or waiting to be read again.
  public var marked = 0
  /// In the org, but not in the copy, or deleted there.
  public var missing = 0
  public var differing = 0
  /// Deleted in the org, but not in the copy.
  public var extra = 0
  /// In the copy, but not found in the org: purged, or not shared with the user.
  public var notFound = 0
  /// Left out by a condition of a stage, and not in the copy.
  public var leftOut = 0
  /// In the copy, although a condition of a stage leaves the record out.
  public var outside = 0
  /// Refused by a stage.
  public var refused = 0
  /// A value cannot be read or stored.
  public var unreadable = 0
  /// Missing, or in the copy without reason, if a condition of a stage held that cannot be checked.
  public var undecided = 0
  /// Deleted in both since the records were read.
  public var gone = 0

  // MARK: Parts of classes

  /// The number of marked records that differ or are missing.
  public var outdated = 0
  /// The number of refused and unreadable records that the copy lacks.
  public var lacking = 0

  /// All records, counted apart from the classes.
  public var total = 0
  /// Records of the org that were taken.
  public var received = 0
  /// Randomly chosen records whose values were compared.
  public var sampled = 0
  public var fields: [Field] = []
  /// IDs of some of the records, by kind: `missing`, `differing`, `extra`, `not_found`, `outside`.
  public var records: [String: [String]] = [:]
  public var notComparable: [LeftOut] = []
  /// Columns of the copy that lack values of some records, because they are newer than the reads of
  /// the records.
  public var unfilled: [LeftOut] = []
  /// Why records were refused or could not be read or stored.
  public var omissions = OmissionReasons()

  public init() {}

  public enum Verdict: String, Sendable {
    case equal, drift
    /// There are records, but none of them could be judged.
    case notCompared = "not_compared"
    /// Nothing that was judged differs, but some of the rest differs or was not judged.
    case incomplete
  }

  public var verdict: Verdict {
    let drift =
      self.missing + self.differing + self.extra + self.notFound + self.outside + self.lacking
    if drift > 0 { return .drift }
    let unjudged =
      self.tooYoung + self.marked + self.refused + self.unreadable + self.undecided
    if self.compared == 0, unjudged > 0 { return .notCompared }
    let open = self.outdated + self.refused + self.unreadable + self.undecided
    return open > 0 || self.uncounted != 0 || !self.unfilled.isEmpty ? .incomplete : .equal
  }

  /// Records that were judged.
  public var compared: Int { self.equal + self.missing + self.differing }

  /// The difference between the total and the sum of the classes; not 0 only if a record was lost
  /// on the way.
  public var uncounted: Int {
    let classes = [
      self.equal, self.tooYoung, self.marked, self.missing, self.differing, self.extra,
      self.notFound, self.leftOut, self.outside, self.refused, self.unreadable, self.undecided,
      self.gone,
    ]
    return self.total - classes.reduce(0, +)
  }

  /// Counts records of one kind. `outdated` is a part of `marked`; kinds that end in `_missing` are
  /// records that the copy lacks.
  public mutating func add(_ count: Int, kind: String) {
    switch kind {
    case "equal": self.equal += count
    case "young": self.tooYoung += count
    case "marked": self.marked += count
    case "outdated":
      self.marked += count
      self.outdated += count
    case "missing": self.missing += count
    case "differing": self.differing += count
    case "extra": self.extra += count
    case "not_found": self.notFound += count
    case "left_out": self.leftOut += count
    case "outside": self.outside += count
    case "refused": self.refused += count
    case "refused_missing":
      self.refused += count
      self.lacking += count
    case "unreadable": self.unreadable += count
    case "unreadable_missing":
      self.unreadable += count
      self.lacking += count
    case "gone": self.gone += count
    default: break
    }
  }

  /// Calls undecided what depends on conditions of stages that cannot be checked.
  ///
  /// - Parameter reasons: what cannot be checked; empty if everything can.
  public mutating func takeBack(undecidable reasons: [LeftOut]) {
    guard !reasons.isEmpty else { return }
    self.undecided += self.missing + self.outside
    (self.missing, self.outside) = (0, 0)
    for kind in ["missing", "outside"] { self.records[kind] = nil }
    self.notComparable += reasons
  }
}

/// Why records are not compared: each reason with a count and some IDs.
public struct OmissionReasons: Sendable, Equatable {
  public struct Reason: Sendable, Equatable {
    public var kind: OmittedRecord.Kind
    /// Without values.
    public var reason: String
    public var count: Int
    /// IDs of some of the records.
    public var records: [String]
  }

  /// In the order of their first record.
  public private(set) var all: [Reason] = []

  /// Reasons name columns and stages, so there are few; the rest is counted in one.
  private static let maxCount = 50
  private static let maxRecords = 1000

  public init() {}

  public mutating func add(_ record: OmittedRecord) {
    guard record.kind != .leftOut else { return }
    let isFull = self.all.count >= Self.maxCount
    var index = self.all.firstIndex { $0.kind == record.kind && $0.reason == record.reason }
    if index == nil, isFull { index = self.all.count - 1 }
    let place = index ?? self.all.count
    if index == nil {
      let reason = self.all.count == Self.maxCount - 1 ? "other reasons" : record.reason
      self.all.append(Reason(kind: record.kind, reason: reason, count: 0, records: []))
    }
    self.all[place].count += 1
    if let id = record.recordID, self.all[place].records.count < Self.maxRecords {
      self.all[place].records.append(id)
    }
  }
}
