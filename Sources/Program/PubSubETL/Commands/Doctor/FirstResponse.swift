internal import Clocks
import EventLoop
import Pipeline
import PubSubAPI
import PubSubSource

/// Subscribes to a topic from where the next run would read, asks for one event, and waits for the
/// first response. Stores nothing; an event that comes counts against the org's allowance.
struct FirstResponse {
  /// What the service said.
  enum Answer {
    case event(after: Duration)
    /// A response without an event: none follows the position now.
    case noEvent
    /// The call is open, and nothing came for `patience`. A topic without new events can be silent for
    /// longer (TheService.md#keepalives-and-liveness).
    case silence
    case failed(any Error)
  }

  static let patience = Duration.seconds(10)

  let topic: String
  let position: Subscription.Position

  /// - Parameter stored: the position of earlier runs.
  init(_ topic: SourceTopic, stored: TopicPosition?) {
    self.topic = topic.name
    var cursor = StreamCursor(isChannel: topic.isChannel, stored: stored)
    self.position =
      switch cursor.reopen() ?? topic.start {
      case .earliest: .earliest
      case .after(let id): .after(id.bytes)
      // A first run without a start is refused.
      case .latest, .managed, nil: .latest
      }
  }

  /// Asks for all at once.
  ///
  /// - Returns: the answers, in the order of the topics.
  static func answers(
    _ topics: [FirstResponse], _ connection: OrgConnection, _ clock: ProcessClock
  ) async -> [(FirstResponse, Answer)] {
    let answers = await withTaskGroup(of: (Int, Answer).self) { group in
      for (index, topic) in topics.enumerated() {
        group.addTask { (index, await topic.answer(connection, clock)) }
      }
      return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
    }
    return topics.enumerated().compactMap { index, topic in answers[index].map { (topic, $0) } }
  }

  private func answer(_ connection: OrgConnection, _ clock: ProcessClock) async -> Answer {
    let began = clock.now
    return await withTaskGroup(of: Answer.self) { group in
      group.addTask {
        let first = Lock<Answer?>(nil)
        do {
          try await connection.service.subscribe(
            Subscription(topic: self.topic, position: self.position, credit: 1),
            credentials: try await connection.credentials.credentials(), credit: CreditQueue()
          ) { response in
            first.withLock {
              $0 = response.events.isEmpty ? .noEvent : .event(after: clock.now - began)
            }
            return false
          }
          return first.withLock { $0 }
            ?? .failed(
              RunFailure(
                .unavailable, "Subscribe to \(self.topic): the service ended the stream"))
        } catch {
          return .failed(error)
        }
      }
      group.addTask {
        try? await clock.sleep(for: Self.patience)
        return .silence
      }
      defer { group.cancelAll() }
      return await group.next() ?? .silence
    }
  }

  /// - Parameter isReplaced: a run would begin elsewhere if the service no longer knows the position.
  func finding(_ answer: Answer, isReplaced: Bool) -> Finding {
    switch answer {
    case .event(let time):
      Finding(.ok, "response", "\(self.topic): an event came after \(Phrase.duration(time))")
    case .noEvent: Finding(.ok, "response", "\(self.topic): the service answers; no event waits")
    case .silence:
      Finding(
        .ok, "response",
        "\(self.topic): subscribed; no event came in \(Phrase.duration(Self.patience))")
    case .failed(let error as PubSubError): self.finding(error, isReplaced: isReplaced)
    case .failed(let error): Finding("response", RunFailure(error))
    }
  }

  private func finding(_ error: PubSubError, isReplaced: Bool) -> Finding {
    let sentReplayID = if case .after = self.position { true } else { false }
    switch error.disposition(sentReplayID: sentReplayID) {
    case .replay where isReplaced:
      return Finding(
        .attention, "response",
        "\(error.message); a run begins a new epoch, as source.on_invalid_replay says, and events may "
          + "be missing before it")
    case .replay:
      return Finding(
        "response", RunFailure(word: "invalid_replay", code: .data, error.message + error.advice()))
    case .quota:
      return Finding("response", RunFailure(.quota, error.message + error.advice()))
    default: return Finding("response", RunFailure(error))
    }
  }
}
