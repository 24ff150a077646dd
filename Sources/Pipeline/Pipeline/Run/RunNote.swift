/// A step of a run, for logs. Not sent for each response or event.
package enum RunNote: Sendable {
  /// A topic is about to be read from a start point.
  case subscribing(topic: String, from: StartPoint, epoch: Int)
  /// Its subscription has been sent on a live connection.
  case opened(topic: String)
  /// The subscription has brought something new, or has answered for some time.
  case worked(topic: String)
  /// The topic's schemas have arrived after failed attempts.
  case schemasFetched(topic: String)
  /// The service refuses a topic, which is requested again after `retryAfter`; or, if nil, by the
  /// next run, while this one exports the others.
  case refused(topic: String, SourceFailure, retryAfter: Duration?)
  /// The stream of a topic was closed because a sink is unavailable; it will be reopened later.
  case heldBack(topic: String)
  /// A topic is caught up, by the given rule.
  case caughtUp(topic: String, rule: String)
  /// A topic is caught up, and the run waits for a keepalive, because it has not yet received a
  /// position to store, or the stored one has not been confirmed recently.
  case awaitsPosition(topic: String, isFirst: Bool, until: ContinuousClock.Instant)
  /// The records of an object will be read from that time on.
  case waitsToRead(entity: String, until: ContinuousClock.Instant)
  /// The records of an object are read, with a new or a continued job.
  case reading(ReadPass)
  /// Every record of an object has been read.
  case readAll(ReadPass)
  /// Wrong records of an object could not be read again.
  case notRepaired(entity: String, reason: String)
  /// A record that was read cannot become a row.
  case unreadable(entity: String, recordID: String?, reason: String)
  /// No more credit is added from here on.
  case stopping(RunOutcome)
}
