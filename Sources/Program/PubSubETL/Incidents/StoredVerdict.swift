internal import Checkpoint
import JSON
internal import Pipeline

/// What the last `verify` of the complete copy has found, beside the checkpoint: a run may have the lock of
/// the pipeline meanwhile, so that run or the next one notifies.
struct StoredVerdict: Equatable {
  var isDrift: Bool
  /// 0: which records there are, and when they were changed; 1: values of a sample, too; 2: all values.
  var depth: Int64
  /// What differs, and what to do.
  var message: String

  /// - Returns: nil if the report does not decide: it is not about everything, or not complete.
  init?(_ report: VerifyReport, isComplete: Bool) {
    self.depth =
      switch report.depth {
      case .records: 0
      case .sample: 1
      case .full: 2
      }
    switch report.verdict {
    case .equal where isComplete: (self.isDrift, self.message) = (false, "")
    case .drift:
      let names = report.entries.filter { $0.findings.verdict == .drift }.map(\.entity)
      self.isDrift = true
      // A shallow comparison would not find a difference of values.
      let command = self.depth > 0 ? "verify --full" : "verify"
      self.message =
        "the copy differs from the org in \(listing(Set(names).sorted())): '\(command)' lists the records, "
        + "and '\(command) --repair' corrects them"
    case .equal, .incomplete, .notCompared: return nil
    }
  }

  /// - Throws: `FileSystemError`.
  func store(in paths: StatePaths, hiding secrets: SecretMask) throws {
    let json: JSONValue = [
      "drift": .boolean(self.isDrift), "depth": .integer(self.depth),
      "message": .string(self.message),
    ]
    try paths.replace(paths.verdict, with: json, hiding: secrets)
  }

  /// - Returns: nil if nothing is known.
  static func load(_ paths: StatePaths) -> StoredVerdict? {
    guard let text = try? TextFile.read(paths.verdict, limit: 1 << 20),
      let json = try? JSONValue(parsing: text), let isDrift = json["drift"]?.boolean,
      let message = json["message"]?.string
    else { return nil }
    return StoredVerdict(isDrift: isDrift, depth: json["depth"]?.integer ?? 0, message: message)
  }

  private init(isDrift: Bool, depth: Int64, message: String) {
    (self.isDrift, self.depth, self.message) = (isDrift, depth, message)
  }

  /// Whether it says nothing against an earlier one: it has compared less, and found nothing.
  func isWeaker(than earlier: StoredVerdict) -> Bool {
    !self.isDrift && earlier.isDrift && self.depth < earlier.depth
  }
}
