internal import JSON
internal import PostgresClient

/// The source of a table's rows. With two feeds, every event would be in the history twice, and the
/// order of changes in the current table would be unknown.
///
/// Stored as lines of `_etl_journal` with action `feed`; the last line of a table counts.
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

  /// Nil for any other line.
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
  /// Takes over tables that another pipeline or topic has fed.
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

  /// The reason why a table with a feed cannot have this one.
  ///
  /// - Parameters:
  ///   - table: qualified.
  ///   - topic: the topic whose events would also come to the table.
  /// - Returns: nil if the feed is the same or taken over.
  func conflict(
    _ table: String, fedBy feed: TableFeed, topic: String
  ) -> PostgresError? {
    guard feed != self.feed(topic) else { return nil }
    let isOwn = feed.pipeline == self.pipeline && feed.sink == self.sink
    if isOwn, self.topics.contains(feed.topic) {
      return PostgresError(
        .configuration,
        "postgres: table \(table) already receives the events of topic \(feed.topic); with "
          + "\(topic) each event would be stored twice, in no known order. Remove one of the "
          + "topics, or give one a pipeline with another schema or other names in \"tables\"")
    }
    guard !self.takesOver else { return nil }
    if isOwn {
      return PostgresError(
        .configuration,
        "postgres: table \(table) has received the events of topic \(feed.topic) so far; with "
          + "\(topic), events that both topics deliver would be stored twice. Give the sink another "
          + "schema or other names in \"tables\", or continue in the same table with 'run "
          + "--take-over'")
    }
    return PostgresError(
      .configuration,
      "postgres: table \(table) is fed by sink '\(feed.sink)' of pipeline '\(feed.pipeline)' "
        + "from topic \(feed.topic); if sink '\(self.sink)' of pipeline '\(self.pipeline)' also "
        + "wrote topic \(topic) to it, each event would be stored twice. Give this sink another "
        + "schema or other names in \"tables\". If this pipeline was called '\(feed.pipeline)' "
        + "before, run it with --take-over to continue with its tables and position")
  }
}
