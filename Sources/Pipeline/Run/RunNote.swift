/// A step of a run, for whoever watches it. Not one per response or event.
public enum RunNote: Sendable {
  /// A topic is about to be read from there.
  case subscribing(topic: String, from: StartPoint, epoch: Int)
  /// Its subscription has been sent on a live connection.
  case opened(topic: String)
  /// The first response to it has come.
  case answered(topic: String)
  /// Its schemas have come, after attempts that failed.
  case schemasFetched(topic: String)
  /// The service refuses a topic; the others go on. It is asked again after a time, or, if nil, by the
  /// next run.
  case refused(topic: String, SourceFailure, retryAfter: Duration?)
  /// The stream of a topic was closed because a sink is waited for, and is opened again later.
  case heldBack(topic: String)
  /// By which rule.
  case caughtUp(topic: String, rule: String)
  /// A topic is caught up, and the run waits for a keepalive, because it has not received a position
  /// to store yet, or the stored one has not been confirmed lately.
  case awaitsPosition(topic: String, isFirst: Bool, until: ContinuousClock.Instant)
  /// The records of an object are read from then on.
  case waitsToRead(entity: String, until: ContinuousClock.Instant)
  /// The records of an object are read, by a job that was posted or is gone on with.
  case reading(ReadPass)
  /// Every record of an object has been read.
  case readAll(entity: String, rows: Int)
  /// Records of an object that are not right could not be read again.
  case notRepaired(entity: String, reason: String)
  /// A record that was read cannot become a row.
  case unreadable(entity: String, recordID: String?, reason: String)
  /// No more credit is added from here on.
  case stopping(RunOutcome)
}
