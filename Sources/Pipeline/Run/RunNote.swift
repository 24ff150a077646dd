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
  /// By which rule.
  case caughtUp(topic: String, rule: String)
  /// No more credit is added from here on.
  case stopping(RunOutcome)
}
