internal import Bytes
internal import Checkpoint
import JSON
import Pipeline

/// What is kept of the last run: its report, beside the checkpoint.
///
/// Written once, at the end of a run. A run that was killed leaves none; that is noticed by the
/// lock file, which is newer then (`PipelineStatus`).
struct LastRun: Equatable {
  /// Commit times in Salesforce, in milliseconds since 1970.
  struct Changes: Equatable {
    var first: Int64
    var newest: Int64
  }

  var processID: Int32
  var startedAt: String
  /// As its texts say; nil if they cannot be read.
  var startedAtMilliseconds: Int64?
  var endedAtMilliseconds: Int64?
  var finishedAt: String
  var finishedAtMilliseconds: Int64
  var exitCode: Int32
  var reason: String
  var message: String?
  var events: Int64
  var topicsWithEvents: Set<String>
  /// Schemas that the service was asked for; nil for a run of an earlier version.
  var schemasFetched: Int64?
  /// Messages of what the run wanted somebody to look at.
  var attention: [String]
  /// It came closer to the end of the stream, and a limit ended it.
  var isProgress: Bool
  /// The changes of this run, of topics that have not been caught up.
  var changes: [Changes]
  /// The position that the service has stored for a managed subscription, as far as it said; nil without one.
  var managedReplayID: String?

  /// Replaces the record of the run before; a reader sees the old one or the new one.
  static func store(
    _ report: RunReport, processID: Int32, in paths: StatePaths, hiding secrets: SecretMask
  ) throws {
    let json: JSONValue = [
      "pid": .integer(processID), "finished_at_ms": .integer(report.finishedAt),
      "report": report.json,
    ]
    try paths.replace(paths.lastRun, with: json, hiding: secrets)
  }

  /// nil when no run has ended so far, or the file is not a record of one.
  static func load(_ paths: StatePaths) -> LastRun? {
    guard let text = try? TextFile.read(paths.lastRun),
      let json = try? JSONValue(parsing: text)
    else { return nil }
    return LastRun(json: json)
  }

  init?(json: JSONValue) {
    guard let report = json["report"], let processID = json["pid"]?.integer,
      let finished = json["finished_at_ms"]?.integer,
      let startedAt = report["started_at"]?.string, let finishedAt = report["finished_at"]?.string,
      let exitCode = report["exit_code"]?.integer, let reason = report["reason"]?.string
    else { return nil }
    self.processID = Int32(truncatingIfNeeded: processID)
    self.startedAt = startedAt
    self.startedAtMilliseconds = Self.time(report["started_at"])
    self.endedAtMilliseconds = Self.time(report["finished_at"])
    self.finishedAt = finishedAt
    self.finishedAtMilliseconds = finished
    self.exitCode = Int32(truncatingIfNeeded: exitCode)
    self.reason = reason
    self.message = report["message"]?.string
    let topics = report["topics"]?.array ?? []
    self.events = topics.reduce(0) { $0 &+ ($1["events"]?.integer ?? 0) }
    self.topicsWithEvents = Set(
      topics.filter { ($0["events"]?.integer ?? 0) > 0 }.compactMap { $0["topic"]?.string })
    self.isProgress = report["progress"]?.boolean == true
    self.changes = topics.compactMap { topic in
      guard topic["caught_up_by"]?.string == nil, let first = Self.time(topic["first_commit_at"]),
        let newest = Self.time(topic["newest_commit_at"]), first <= newest
      else { return nil }
      return Changes(first: first, newest: newest)
    }
    self.schemasFetched = report["schemas"]?["fetched"]?.integer
    self.managedReplayID = report["managed_subscription"]?["confirmed_replay_id"]?.string
    self.attention = (report["attention"]?.array ?? []).compactMap { $0["message"]?.string }
  }

  private static func time(_ json: JSONValue?) -> Int64? {
    (json?.string).flatMap { text in Array(text.utf8).withUnsafeBytes { UTCTime.timestamp($0) } }
  }
}
