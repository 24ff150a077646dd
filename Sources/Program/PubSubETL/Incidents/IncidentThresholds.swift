internal import Bytes
internal import Checkpoint
import Pipeline

/// Compares what is stored of a pipeline with the thresholds of `notify`.
struct IncidentThresholds {
  enum Reading: Equatable {
    case within
    case beyond(Incident.Finding)
  }

  private let configuration: PipelineConfiguration
  private var notify: NotifyConfiguration { self.configuration.notify }

  init(_ configuration: PipelineConfiguration) { self.configuration = configuration }

  /// - Parameter now: milliseconds since 1970.
  /// - Returns: a reading for each threshold that is set, unless it is not known.
  func read(at now: Int64) -> [(Incident.Kind, Reading)] {
    let kinds = Incident.Kind.allCases.filter { $0 != .failing && self.notify.watches($0) }
    guard !kinds.isEmpty,
      let document = try? FileCheckpointStore.peek(self.configuration.statePaths)
    else { return [] }
    let positions = self.configuration.source.topics.compactMap { topic in
      document.topics[topic.name].map { (topic.name, $0) }
    }
    return kinds.compactMap { kind -> (Incident.Kind, Reading)? in
      switch kind {
      case .failing: nil
      case .lag: self.lag(positions, now).map { (kind, $0) }
      case .positionAge: self.positionAge(positions, now).map { (kind, $0) }
      case .deadLetters: self.deadLetters(document, now).map { (kind, $0) }
      case .drift: self.drift().map { (kind, $0) }
      }
    }
  }

  private func lag(
    _ positions: [(topic: String, position: TopicPosition)], _ now: Int64
  ) -> Reading? {
    let times = positions.compactMap { topic, position in
      position.completeThrough.map { (topic, $0) }
    }
    guard let limit = self.notify.lag, let (topic, time) = times.min(by: { $0.1 < $1.1 }) else {
      return nil
    }
    guard .milliseconds(now - time) > limit else { return .within }
    return .beyond(
      Incident.Finding(
        message:
          "\(topic): every change up to \(PipelineStatus.moment(time, now: now)) is exported, "
          + "and later ones may be missing; notify.lag is \(Phrase.duration(limit))",
        reason: Incident.Kind.lag.rawValue))
  }

  private func positionAge(
    _ positions: [(topic: String, position: TopicPosition)], _ now: Int64
  ) -> Reading? {
    let times = positions.compactMap { topic, position in
      position.confirmedAt.map { (topic, $0) }
    }
    guard let limit = self.notify.positionAge, let (topic, time) = times.min(by: { $0.1 < $1.1 })
    else { return nil }
    guard .milliseconds(now - time) > limit else { return .within }
    return .beyond(
      Incident.Finding(
        message:
          "\(topic): the position was last confirmed \(PipelineStatus.moment(time, now: now)); "
          + "after 72 h the service may have forgotten it. notify.position_age is "
          + "\(Phrase.duration(limit))",
        reason: Incident.Kind.positionAge.rawValue))
  }

  private func deadLetters(
    _ document: CheckpointDocument, _ now: Int64
  ) -> Reading? {
    guard let limit = self.notify.deadLetters,
      let status = try? DeadLetterStatus(
        SinkStatusReading(
          configuration: self.configuration, checkpoint: document, positions: [:], verifies: false,
          now: now))
    else { return nil }
    guard status.waiting > Int64(limit), let remark = status.remark else { return .within }
    return .beyond(
      Incident.Finding(
        message: "\(remark). notify.dead_letters is \(limit)",
        reason: Incident.Kind.deadLetters.rawValue))
  }

  private func drift() -> Reading? {
    guard let verdict = StoredVerdict.load(self.configuration.statePaths) else { return nil }
    guard verdict.isDrift else { return .within }
    return .beyond(
      Incident.Finding(message: verdict.message, reason: Incident.Kind.drift.rawValue))
  }
}
