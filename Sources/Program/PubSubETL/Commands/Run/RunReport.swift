internal import Bytes
import JSON
import Pipeline
import PubSubSource

/// What a run did, for the people and programs that watch it (`--report`).
struct RunReport: Sendable {
  struct Topic: Sendable, Equatable {
    /// The rule that said the topic is caught up (Architecture.md#caught-up).
    enum CaughtUpRule: String, Sendable {
      case keepalive
      case committedAfterStart = "committed_after_start"
      case quiet
      case supplyLimited = "supply_limited"
    }

    var topic: String
    /// Events made durable by this run.
    var events: Int64 = 0
    /// Lines or rows they made.
    var rows: Int64 = 0
    /// Rows that the pipeline's stages have left out.
    var rowsLeftOut: Int64 = 0
    /// Events the service delivered; they count against the org's allowance.
    var delivered: Int64 = 0
    /// Delivered events that had been delivered before, as after a crash, and were dropped.
    var redelivered: Int64 = 0
    /// Delivered events that were exported.
    var exported: Int64 = 0
    var firstReplayID: ReplayID?
    var lastReplayID: ReplayID?
    /// Why the service refused the topic when the run ended; nil if it did not.
    var refusal: String?
    /// Milliseconds since 1970; nil unless caught up.
    var completeThrough: Int64?
    var caughtUpBy: CaughtUpRule?
    /// Commit times in Salesforce of the first and the newest change of this run, in milliseconds since 1970;
    /// nil without a change.
    var firstCommit: Int64?
    var newestCommit: Int64?
    /// How often the stored position was unusable and the policy chose another one.
    var holes: Int64 = 0
    /// Milliseconds from the commit of the newest change in Salesforce until it was durable; nil
    /// without a change.
    var lag: Int64?
    /// The places of the next event at the beginning and the end of the run; nil if it read nothing.
    var begin: StreamPlace?
    var end: StreamPlace?

    init(topic: String) { self.topic = topic }
  }

  enum StartClock: String, Sendable {
    /// The `Date` header of the login's answer.
    case service
    case own
  }

  struct Sink: Sendable, Equatable {
    var name: String
    var type: String
    /// Absolute directory or name of the database.
    var target: String
    /// Committed rows of events that the stages and the route let through to this sink.
    var rows: Int64 = 0
    /// Rows of records that were read.
    var rowsRead: Int64 = 0
    /// Rows of a table that these reads have added or changed.
    var rowsChanged: Int64 = 0
    /// Bytes written, compressed.
    var bytes: Int64 = 0
    /// Files finished.
    var files = 0
    /// Files in progress, which a report does not show: at the end of a run there are none.
    var unfinished = Unfinished()
    /// What the lines on a terminal count.
    var counted = Unit.files

    struct Unfinished: Sendable, Equatable {
      var files = 0
      /// Written so far, compressed.
      var bytes: Int64 = 0
    }

    enum Unit: Sendable, Equatable {
      case files
      /// - Parameter place: such as `in PostgreSQL`.
      case rows(place: String)
      case nothing
    }
  }

  /// Rows of each kind of place that rows went to; of several sinks of a kind the most.
  var rowsByPlace: [(count: Int64, place: String)] {
    var found: [(count: Int64, place: String)] = []
    for sink in self.sinks {
      guard case .rows(let place) = sink.counted else { continue }
      if let known = found.firstIndex(where: { $0.place == place }) {
        found[known].count = max(found[known].count, sink.rows + sink.rowsChanged)
      } else {
        found.append((sink.rows + sink.rowsChanged, place))
      }
    }
    return found
  }

  /// Something a successful run wants somebody to look at.
  struct Attention: Sendable, Equatable {
    var kind: RunConfiguration.Attention
    var topic: String?
    /// What it is and what to do.
    var message: String
  }

  /// Names the run in the ledger and in databases.
  var runID = RunID()
  var pipeline: String
  /// Absolute path of the pipeline file.
  var file: String
  /// Milliseconds since 1970.
  var startedAt: Int64
  var finishedAt: Int64
  var exitCode: ExitCode
  /// Why the run ended, in one stable word: `caught_up`, `signal`, `quota`, …
  var reason: String
  /// The error in words; nil after a success.
  var message: String?
  /// The clock by which the run began, for `committed_after_start`.
  var startClock = StartClock.own
  /// How often every sink had stored what it had taken.
  var commits: Int64 = 0
  var topics: [Topic] = []
  var sinks: [Sink] = []
  var deadLetters: Int64 = 0
  var deadLetterDirectory: String?
  var gaps: Int64 = 0
  var records = Records()
  var schemas = Schemas()
  /// What the org said before the first fetch; nil when it did not.
  var allowance: OrgAllowance?

  /// Schemas that the run needed, by where they came from.
  struct Schemas: Sendable, Equatable {
    /// The service was asked.
    var fetched: Int64 = 0
    /// Earlier runs had them.
    var cached: Int64 = 0
  }

  /// Records that were read over REST and Bulk, beside the streams.
  struct Records: Sendable, Equatable {
    struct Object: Sendable, Equatable {
      var entity: String
      /// Rows of all runs of the snapshot.
      var rows: Int
      /// Nil before it is known.
      var total: Int?
      var isComplete: Bool
    }

    /// Records that this run has read in snapshots.
    var read: Int64 = 0
    var repaired: Int64 = 0
    var notFound: Int64 = 0
    var unreadable: Int64 = 0
    var apiCalls: Int64 = 0
    /// Snapshots that the run has gone on with.
    var objects: [Object] = []
  }

  /// What failed for the moment and was tried again.
  var retries = RetryLedger()

  var attention: [Attention] = []

  /// The managed subscription; nil without one.
  var managed: ManagedProgress?

  /// Makes a failure of a success with something of these kinds to look at, as `run.fail_on` asks.
  ///
  /// - Returns: why, and what to do; nil when the exit code stays.
  @discardableResult
  mutating func fail(on kinds: Set<RunConfiguration.Attention>) -> String? {
    let causes = self.attention.filter { kinds.contains($0.kind) }
    guard self.exitCode == .success, let first = causes.first else { return nil }
    let sentences = causes.map { ($0.topic.map { "\($0): " } ?? "") + $0.message }
    let message =
      "everything that arrived is exported, but run.fail_on has \"\(first.kind.rawValue)\": "
      + sentences.joined(separator: "; ")
    self.exitCode = .data
    self.message = message
    return message
  }

  /// All members in a fixed order; what is not known is null.
  var json: JSONValue {
    func time(_ milliseconds: Int64?) -> JSONValue {
      milliseconds.map { .string(UTCTime.timestamp(milliseconds: $0)) } ?? nil
    }
    func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? nil }
    let topics = self.topics.map { topic -> JSONValue in
      [
        "topic": .string(topic.topic),
        "events": .integer(topic.events),
        "rows": .integer(topic.rows),
        "rows_left_out": .integer(topic.rowsLeftOut),
        "delivered": .integer(topic.delivered),
        "redelivered": .integer(topic.redelivered),
        "exported": .integer(topic.exported),
        "first_replay_id": text(topic.firstReplayID?.hex),
        "last_replay_id": text(topic.lastReplayID?.hex),
        "complete_through": time(topic.completeThrough),
        "caught_up_by": text(topic.caughtUpBy?.rawValue),
        "first_commit_at": time(topic.firstCommit),
        "newest_commit_at": time(topic.newestCommit),
        "refused": text(topic.refusal),
      ]
    }
    let sinks = self.sinks.map { sink -> JSONValue in
      [
        "name": .string(sink.name), "type": .string(sink.type), "target": .string(sink.target),
        "rows": .integer(sink.rows), "rows_read": .integer(sink.rowsRead),
        "bytes": .integer(sink.bytes),
        "files": .integer(sink.files),
      ]
    }
    let attention = self.attention.map { attention -> JSONValue in
      [
        "kind": .string(attention.kind.rawValue), "topic": text(attention.topic),
        "message": .string(attention.message),
      ]
    }
    return [
      // `isReport` recognizes reports by some of these names.
      "run_id": .string(self.runID.text),
      "pipeline": .string(self.pipeline),
      "file": .string(self.file),
      "version": .string(Program.version),
      "started_at": time(self.startedAt),
      "finished_at": time(self.finishedAt),
      "exit_code": .integer(self.exitCode.rawValue),
      "reason": .string(self.reason),
      "message": text(self.message),
      "progress": .boolean(self.isProgress),
      "start_clock": .string(self.startClock.rawValue),
      "commits": .integer(self.commits),
      "topics": .array(topics),
      "sinks": .array(sinks),
      "dead_letters": [
        "count": .integer(self.deadLetters), "directory": text(self.deadLetterDirectory),
      ],
      "gaps": .integer(self.gaps),
      "records": [
        "read": .integer(self.records.read), "repaired": .integer(self.records.repaired),
        "not_found": .integer(self.records.notFound),
        "unreadable": .integer(self.records.unreadable),
        "api_calls": .integer(self.records.apiCalls),
        "snapshots": .array(
          self.records.objects.map { object in
            [
              "object": .string(object.entity), "rows": .integer(object.rows),
              "total": object.total.map { .integer($0) } ?? nil,
              "complete": .boolean(object.isComplete),
            ]
          }),
      ],
      "schemas": [
        "fetched": .integer(self.schemas.fetched), "from_cache": .integer(self.schemas.cached),
      ],
      "allowance": self.allowance.map { allowance -> JSONValue in
        [
          "max": .integer(allowance.max), "remaining": .integer(allowance.remaining),
          "used": .integer(self.topics.reduce(0) { $0 + $1.delivered }),
        ]
      } ?? nil,
      "retries": [
        "count": .integer(
          self.retries.entries.reduce(self.retries.otherCount) { $0 + $1.count }),
        "errors": .array(self.retries.entries.map(\.json)),
      ],
      "attention": .array(attention),
      "managed_subscription": self.managed.map { managed -> JSONValue in
        [
          "name": .string(managed.subscription),
          "confirmed_replay_id": text(managed.stored?.hex),
          "commits_confirmed": .integer(managed.confirmedCount),
          "commits_failed": .integer(managed.failedCount),
          "detours": .integer(managed.detourCount),
        ]
      } ?? nil,
    ]
  }

  /// Whether a text is a report that some version of this program wrote.
  static func isReport(_ text: [UInt8]) -> Bool {
    guard let json = try? JSONValue(parsing: text) else { return false }
    return json["pipeline"]?.string != nil && json["started_at"]?.string != nil
      && json["exit_code"]?.integer != nil && json["reason"]?.string != nil
      && json["topics"]?.array != nil
  }
}
