/// The findings of comparing a copy of one object with the org. Names and IDs, never values.
///
/// Every record of the org and every row of the copy is in exactly one of the classes, whose sum is
/// `total`.
package struct CopyFindings: Sendable, Equatable {
  package struct Field: Sendable, Equatable {
    /// Dotted: `BillingAddress.City`.
    package var field: String
    package var count: Int
    /// IDs of some of the records.
    package var records: [String]

    package init(field: String, count: Int, records: [String] = []) {
      self.field = field
      self.count = count
      self.records = records
    }
  }

  /// A field that was not compared.
  package struct LeftOut: Sendable, Equatable {
    /// Dotted: `BillingAddress.City`.
    package var field: String
    package var reason: String

    package init(field: String, reason: String) {
      self.field = field
      self.reason = reason
    }
  }

  // MARK: Classes

  package var equal = 0
  /// Records with changes too recent to be judged.
  package var tooYoung = 0
  /// Marked in the copy as stale or partial, or waiting to be read again.
  package var marked = 0
  /// In the org, but not in the copy, or deleted there.
  package var missing = 0
  package var differing = 0
  /// Deleted in the org, but not in the copy.
  package var extra = 0
  /// In the copy, but not found in the org: purged, or not shared with the user.
  package var notFound = 0
  /// Left out by a condition of a stage, and not in the copy.
  package var leftOut = 0
  /// In the copy, although a condition of a stage leaves the record out.
  package var outside = 0
  /// Refused by a stage.
  package var refused = 0
  /// A value cannot be read or stored.
  package var unreadable = 0
  /// Missing, or in the copy without reason, if a condition of a stage held that cannot be checked.
  package var undecided = 0
  /// Deleted in both since the records were read.
  package var gone = 0

  // MARK: Parts of classes

  /// The number of marked records that differ or are missing.
  package var outdated = 0
  /// The number of refused and unreadable records that the copy lacks.
  package var lacking = 0

  /// All records, counted apart from the classes.
  package var total = 0
  /// Records of the org that were taken.
  package var received = 0
  /// Randomly chosen records whose values were compared.
  package var sampled = 0
  package var fields: [Field] = []
  /// IDs of some of the records, by kind: `missing`, `differing`, `extra`, `not_found`, `outside`.
  package var records: [String: [String]] = [:]
  package var notComparable: [LeftOut] = []
  /// Columns of the copy that lack values of some records, because they are newer than the reads of
  /// the records.
  package var unfilled: [LeftOut] = []
  /// Why records were refused or could not be read or stored.
  package var omissions = OmissionReasons()

  package init() {}

  package enum Verdict: String, Sendable {
    case equal, drift
    /// There are records, but none of them could be judged.
    case notCompared = "not_compared"
    /// Nothing that was judged differs, but some of the rest differs or was not judged.
    case incomplete
  }

  package var verdict: Verdict {
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
  package var compared: Int { self.equal + self.missing + self.differing }

  /// The difference between the total and the sum of the classes; not 0 only if a record was lost
  /// on the way.
  package var uncounted: Int {
    let classes = [
      self.equal, self.tooYoung, self.marked, self.missing, self.differing, self.extra,
      self.notFound, self.leftOut, self.outside, self.refused, self.unreadable, self.undecided,
      self.gone,
    ]
    return self.total - classes.reduce(0, +)
  }

  /// Counts records of one kind. `outdated` is a part of `marked`; kinds that end in `_missing` are
  /// records that the copy lacks.
  package mutating func add(_ count: Int, kind: String) {
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
  package mutating func takeBack(undecidable reasons: [LeftOut]) {
    guard !reasons.isEmpty else { return }
    self.undecided += self.missing + self.outside
    (self.missing, self.outside) = (0, 0)
    for kind in ["missing", "outside"] { self.records[kind] = nil }
    self.notComparable += reasons
  }
}

/// Why records are not compared: each reason with a count and some IDs.
package struct OmissionReasons: Sendable, Equatable {
  package struct Reason: Sendable, Equatable {
    package var kind: OmittedRecord.Kind
    /// Without values.
    package var reason: String
    package var count: Int
    /// IDs of some of the records.
    package var records: [String]
  }

  /// In the order of their first record.
  package private(set) var all: [Reason] = []

  /// Reasons name columns and stages, so there are few; the rest is counted in one.
  private static let maxCount = 50
  private static let maxRecords = 1000

  package init() {}

  package mutating func add(_ record: OmittedRecord) {
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
