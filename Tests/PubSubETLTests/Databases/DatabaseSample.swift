import Checkpoint
import JSON
import Pipeline
import PostgresClient
import PostgresSink
import TestSupport

@testable import PubSubETL

/// A pipeline with a postgres sink in a database of its own, as runs leave it.
struct DatabaseSample {
  let cluster: PostgresCluster
  let database: String
  let state: StateSample

  /// - Parameter hasFiles: a files sink stands beside it.
  init(hasFiles: Bool = true) async throws {
    self.cluster = try await PostgresCluster.shared
    self.database = try self.cluster.makeDatabase()
    let files = hasFiles ? "{ \"type\": \"files\", \"directory\": \"out\" }," : ""
    self.state = try StateSample(
      """
      {
        "version": 1, "name": "opps",
        "source": {
          "type": "salesforce", "topic": "\(StateSample.topic)",
          "org": { "auth": { "type": "token", "instance_url": "https://acme.my.salesforce.com",
            "access_token": "t" } }
        },
        "sinks": [ \(files)
          { "type": "postgres", "name": "warehouse",
            "url": "\(self.cluster.url(database: self.database))" } ],
        "checkpoint": { "type": "file", "directory": "state" }
      }
      """)
  }

  var configuration: PipelineConfiguration { self.state.configuration }

  /// The pipeline whose sinks connect as a role.
  func configured(role: String) -> PipelineConfiguration {
    var configuration = self.configuration
    var settings = configuration.postgresSinks[0]
    settings.sink.connection.url = self.cluster.url(database: self.database) + "?user=\(role)"
    configuration.sinks = [settings]
    return configuration
  }

  /// Stores a position in the database as a run does.
  func store(
    _ position: JSONValue, owner: String = "host /state pid 1", lease: String = "-1 s"
  ) throws {
    let sink = self.configuration.postgresSinks[0].sink
    let connection = try PostgresConnection(sink.connection)
    try TableCatalog(sink).prepare(over: connection)
    let topics = JSONValue(.object([JSONMember(StateSample.topic, position)]))
    try connection.query(
      """
      INSERT INTO salesforce._etl_checkpoint
      VALUES ('opps', 'warehouse', $1, $2::jsonb, $3, 7, now() + $4::interval, NULL, now())
      ON CONFLICT (pipeline, sink) DO UPDATE SET topics = excluded.topics, owner = excluded.owner,
        lease_until = excluded.lease_until
      """, [StateSample.org, topics.text(), owner, lease])
  }

  /// The position in the database.
  func position() throws -> TopicPosition {
    let text = try self.cluster.query(
      "SELECT topics -> '\(StateSample.topic)' FROM salesforce._etl_checkpoint",
      database: self.database)
    return try TopicPosition(json: JSONValue(parsing: text), topic: StateSample.topic)
  }

  /// The position in the checkpoint.
  func copy() throws -> TopicPosition? {
    try FileCheckpointStore.peek(self.state.paths)?.topics[StateSample.topic]
  }

  @discardableResult func query(_ sql: String) throws -> String {
    try self.cluster.query(sql, database: self.database)
  }
}
