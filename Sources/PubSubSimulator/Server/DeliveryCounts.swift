internal import SimulatedOrg

/// How many events were handed over, per client and topic.
struct DeliveryCounts: Sendable {
  struct Key: Hashable, Sendable {
    var client: String
    var topic: String
  }

  struct Count: Sendable {
    var events = 0
    var responses = 0
  }

  private(set) var counts: [Key: Count] = [:]
  private(set) var total = 0

  mutating func add(client: String, topic: String, events: Int) {
    self.counts[Key(client: client, topic: topic), default: Count()].events += events
    self.counts[Key(client: client, topic: topic), default: Count()].responses += 1
    self.total += events
  }

  /// One JSON object: `{"total":N,"clients":[{"client":…,"topic":…,"events":N,"responses":N}]}`.
  var json: String {
    let rows = self.counts.sorted { ($0.key.client, $0.key.topic) < ($1.key.client, $1.key.topic) }
      .map { key, count in
        "{\"client\":\(JSONText.string(key.client)),\"topic\":\(JSONText.string(key.topic)),"
          + "\"events\":\(count.events),\"responses\":\(count.responses)}"
      }
    return "{\"total\":\(self.total),\"clients\":[\(rows.joined(separator: ","))]}"
  }
}
