import FileSink
import HTTPClient
import JSON
import Pipeline

/// What a pipeline file means, in words, for `check`.
enum ConfigurationSummary {
  /// Lines of a label and a value, each ended. Paths are absolute, secrets do not occur. `stored` are
  /// the topics of which the checkpoint has a position.
  static func text(
    _ configuration: PipelineConfiguration, stored: Set<String> = []
  ) -> String {
    let org = configuration.source.org
    func way(to server: ServiceAddress) -> String {
      org.proxy.proxy(for: server).map { " by proxy \($0.endpoint)" } ?? ""
    }
    var lines: [(label: String, value: String)] = [
      ("pipeline", "\(configuration.name) (\(configuration.file))"),
      ("endpoint", org.endpoint.url + way(to: org.endpoint)),
    ]
    if let file = org.tls.caFile { lines.append(("trusts", file)) }
    if let identity = org.tls.identity { lines.append(("shows", identity.certificateFile)) }
    lines.append(("login", org.auth.summary + (org.auth.server.map(way) ?? "")))
    let hasTables = configuration.sinks.contains(where: \.keepsPosition)
    for topic in configuration.source.topics {
      let first =
        configuration.source.managed.map {
          "first run after the position of the managed subscription \($0)"
        } ?? Self.start(topic.start)
      lines.append(
        (
          "topic",
          topic.name + ", "
            + (stored.contains(topic.name)
              ? "continues after the stored position"
              : hasTables ? "continues after the database's position; \(first)" : first)
        ))
    }
    let mode = configuration.source.snapshot.mode
    if hasTables || mode == .initial {
      let objects = configuration.source.snapshotObjects.map(\.entity).joined(separator: ", ")
      lines.append(
        (
          "snapshot",
          mode == .never || objects.isEmpty
            ? "none"
            : objects + (mode == nil ? ", for tables that are new" : ", once")
        ))
      if hasTables { lines.append(("repair", configuration.repair.mode.rawValue)) }
    }
    let lookups = configuration.source.lookups
    if !lookups.objects.isEmpty {
      lines.append(
        (
          "lookups",
          "\(lookups.objects.joined(separator: ", ")), every \(Phrase.duration(lookups.every))"
        ))
    }
    if let refresh = configuration.source.refresh {
      let objects = configuration.source.refreshes.map(\.entity).joined(separator: ", ")
      lines.append(
        (
          "refresh",
          (refresh.fields == .blind ? "formulas and roll-ups" : "listed fields")
            + " of \(objects), every \(Phrase.duration(refresh.every))"
        ))
    }
    if let reserve = configuration.allowance.reserve {
      lines.append(("allowance", "\(reserve.text) of a day's delivered events are left for others"))
    }
    let stages = configuration.stages.typeNames
    if !stages.isEmpty { lines.append(("stages", stages)) }
    lines += Self.masks(configuration.stages, of: "").map { ("mask", $0) }
    for sink in configuration.sinks {
      lines.append(("sink", "\(sink.name): \(sink.summary)"))
      lines += Self.masks(sink.stages, of: " of sink '\(sink.name)'").map { ("mask", $0) }
    }
    lines.append(("checkpoint", configuration.checkpoint.directory))
    lines.append(("dead letters", Self.deadLetters(configuration.deadLetter)))
    lines.append(("until", Self.until(configuration.run.until)))
    return lines.map { Self.line($0.label, $0.value) + "\n" }.joined()
  }

  static func line(_ label: String, _ value: String) -> String {
    label + String(repeating: " ", count: max(1, 14 - label.count))
      + PrintableText.withoutLineEnds(value)
  }

  /// `stages[1]: redact Email, *Phone and what the org classifies as compliance PII`
  private static func masks(_ stages: [StageConfiguration], of sink: String) -> [String] {
    stages.enumerated().compactMap { index, stage in
      stage.transform().hides.map { "stages[\(index)]\(sink): \($0)" }
    }
  }

  private static func deadLetters(_ letters: DeadLetterConfiguration) -> String {
    let payload =
      switch letters.payload {
      case .full: "with the payload"
      case .sealed: "with the payload sealed"
      case .none: "without payload"
      }
    var limits: [String] = []
    if let max = letters.max { limits.append("at most \(max)") }
    if let ratio = letters.maxRatio { limits.append("at most \(ratio) of the events") }
    return "\(letters.directory), \(payload), "
      + (limits.isEmpty ? "any number" : limits.joined(separator: " and ")) + " in a run"
  }

  private static func start(_ start: StartPosition?) -> String {
    switch start {
    case .earliest: "first run from the earliest event kept"
    case .latest: "first run from now on"
    case .replayID(let id): "first run after \(id)"
    case nil: "without \"start\": a first run is refused"
    }
  }

  private static func until(_ until: RunConfiguration.Until) -> String {
    switch until {
    case .caughtUp: "caught up"
    case .forever: "stopped by a signal"
    case .events(let count): "\(count) events"
    case .duration(let duration): "\(duration.components.seconds) s"
    }
  }
}
