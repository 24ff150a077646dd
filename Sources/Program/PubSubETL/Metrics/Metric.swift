import Pipeline

/// A figure about a pipeline, as Prometheus collects it.
///
/// Declared once: both texts, the page Metrics.md and what is read back from a textfile follow from the
/// declaration.
struct Metric: Sendable {
  enum Kind: String, Sendable {
    case counter, gauge, histogram
  }

  enum Label: String, Sendable {
    case pipeline, topic, sink, store, phase, object, state, reason, kind, place, result
    case exitCode = "exit_code"
    case version
  }

  /// Where the metric is.
  enum Place: Sendable {
    case both
    /// Says something about this moment, or about this process.
    case endpoint
    /// Says something about runs that have ended.
    case textfile
  }

  /// Without the prefix `pubsub_etl_`. Units are base units, and the names of counters end in `_total`.
  var name: String
  var kind: Kind
  var labels: [Label]
  /// One sentence, without backslashes and line ends.
  var help: String
  var place: Place
  /// The upper bounds of a histogram's buckets, without counts.
  var buckets: TimeHistogram?

  var fullName: String { "pubsub_etl_\(self.name)" }

  /// The name of the family in OpenMetrics, where only the samples of a counter have the suffix.
  var familyName: String {
    self.kind == .counter ? String(self.fullName.dropLast("_total".utf8.count)) : self.fullName
  }

  /// In OpenMetrics; nil for a count.
  var unit: String? { ["seconds", "bytes"].first { self.familyName.hasSuffix("_\($0)") } }

  private init(
    _ kind: Kind, _ name: String, _ labels: [Label], _ help: String, in place: Place = .both,
    buckets: TimeHistogram? = nil
  ) {
    (self.name, self.kind, self.help, self.place) = (name, kind, help, place)
    (self.labels, self.buckets) = (labels, buckets)
  }
}

extension Metric {
  // MARK: Events

  static let delivered = Metric(
    .counter, "delivered_events_total", [.pipeline, .topic],
    "Events that the service delivered; they count against the org's daily allowance.")
  static let repeated = Metric(
    .counter, "repeated_events_total", [.pipeline, .topic],
    "Delivered events that had been delivered before, and were dropped.")
  static let events = Metric(
    .counter, "events_total", [.pipeline, .topic],
    "Events that are durable in every sink, or as dead letters.")
  static let rows = Metric(
    .counter, "rows_total", [.pipeline, .topic],
    "Rows of these events that the pipeline's stages let through.")
  static let rowsLeftOut = Metric(
    .counter, "rows_left_out_total", [.pipeline, .topic],
    "Rows of these events that the pipeline's stages removed.")
  static let deadLetters = Metric(
    .counter, "dead_letters_total", [.pipeline, .topic, .reason],
    "Events that became dead letters: undecodable, or refused by a sink or by its stages.")
  static let gapEvents = Metric(
    .counter, "gap_events_total", [.pipeline, .topic, .kind],
    "Gap, overflow and wildcard events, whose records have to be read again.")
  static let holes = Metric(
    .counter, "holes_total", [.pipeline, .topic],
    "Times that the stored replay ID was unusable and the stream began elsewhere.")
  static let keepalives = Metric(
    .counter, "keepalives_total", [.pipeline, .topic],
    "Responses without events.")
  static let reconnects = Metric(
    .counter, "reconnects_total", [.pipeline, .topic],
    "Streams opened after the first one of a run.")
  static let retries = Metric(
    .counter, "retries_total", [.pipeline, .place, .reason],
    "Failed attempts that were retried after a pause, by place and by the code of the error.")

  // MARK: Commits and sinks

  static let commits = Metric(
    .counter, "commits_total", [.pipeline], "Commits that every store has finished.")
  static let sinkRows = Metric(
    .counter, "sink_rows_total", [.pipeline, .sink],
    "Committed rows of events that stages and route let through to this sink.")
  static let sinkReadRows = Metric(
    .counter, "sink_read_rows_total", [.pipeline, .sink],
    "Committed rows of records that were read over REST or Bulk.")
  static let sinkBytes = Metric(
    .counter, "sink_bytes_total", [.pipeline, .sink],
    "Size of finished files, compressed, or of what went to standard output.")
  static let sinkFiles = Metric(
    .counter, "sink_files_total", [.pipeline, .sink], "Finished files.")
  static let storeSeconds = Metric(
    .counter, "store_seconds_total", [.pipeline, .store, .phase],
    "Time spent in calls of a store: the checkpoint with the sinks whose state it has, or a database."
  )
  static let lag = Metric(
    .histogram, "lag_seconds", [.pipeline, .topic],
    "Time from the commit in Salesforce, a whole second, until the event is durable; per change event.",
    buckets: .lag)
  static let processing = Metric(
    .histogram, "processing_seconds", [.pipeline, .topic],
    "Time from the arrival of an event until it is durable.", buckets: .processing)

  // MARK: Requests

  static let schemaFetches = Metric(
    .counter, "schema_fetches_total", [.pipeline], "Schemas that the service was asked for.")
  static let schemaCacheHits = Metric(
    .counter, "schema_cache_hits_total", [.pipeline],
    "Schemas that an earlier run of this state directory had fetched.")
  static let apiCalls = Metric(
    .counter, "api_calls_total", [.pipeline],
    "Calls of the org's REST and Bulk API; they count against the org's daily requests.")
  static let records = Metric(
    .counter, "records_total", [.pipeline, .result],
    "Records read over REST or Bulk: read in snapshots, repaired, not_found or unreadable.")
  static let allowanceLimit = Metric(
    .gauge, "allowance_limit_events", [.pipeline],
    "Events that the service delivers to all subscribers of the org in 24 hours.")
  static let allowanceLeft = Metric(
    .gauge, "allowance_left_events", [.pipeline],
    "How many of them were left when the org was last asked; negative if overspent.")

  // MARK: Positions

  static let positionConfirmed = Metric(
    .gauge, "position_confirmed_timestamp_seconds", [.pipeline, .topic],
    "When the stored position was last known to be retained by the service, which keeps it for 72 hours."
  )
  static let completeThrough = Metric(
    .gauge, "complete_through_timestamp_seconds", [.pipeline, .topic],
    "Every change committed in Salesforce before this time is exported.")
  static let newestCommit = Metric(
    .gauge, "newest_commit_timestamp_seconds", [.pipeline, .topic],
    "The newest commit time in Salesforce of an exported change.")
  static let lastCommit = Metric(
    .gauge, "last_commit_timestamp_seconds", [.pipeline],
    "When something, if only a position, last became durable.")

  static let incorrectRows = Metric(
    .gauge, "incorrect_rows", [.pipeline, .sink, .object, .state],
    "Rows of a database that are stale, partial or waiting to be read again, at the end of the last run "
      + "that could count them.", in: .textfile)

  // MARK: This moment

  static let creditPending = Metric(
    .gauge, "credit_pending_events", [.pipeline, .topic],
    "Events requested and not received, after the last response.", in: .endpoint)
  static let streamOpened = Metric(
    .gauge, "stream_opened_timestamp_seconds", [.pipeline, .topic],
    "When the open stream was opened; no sample while none is open.", in: .endpoint)
  static let waiting = Metric(
    .gauge, "waiting", [.pipeline, .place],
    "Number of things that fail at the moment and are retried.", in: .endpoint)

  // MARK: Runs

  static let runs = Metric(
    .counter, "runs_total", [.pipeline, .exitCode], "Runs that have ended, by exit code.",
    in: .textfile)
  static let lastRun = Metric(
    .gauge, "last_run_timestamp_seconds", [.pipeline], "When the last run ended.", in: .textfile)
  static let lastSuccess = Metric(
    .gauge, "last_success_timestamp_seconds", [.pipeline],
    "When the last run with exit code 0 ended.", in: .textfile)
  static let lastDuration = Metric(
    .gauge, "last_run_duration_seconds", [.pipeline], "How long the last run took.", in: .textfile)
  static let lastExitCode = Metric(
    .gauge, "last_run_exit_code", [.pipeline], "The exit code of the last run.", in: .textfile)
  static let buildInfo = Metric(
    .gauge, "build_info", [.version], "The program; the value is always 1.")

  /// In the order of the texts and of the page.
  static let all = [
    delivered, repeated, events, rows, rowsLeftOut, deadLetters, gapEvents, holes, keepalives,
    reconnects, retries, commits, sinkRows, sinkReadRows, sinkBytes, sinkFiles, storeSeconds, lag,
    processing, schemaFetches, schemaCacheHits, apiCalls, records, allowanceLimit, allowanceLeft,
    positionConfirmed, completeThrough, newestCommit, lastCommit, incorrectRows, creditPending,
    streamOpened, waiting, runs, lastRun, lastSuccess, lastDuration, lastExitCode, buildInfo,
  ]
}
