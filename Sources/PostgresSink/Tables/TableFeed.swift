internal import JSON
internal import PostgresClient

/// Where the rows of a table come from. Of two such feeds every event would be in the history twice,
/// and in the current table nobody would know which change is the later one.
///
/// Stored as lines of `_etl_journal` with action `feed`, of which the last of a table counts.
package struct TableFeed: Sendable, Equatable {
  package var pipeline: String
  package var sink: String
  package var topic: String

  package init(pipeline: String, sink: String, topic: String) {
    self.pipeline = pipeline
    self.sink = sink
    self.topic = topic
  }

  static let action = "feed"

  /// Nil for what is no such line.
  init?(detail: String) {
    guard let json = try? JSONValue(parsing: detail), let pipeline = json["pipeline"]?.string,
      let sink = json["sink"]?.string, let topic = json["topic"]?.string
    else { return nil }
    self.init(pipeline: pipeline, sink: sink, topic: topic)
  }

  var detail: String {
    let json: JSONValue = [
      "pipeline": .string(self.pipeline), "sink": .string(self.sink), "topic": .string(self.topic),
    ]
    return json.text()
  }
}

/// The sink that a catalog works for.
package struct TableFeeder: Sendable, Equatable {
  package var pipeline: String
  package var sink: String
  package var topics: [String]
  /// Tables that another pipeline or topic has fed become this one's.
  package var takesOver: Bool

  package init(pipeline: String, sink: String, topics: [String], takesOver: Bool = false) {
    self.pipeline = pipeline
    self.sink = sink
    self.topics = topics
    self.takesOver = takesOver
  }

  func feed(_ topic: String) -> TableFeed {
    TableFeed(pipeline: self.pipeline, sink: self.sink, topic: topic)
  }

  /// Why a table that has a feed cannot have another.
  ///
  /// - Parameters:
  ///   - table: qualified.
  ///   - topic: whose events would come to the table as well.
  /// - Returns: nil when it is the same, or taken over.
  func conflict(
    _ table: String, fedBy feed: TableFeed, topic: String
  ) -> PostgresError? {
    guard feed != self.feed(topic) else { return nil }
    let isOwn = feed.pipeline == self.pipeline && feed.sink == self.sink
    if isOwn, self.topics.contains(feed.topic) {
      return PostgresError(
        .configuration,
        "postgres: table \(table) gets the events of topic \(feed.topic), and those of \(topic) "
          + "would come to it as well: each would be there twice, in no known order. Remove one of "
          + "the topics, or give one a pipeline with another schema or other names in \"tables\"")
    }
    guard !self.takesOver else { return nil }
    if isOwn {
      return PostgresError(
        .configuration,
        "postgres: table \(table) has had the events of topic \(feed.topic), now \(topic) would "
          + "feed it: what both deliver would be there twice. Give the sink another schema or other "
          + "names in \"tables\", or go on in the same table with 'run --take-over'")
    }
    return PostgresError(
      .configuration,
      "postgres: table \(table) is fed by sink '\(feed.sink)' of pipeline '\(feed.pipeline)' with "
        + "topic \(feed.topic): by sink '\(self.sink)' of pipeline '\(self.pipeline)' with topic "
        + "\(topic) each event would be there twice. Give this sink another schema or other names "
        + "in \"tables\"; if '\(feed.pipeline)' is what this pipeline was called before, go on with "
        + "its tables and position by 'run --take-over'")
  }
}
