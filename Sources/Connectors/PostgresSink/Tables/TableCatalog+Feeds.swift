internal import JSON
internal import Pipeline
package import PostgresClient

/// Checks the feeds of the tables before the first event.
extension TableCatalog {
  /// A table of this sink that has another feed.
  struct FeedConflict {
    var table: String
    var feed: TableFeed
    var topic: String
    var error: PostgresError
  }

  /// - Throws: `PostgresError` (configuration) when another pipeline or topic feeds a table that
  ///   would receive this sink's events, as far as that is known before they arrive.
  package func checkFeeds(over connection: PostgresConnection) throws(PostgresError) {
    let existing = try self.existingBookkeeping(over: connection)
    if let conflict = try self.feedConflicts(existing, over: connection).first {
      throw conflict.error
    }
  }

  func feedConflicts(
    _ existing: Set<String>, over connection: PostgresConnection
  ) throws(PostgresError) -> [FeedConflict] {
    guard let feeder, existing.isSuperset(of: ["_etl_table", "_etl_journal", "_etl_checkpoint"])
    else { return [] }
    return try self.feeds(of: feeder, over: connection).compactMap { table, feed, topic in
      feeder.conflict(
        Bookkeeping(schema: self.configuration.schema).qualified(table), fedBy: feed, topic: topic
      ).map { FeedConflict(table: table, feed: feed, topic: topic, error: $0) }
    }
  }

  /// The tables that are known to receive events of the topics, each with its feed.
  private func feeds(
    of feeder: TableFeeder, over connection: PostgresConnection
  ) throws(PostgresError) -> [(table: String, feed: TableFeed, topic: String)] {
    let journal = self.bookkeeping.qualified("_etl_journal")
    let tables = try connection.query(
      """
      SELECT t.table_name, t.entity, t.kind, (SELECT j.detail FROM \(journal) AS j \
      WHERE j.table_name = t.table_name AND j.action = $1 ORDER BY j.id DESC LIMIT 1) \
      FROM \(self.bookkeeping.qualified("_etl_table")) AS t ORDER BY t.table_name COLLATE "C"
      """, [TableFeed.action])
    let others = try self.otherCheckpoints(of: feeder, over: connection)
    var found: [(table: String, feed: TableFeed, topic: String)] = []
    for row in 0..<tables.rowCount {
      guard let name = tables[row, 0], let entity = tables[row, 1],
        let kind = tables[row, 2].flatMap({ TableDefinition.Kind(rawValue: $0) }),
        self.configuration.mode.tableKinds.contains(kind),
        try TableMapping.tableName(of: entity, kind, self.configuration) == name
      else { continue }
      let own = feeder.topics.first {
        !TopicName.isChannel($0) && TopicName.entity($0) == entity
      }
      if let feed = tables[row, 3].flatMap({ TableFeed(detail: $0) }) {
        let isOwn = feed.pipeline == feeder.pipeline && feed.sink == feeder.sink
        // A channel feeds the same tables as in another pipeline.
        let topic = own ?? (!isOwn && feeder.topics.contains(feed.topic) ? feed.topic : nil)
        if let topic { found.append((name, feed, topic)) }
      } else if let feed = others.first(where: { feed in
        own.map { feed.topic == $0 }
          ?? (TopicName.isChannel(feed.topic) && feeder.topics.contains(feed.topic))
      }) {
        // A table of an earlier version, which did not note feeds.
        found.append((name, feed, feed.topic))
      }
    }
    return found
  }

  /// Topics for which other sinks have positions, if this sink has none.
  private func otherCheckpoints(
    of feeder: TableFeeder, over connection: PostgresConnection
  ) throws(PostgresError) -> [TableFeed] {
    let rows = try connection.query(
      """
      SELECT c.pipeline, c.sink, t.topic FROM \(self.bookkeeping.qualified("_etl_checkpoint")) AS c, \
      jsonb_object_keys(c.topics) AS t (topic) \
      WHERE t.topic = ANY ($3::text[]) AND NOT EXISTS (\
      SELECT FROM \(self.bookkeeping.qualified("_etl_checkpoint")) WHERE pipeline = $1 AND sink = $2) \
      ORDER BY c.committed_at DESC
      """, [feeder.pipeline, feeder.sink, SQLArray.literal(feeder.topics)])
    return (0..<rows.rowCount).map { row in
      TableFeed(pipeline: rows[row, 0] ?? "", sink: rows[row, 1] ?? "", topic: rows[row, 2] ?? "")
    }
  }

  /// Takes over the tables that another sink has fed, and its positions if this sink has none, so
  /// that a renamed pipeline resumes where it stopped.
  ///
  /// - Returns: the changes, one sentence each.
  /// - Throws: `PostgresError` (configuration) when the positions belong to another org.
  package func takeOverFeeds(
    org: String, over connection: PostgresConnection
  ) throws(PostgresError) -> [String] {
    guard var feeder, feeder.takesOver else { return [] }
    feeder.takesOver = false
    let asking = TableCatalog(self.configuration, feeder: feeder)
    return try connection.transaction { () throws(PostgresError) in
      let existing = try self.existingBookkeeping(over: connection)
      guard try !asking.feedConflicts(existing, over: connection).isEmpty else { return [] }
      try self.lock(over: connection)
      let conflicts = try asking.feedConflicts(existing, over: connection)
      var changes = try self.takeOverPosition(conflicts, org: org, over: connection)
      for conflict in conflicts {
        let isOwn = conflict.feed.pipeline == feeder.pipeline && conflict.feed.sink == feeder.sink
        // Two topics of this pipeline are always a mistake.
        guard !isOwn || !feeder.topics.contains(conflict.feed.topic) else { throw conflict.error }
        try self.note(
          conflict.table, TableFeed.action, feeder.feed(conflict.topic).detail, over: connection)
        changes.append(
          "table \(self.bookkeeping.qualified(conflict.table)) was taken over from sink "
            + "'\(conflict.feed.sink)' of pipeline '\(conflict.feed.pipeline)', topic "
            + conflict.feed.topic)
      }
      return changes
    }
  }

  private func takeOverPosition(
    _ conflicts: [FeedConflict], org: String, over connection: PostgresConnection
  ) throws(PostgresError) -> [String] {
    guard let feeder, let other = conflicts.first?.feed else { return [] }
    let table = self.bookkeeping.qualified("_etl_checkpoint")
    let isAlone = conflicts.allSatisfy {
      $0.feed.pipeline == other.pipeline && $0.feed.sink == other.sink
    }
    let row = try connection.query(
      """
      SELECT org FROM \(table) WHERE pipeline = $3 AND sink = $4 AND NOT EXISTS (\
      SELECT FROM \(table) WHERE pipeline = $1 AND sink = $2) FOR UPDATE
      """, [feeder.pipeline, feeder.sink, other.pipeline, other.sink])
    guard isAlone, row.rowCount == 1 else { return [] }
    guard row[0, 0] == org else {
      throw PostgresError(
        .configuration,
        "postgres: the positions of pipeline '\(other.pipeline)', sink '\(other.sink)' belong "
          + "to org \(row[0, 0] ?? ""), but the login is for org \(org); nothing was taken over")
    }
    try connection.query(
      "UPDATE \(table) SET pipeline = $1, sink = $2 WHERE pipeline = $3 AND sink = $4",
      [feeder.pipeline, feeder.sink, other.pipeline, other.sink])
    let change =
      "the position of sink '\(other.sink)' of pipeline '\(other.pipeline)' was taken over by "
      + "sink '\(feeder.sink)' of pipeline '\(feeder.pipeline)'"
    try self.note("_etl_checkpoint", "take_over", change, over: connection)
    return [change]
  }

  private func note(
    _ table: String, _ action: String, _ detail: String, over connection: PostgresConnection
  ) throws(PostgresError) {
    try connection.query(
      """
      INSERT INTO \(self.bookkeeping.qualified("_etl_journal")) (table_name, action, detail) \
      VALUES ($1, $2, $3)
      """, [table, action, detail])
  }
}
