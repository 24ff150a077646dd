/// The progress of a run.
struct ProgressSnapshot: Sendable, Equatable {
  var topics: [Topic] = []
  var sinks: [RunReport.Sink] = []
  /// Records read over REST and Bulk, in addition to the events; nil when none are.
  var records: Records?
  /// Records that this run has read.
  var recordsRead = 0
  /// The current wait before anything can arrive.
  var activity: String?
  var failure: Failure?

  var events: Int64 { self.topics.reduce(0) { $0 + $1.events } }
  var newestCommit: Int64? { self.topics.compactMap(\.newestCommit).max() }

  struct Topic: Sendable, Equatable {
    var name: String
    /// Committed events.
    var events: Int64 = 0
    /// Newest commit time, in milliseconds since 1970; nil before the first change event.
    var newestCommit: Int64?
    var state = State.reading
  }

  enum State: Sendable, Equatable {
    case reading
    /// Nothing has come for some time; after the time that is needed, the topic is caught up.
    case silent(Duration, needed: Duration)
    /// Caught up, but the run has to wait for proof that the position is still valid.
    case awaitingKeepalive
    case caughtUp
    /// The service refuses the topic.
    case refused
  }

  /// Totals of all objects whose records are being read.
  struct Records: Sendable, Equatable {
    var count: Int
    /// Nil before it is known of every object.
    var total: Int?
    /// Until the first are asked for; nil when they have been.
    var startIn: Duration?
    /// Until all have been read, at the rate so far; nil before there is one.
    var timeLeft: Duration?
  }

  /// An attempt to reach a service or database that failed and will be repeated.
  struct Failure: Sendable, Equatable {
    var message: String
    /// How many have failed in a row.
    var attempts: Int
    /// Until the next.
    var delay = Duration.zero
  }
}
