import JSON
import Pipeline

/// Prints a dry run on standard output: as text, or as one JSON object per event and one at the end.
final class DryRunOutput {
  enum Ending: String {
    case caughtUp = "caught_up"
    case eventsReached = "events_reached"
    case timeReached = "max_duration"
  }

  enum Form: Equatable {
    case json
    case text(isColored: Bool)
  }

  private let form: Form
  private let secrets: SecretMask
  private let write: (PrintableText) throws(RunFailure) -> Void
  /// Events that may be shown: a service that delivers more than it was asked for is not believed.
  private var count = 0
  /// Events shown.
  private(set) var events = 0
  /// Those of them that would be dead letters.
  private(set) var deadLetters = 0

  /// - Parameter write: where text goes; replaced in tests.
  init(
    _ form: Form, hiding secrets: SecretMask,
    write: @escaping (PrintableText) throws(RunFailure) -> Void = StandardStream.print
  ) {
    self.form = form
    self.secrets = secrets
    self.write = write
  }

  /// - Parameters:
  ///   - topics: with their starts, for those without a position.
  ///   - stored: positions that it begins after, by topic.
  ///   - count: events at most.
  ///   - allowance: nil when the org does not say.
  func begin(
    _ configuration: PipelineConfiguration, _ topics: [SourceTopic],
    stored: [String: TopicPosition], count: Int, allowance: OrgAllowance?
  ) throws {
    self.count = count
    guard case .text = self.form else { return }
    try self.print(
      "dry run of \(configuration.name): nothing is written, and the pipeline's position stays")
    for topic in topics {
      let place =
        stored[topic.name]?.resume.map { "after the stored position \($0)" }
        ?? topic.start.map { "from \($0.words)" }
      try self.print(topic.name + (place.map { ": \($0)" } ?? ""))
    }
    let quiet = Phrase.duration(configuration.run.quiet)
    try self.print(
      "ends after \(Phrase.count(count, "event")), or when nothing has come for \(quiet) "
        + "(run.quiet), twice as long for the first; "
        + (allowance?.text(mayUse: Int64(count))
          ?? "how many delivered events are left today is not known"))
  }

  func show(_ traces: [EventTrace]) throws {
    for trace in traces where self.events < self.count {
      self.events += 1
      if trace.isDeadLetter { self.deadLetters += 1 }
      switch self.form {
      case .json:
        try self.write(
          PrintableText(json: trace.json(number: self.events), .compact, hiding: self.secrets))
      case .text(let isColored):
        for line in trace.lines(number: self.events) {
          let text = PrintableText(line: line.text, hiding: self.secrets)
          try self.write(isColored ? line.color.map { text.colored($0) } ?? text : text)
        }
      }
    }
  }

  /// - Parameter allowance: before the first event was asked for.
  func end(_ ending: Ending, _ statistics: RunStatistics, allowance: OrgAllowance?) throws {
    let repeated = statistics.topics.reduce(0) { $0 + $1.repeated }
    guard case .text = self.form else {
      let summary: JSONValue = [
        "type": "summary", "ended_by": .string(ending.rawValue),
        "events": .integer(self.events), "max_events": .integer(self.count),
        "delivered": .integer(statistics.delivered), "already_exported": .integer(repeated),
        "dead_letters": .integer(self.deadLetters),
        "allowance": allowance.map {
          ["max": .integer($0.max), "remaining_before": .integer($0.remaining)]
        } ?? nil,
      ]
      return try self.write(PrintableText(json: summary, .compact, hiding: self.secrets))
    }
    if repeated > 0 {
      try self.print(
        "\(Phrase.count(repeated, "event")) more had been exported before and "
          + (repeated == 1 ? "is" : "are") + " not shown")
    }
    if self.events == 0 { try self.print("no event came") }
    if self.deadLetters > 0 {
      try self.print("\(Phrase.count(self.deadLetters, "event")) would be dead letters")
    }
    try self.print(
      "\(Phrase.count(statistics.delivered, "delivered event")) of this dry run "
        + (statistics.delivered == 1 ? "counts" : "count") + " against the org's daily allowance"
        + (allowance.map {
          ": \(ProgressLine.grouped($0.remaining)) of \(ProgressLine.grouped($0.max)) were left "
            + "before"
        } ?? ""))
  }

  private func print(_ line: String) throws {
    try self.write(PrintableText(line: line, hiding: self.secrets))
  }
}
