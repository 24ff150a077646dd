internal import PostgresClient

/// A sequence that would give out numbers which its table already has, as after a restore of data
/// only, or a switch to a server that was filled by logical replication.
struct LaggingSequence {
  /// For SQL text.
  var sequence: String
  var table: String
  var column: String
  /// The highest number in the table.
  var newest: Int64

  /// Moves the sequence past its table, never back.
  var correction: String {
    """
    SELECT setval(\(SQLIdentifier.literal(self.sequence)), newest) \
    FROM (SELECT max(\(self.column))::bigint AS newest FROM \(self.table)) AS t \
    WHERE newest > coalesce(pg_sequence_last_value(\(SQLIdentifier.literal(self.sequence))), 0)
    """
  }

  /// What holds, without what a run does about it.
  var finding: String {
    "postgres: sequence \(self.sequence) is behind table \(self.table), whose column "
      + "\(self.column) already has \(self.newest)"
  }

  /// What the owner has to execute.
  var remedy: String {
    "SELECT setval(\(SQLIdentifier.literal(self.sequence)), \(self.newest))"
  }
}

/// Sequences of the sink's own tables and of those that it loads: new rows would be refused, or
/// taken for rows that are there.
extension TableCatalog {
  /// - Parameter tables: names of the sink's own tables that exist.
  func laggingSequences(
    _ tables: Set<String>, over connection: PostgresConnection
  ) throws(PostgresError) -> [LaggingSequence] {
    let loaded =
      tables.contains("_etl_table")
      ? "c.relname IN (SELECT table_name FROM \(self.bookkeeping.qualified("_etl_table")))"
      : "false"
    // Only where a number may not repeat. An index also makes the highest number cheap to find.
    let found = try connection.query(
      """
      SELECT sn.nspname, s.relname, c.relname, a.attname,
        coalesce(pg_sequence_last_value(s.oid), q.seqstart - 1)
      FROM pg_catalog.pg_class AS c
      JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
      JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.atttypid IN (20, 21, 23)
        AND NOT a.attisdropped
      CROSS JOIN LATERAL (
        SELECT d.refobjid FROM pg_catalog.pg_attrdef AS v JOIN pg_catalog.pg_depend AS d
          ON d.classid = 'pg_catalog.pg_attrdef'::regclass AND d.objid = v.oid
          AND d.refclassid = 'pg_catalog.pg_class'::regclass
          WHERE v.adrelid = c.oid AND v.adnum = a.attnum
        UNION SELECT d.objid FROM pg_catalog.pg_depend AS d
          WHERE d.classid = 'pg_catalog.pg_class'::regclass
          AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = c.oid
          AND d.refobjsubid = a.attnum AND d.deptype = 'i') AS u (id)
      JOIN pg_catalog.pg_class AS s ON s.oid = u.id AND s.relkind = 'S'
      JOIN pg_catalog.pg_namespace AS sn ON sn.oid = s.relnamespace
      JOIN pg_catalog.pg_sequence AS q ON q.seqrelid = s.oid
      WHERE n.nspname = $1 AND c.relkind IN ('r', 'p')
        AND (starts_with(c.relname, '_etl_') OR \(loaded)) AND q.seqincrement > 0
        AND EXISTS (SELECT FROM pg_catalog.pg_index AS i WHERE i.indrelid = c.oid
          AND i.indisunique AND i.indpred IS NULL AND i.indkey[0] = a.attnum)
        AND has_column_privilege(c.oid, a.attnum, 'SELECT')
        AND CASE WHEN s.relkind = 'S' THEN has_sequence_privilege(s.oid, 'USAGE')
          OR has_sequence_privilege(s.oid, 'SELECT') END
      ORDER BY c.relname, a.attname
      """, [self.configuration.schema])
    var lagging: [LaggingSequence] = []
    for row in 0..<found.rowCount {
      guard let schema = found[row, 0], let name = found[row, 1], let table = found[row, 2],
        let column = found[row, 3], let last = found[row, 4].flatMap({ Int64($0) })
      else { continue }
      var sequence = LaggingSequence(
        sequence: Bookkeeping(schema: schema).qualified(name),
        table: self.bookkeeping.qualified(table), column: SQLIdentifier.quoted(column), newest: last
      )
      let newest = try connection.query(
        "SELECT max(\(sequence.column))::bigint FROM \(sequence.table)")
      guard let newest = newest[0, 0].flatMap({ Int64($0) }), newest > last else { continue }
      sequence.newest = newest
      lagging.append(sequence)
    }
    return lagging
  }

  /// Sets sequences that are behind their tables.
  ///
  /// - Returns: what was done, one sentence each.
  /// - Throws: `PostgresError` (configuration) with the statement if the role may not.
  func correctSequences(over connection: PostgresConnection) throws(PostgresError) -> [String] {
    let lagging = try self.laggingSequences(
      try self.existingBookkeeping(over: connection), over: connection)
    for sequence in lagging {
      do throws(PostgresError) {
        try connection.transaction { () throws(PostgresError) in
          // Nobody else may take a number in between.
          try connection.execute("LOCK TABLE \(sequence.table) IN SHARE ROW EXCLUSIVE MODE")
          try connection.query(sequence.correction)
        }
      } catch {
        guard error.sqlState == SQLState.insufficientPrivilege else { throw error }
        throw PostgresError(
          .configuration,
          "\(sequence.finding), so new rows are refused; ask the owner to run \(sequence.remedy)")
      }
    }
    return lagging.map { "\($0.finding); it has been set to \($0.newest)" }
  }
}
