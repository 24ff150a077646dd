import HTTPClient
import JSON
import Pipeline

/// Objects whose records are read again and again, because the org sends no change events for them
/// (`source.lookups`).
struct LookupsConfiguration: KeyedObject, Sendable, Equatable {
  /// API names; empty for none.
  var objects: [String] = []
  var every = Duration.seconds(3600)
  var fullEvery = Duration.seconds(7 * 24 * 3600)

  /// More often would cost more calls than a day has for most orgs.
  private static let minInterval = Duration.seconds(300)

  static var keys: [Key<Self>] {
    let day = Duration.seconds(24 * 3600)
    return [
      .required(
        "objects", \.objects, .objectNames,
        "API names of the objects; none of them may have a topic in this file.",
        example: ["User", "UserRole", "RecordType"]),
      .key(
        "every", \.every, .duration(in: .seconds(1)...day * 7),
        "Time between two reads of the records that have changed; less than 5m for loopback "
          + "addresses only.", example: "30m"),
      .key(
        "full_every", \.fullEvery, .duration(in: .seconds(1)...day * 90),
        "Time between two reads of all records, which find records that were deleted without a trace.",
        example: "24h"),
    ]
  }

  /// Checks what depends on the rest of the source.
  func check(_ reader: JSONReader, in source: SourceConfiguration) {
    if self.every < Self.minInterval, !source.org.isLocal {
      reader.report(
        "every", "expected at least 5m; less is for loopback addresses only")
    }
    if self.fullEvery < self.every {
      reader.report(
        "full_every", "expected at least the time in 'every': both read what has changed")
    }
    for element in reader.elements("objects") ?? [] {
      guard let name = element.value.string else { continue }
      if let topic = source.topics.first(where: { Self.delivers($0, name) }) {
        reader.report(
          element,
          "the topic \(topic.name) delivers the changes of \(name); remove it from one of the two")
      } else if source.snapshot.objects.contains(name) {
        reader.report(
          element, "\(name) is also in source.snapshot.objects; remove it from one of the two")
      }
    }
  }

  private static func delivers(_ topic: SourceConfiguration.Topic, _ entity: String) -> Bool {
    TopicName.hasChanges(topic.name) && !topic.isChannel && TopicName.entity(topic.name) == entity
  }
}

extension SourceConfiguration {
  /// The objects without change events, with the names that their topics would have.
  var polledObjects: [(entity: String, topic: String)] {
    self.lookups.objects.map { ($0, TopicName.changes(of: $0)) }
  }

  /// The topics of all objects of the pipeline, also those that none is subscribed to for.
  var feedingTopics: [String] { self.topics.map(\.name) + self.polledObjects.map(\.topic) }

  /// How often each object without change events is read.
  var polls: [String: Duration] {
    Dictionary(
      self.lookups.objects.map { ($0, self.lookups.every) }, uniquingKeysWith: { first, _ in first }
    )
  }
}
