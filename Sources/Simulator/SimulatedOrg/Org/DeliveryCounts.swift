/// The number of delivered events per client and topic.
package struct DeliveryCounts: Sendable {
  package struct Key: Hashable, Sendable {
    package var client: String
    package var topic: String
  }

  package struct Count: Sendable {
    package var events = 0
    package var responses = 0
  }

  package private(set) var counts: [Key: Count] = [:]
  package private(set) var total = 0

  package mutating func add(client: String, topic: String, events: Int) {
    self.counts[Key(client: client, topic: topic), default: Count()].events += events
    self.counts[Key(client: client, topic: topic), default: Count()].responses += 1
    self.total += events
  }

  /// One JSON object: `{"total":N,"clients":[{"client":…,"topic":…,"events":N,"responses":N}]}`.
  package var json: String {
    let rows = self.counts.sorted { ($0.key.client, $0.key.topic) < ($1.key.client, $1.key.topic) }
      .map { key, count in
        "{\"client\":\(JSONText.string(key.client)),\"topic\":\(JSONText.string(key.topic)),"
          + "\"events\":\(count.events),\"responses\":\(count.responses)}"
      }
    return "{\"total\":\(self.total),\"clients\":[\(rows.joined(separator: ","))]}"
  }
}
