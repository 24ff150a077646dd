internal import Clocks
import GRPCCore
import JSON
import Pipeline
import PubSubAPI
import SalesforceREST

/// What a login may subscribe to.
///
/// The list of the org's objects, which every user of the API can read, names everything that may have
/// events. Which of it is selected is in an object of the Tooling API that needs View Setup and
/// Configuration. So the service is asked for each topic instead: it knows only those that exist, and
/// what this user may do. Subscribes to nothing, so no deliveries are counted.
struct TopicList: Equatable {
  enum Kind: String {
    case changes = "change_events"
    case channel
    case platformEvent = "platform_event"
  }

  struct Topic: Equatable {
    var name: String
    var kind: Kind
    /// As Setup shows it; empty if there is none.
    var label: String
  }

  /// Sorted by kind, then by name.
  var topics: [Topic] = []
  /// Topics that exist, and that the user may not subscribe to.
  var refused: [Topic] = []
  /// What is not listed, and the remedy; one sentence each.
  var remarks: [String] = []

  /// Calls that are under way at the same time.
  private static let parallelCalls = 16

  /// - Throws: what the login, the org and the service throw; not for a topic that is refused.
  static func read(_ connection: OrgConnection) async throws -> Self {
    let client = connection.makeRESTClient()
    var candidates = Self.candidates(try await client.listedObjects())
    var remarks: [String] = []
    do {
      candidates += try await client.eventChannels().map { channel in
        Topic(
          name: (channel.hasChanges ? "/data/" : "/event/") + channel.name, kind: .channel,
          label: channel.label)
      }
    } catch let error as RESTError {
      let needsRight = error.disposition == .describe
      remarks.append(
        needsRight
          ? "custom channels are not listed: the user needs View Setup and Configuration"
          : "custom channels are not listed: \(error.message)")
    }
    var list = try await Self.ask(candidates) { topic in
      try await connection.service.topic(
        named: topic, credentials: try await connection.credentials.credentials()
      ).canSubscribe
    }
    if !(list.topics + list.refused).contains(where: { $0.kind == .changes }) {
      remarks.append(
        "no object has change events: select objects in Setup, under Integrations > Change Data "
          + "Capture")
    }
    list.remarks = remarks
    return list
  }

  /// Everything that may be a topic, by the names of what the org lists.
  static func candidates(_ objects: [ListedObject]) -> [Topic] {
    let labels = Dictionary(
      objects.map { ($0.name, $0.label) }, uniquingKeysWith: { first, _ in first })
    return [Topic(name: TopicName.allChanges, kind: .channel, label: "All selected objects")]
      + objects.compactMap { object in
        let changes = "/data/\(object.name)"
        let entity = TopicName.entity(changes)
        if entity != object.name, TopicName.isValid(changes) {
          return Topic(name: changes, kind: .changes, label: labels[entity] ?? object.label)
        }
        // Standard events have names such as BatchApexErrorEvent and LoginEventStream.
        let events = "/event/\(object.name)"
        guard ["__e", "Event", "EventStream"].contains(where: object.name.hasSuffix),
          TopicName.isValid(events)
        else { return nil }
        return Topic(name: events, kind: .platformEvent, label: object.label)
      }
  }

  /// - Parameter ask: whether the user may subscribe to a topic of this name.
  static func ask(
    _ candidates: [Topic], _ ask: @escaping @Sendable (String) async throws -> Bool
  ) async throws -> Self {
    var list = Self()
    try await withThrowingTaskGroup(of: (Topic, Bool?).self) { group in
      func note(_ topic: Topic, _ isAllowed: Bool?) {
        if let isAllowed { isAllowed ? list.topics.append(topic) : list.refused.append(topic) }
      }
      for (index, topic) in candidates.enumerated() {
        if index >= Self.parallelCalls, let (topic, isAllowed) = try await group.next() {
          note(topic, isAllowed)
        }
        group.addTask { (topic, try await Self.answer(topic.name, ask)) }
      }
      for try await (topic, isAllowed) in group { note(topic, isAllowed) }
    }
    list.topics.sort(by: Self.isBefore)
    list.refused.sort(by: Self.isBefore)
    return list
  }

  /// Nil if there is no such topic.
  private static func answer(
    _ topic: String, _ ask: (String) async throws -> Bool
  ) async throws -> Bool? {
    do {
      return try await ask(topic)
    } catch let error as PubSubError where error.refusesTopicAlone {
      return error.status == .notFound ? nil : false
    }
  }

  private static func isBefore(_ left: Topic, _ right: Topic) -> Bool {
    (left.kind.rawValue, left.name) < (right.kind.rawValue, right.name)
  }
}

extension TopicList {
  /// A line per topic: its name, its kind and its label.
  var text: String {
    TextTable.lines(self.topics.map { [$0.name, $0.kind.words, $0.label] })
  }

  /// What is not in the list, for standard error.
  var notes: [String] {
    self.refused.map { topic in
      "\(topic.name): the run-as user is not allowed to subscribe"
        + (topic.kind == .changes
          ? "; grant it View All on \(TopicName.entity(topic.name))"
          : topic.kind == .platformEvent ? "; grant it Read on the event" : "")
    } + self.remarks
  }

  var json: JSONValue {
    func list(_ topics: [Topic]) -> JSONValue {
      .array(
        topics.map { topic in
          [
            "topic": .string(topic.name), "kind": .string(topic.kind.rawValue),
            "label": .string(topic.label),
          ]
        })
    }
    return [
      "topics": list(self.topics), "refused": list(self.refused),
      "remarks": .array(self.remarks.map { .string($0) }),
    ]
  }
}

extension TopicList.Kind {
  fileprivate var words: String {
    switch self {
    case .changes: "changes"
    case .channel: "channel"
    case .platformEvent: "platform event"
    }
  }
}
