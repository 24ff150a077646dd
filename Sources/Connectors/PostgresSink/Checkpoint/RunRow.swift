internal import PostgresClient

/// A run that has ended, as `_etl_run` has it.
package struct RunRow: Sendable {
  /// 16 hexadecimal digits.
  package var id: String
  /// The program's.
  package var version: String
  /// `run` or `snapshot`.
  package var command: String
  /// Milliseconds since 1970.
  package var beganAt: Int64
  package var endedAt: Int64
  package var exitCode: Int32
  package var reason: String
  /// The error in words; nil after a success.
  package var message: String?
  /// By the name of their columns, all of which are `bigint`.
  package var counts: [String: Int64]
  /// Milliseconds; nil without a change.
  package var lag: Int64?

  package static let countColumns = [
    "events", "rows", "delivered", "records_read", "dead_letters", "gaps", "holes", "retries",
    "api_calls",
  ]

  package init(
    id: String, version: String, command: String, beganAt: Int64, endedAt: Int64, exitCode: Int32,
    reason: String, message: String?, counts: [String: Int64], lag: Int64?
  ) {
    self.id = id
    self.version = version
    self.command = command
    self.beganAt = beganAt
    self.endedAt = endedAt
    self.exitCode = exitCode
    self.reason = reason
    self.message = message
    self.counts = counts
    self.lag = lag
  }
}

/// The runs of all sinks of a schema: `_etl_run`. It is a memory and not state: no run depends on it.
struct RunTable {
  static let name = "_etl_run"
  /// Of the columns, for `Bookkeeping`.
  static let columns = """
    pipeline text, sink text, began_at timestamptz, run_id text, ended_at timestamptz not null,
    version text not null, command text not null, exit_code int not null, reason text not null,
    message text, \(RunRow.countColumns.map { "\($0) bigint not null" }.joined(separator: ", ")),
    lag interval, topics jsonb not null, primary key (pipeline, sink, began_at, run_id)
    """
  /// How long runs are kept.
  private static let kept = "interval '1 year'"

  private let pipeline: String
  private let sink: String
  private let bookkeeping: Bookkeeping
  private var table: String { self.bookkeeping.qualified(Self.name) }

  init(pipeline: String, sink: String, _ bookkeeping: Bookkeeping) {
    self.pipeline = pipeline
    self.sink = sink
    self.bookkeeping = bookkeeping
  }

  /// Adds a run, removes old ones, and creates the table if it is missing. The server does not wait for its
  /// disk: nothing depends on the row.
  ///
  /// - Parameter places: of the topics, JSON text; see `PostgresCheckpoint.places`.
  func add(
    _ run: RunRow, places: String, over connection: PostgresConnection
  ) throws(PostgresError) {
    try connection.transaction { () throws(PostgresError) in
      try connection.execute("SET LOCAL synchronous_commit = off")
      let exists = try connection.query(
        """
        SELECT EXISTS (SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n \
        ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2)
        """, [self.bookkeeping.schema, Self.name])
      if exists[0, 0] != "t" {
        try connection.execute(self.bookkeeping.runStatements.joined(separator: ";\n"))
      }
      let names = RunRow.countColumns
      func time(_ parameter: Int) -> String {
        "to_timestamp($\(parameter)::double precision / 1000)"
      }
      try connection.query(
        """
        INSERT INTO \(self.table) (pipeline, sink, run_id, version, command, began_at, ended_at, \
        exit_code, reason, message, topics, lag, \(names.joined(separator: ", "))) \
        VALUES ($1, $2, $3, $4, $5, \(time(6)), \(time(7)), $8, $9, $10, $11::jsonb, \
        $12::double precision / 1000 * interval '1 second', \
        \(names.indices.map { "$\(13 + $0)" }.joined(separator: ", ")))
        """,
        [
          self.pipeline, self.sink, run.id, run.version, run.command, "\(run.beganAt)",
          "\(run.endedAt)", "\(run.exitCode)", run.reason, run.message, places,
          run.lag.map { "\($0)" },
        ] + names.map { "\(run.counts[$0] ?? 0)" })
      try connection.query(
        """
        DELETE FROM \(self.table) WHERE pipeline = $1 AND sink = $2 AND began_at < now() - \
        \(Self.kept)
        """, [self.pipeline, self.sink])
    }
  }
}
