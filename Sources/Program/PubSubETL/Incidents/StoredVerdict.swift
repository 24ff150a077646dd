internal import Checkpoint
internal import DurableFiles
import JSON
internal import Pipeline

/// What the last `verify` of the complete copy has found, beside the checkpoint: a run may have the lock of
/// the pipeline meanwhile, so the run or the next one tells about it.
struct StoredVerdict: Equatable {
  var isDrift: Bool
  /// What differs, and what to do.
  var message: String

  /// - Returns: nil if the report does not decide: it is not about everything, or not complete.
  init?(_ report: VerifyReport, isComplete: Bool) {
    switch report.verdict {
    case .equal where isComplete: (self.isDrift, self.message) = (false, "")
    case .drift:
      let names = report.entries.filter { $0.findings.verdict == .drift }.map(\.entity)
      self.isDrift = true
      self.message =
        "the copy differs from the org in \(listing(Set(names).sorted())): 'verify' lists the records, "
        + "and 'verify --repair' corrects them"
    case .equal, .incomplete, .notCompared: return nil
    }
  }

  /// - Throws: `FileSystemError`.
  func store(in paths: StatePaths, hiding secrets: SecretMask) throws {
    let json: JSONValue = [
      "drift": .boolean(self.isDrift), "message": .string(self.message),
    ]
    let temporary = "\(paths.directory)/.\(paths.pipeline).verdict.json.tmp"
    let fileSystem = SystemFileSystem()
    let file = try OpenFile(temporary: temporary, on: fileSystem)
    try file.write(Array(PrintableText(json: json, hiding: secrets).text.utf8))
    try file.synchronize()
    try fileSystem.rename(temporary, to: paths.verdict)
  }

  /// - Returns: nil if nothing is known.
  static func load(_ paths: StatePaths) -> StoredVerdict? {
    guard let text = try? TextFile.read(paths.verdict, limit: 1 << 20),
      let json = try? JSONValue(parsing: text), let isDrift = json["drift"]?.boolean,
      let message = json["message"]?.string
    else { return nil }
    return StoredVerdict(isDrift: isDrift, message: message)
  }

  private init(isDrift: Bool, message: String) {
    (self.isDrift, self.message) = (isDrift, message)
  }
}
