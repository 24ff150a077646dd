package import PostgresClient

/// What a role lacks, and the statements that change it. All commands print the same ones.
extension DatabaseProbe {
  /// A table or view of the sink that the role does not own.
  struct Ownership {
    var owner: String
    /// Makes the role the owner.
    var statement: String
  }

  /// Why the role cannot work with the schema, and what to do; nil if it can.
  package var obstacle: String? {
    let role = SQLIdentifier.quoted(self.role)
    let schema = SQLIdentifier.quoted(self.schema)
    guard self.mayCreate || self.hasBookkeeping else {
      guard self.hasSchema else {
        return "schema \(schema) does not exist in database \(self.database), and role "
          + "\(self.role) is not allowed to create it. "
          + (self.namesakes.isEmpty ? "" : "\(self.namesakeHint). ")
          + "Ask the owner of the database or a superuser to run CREATE SCHEMA \(schema) "
          + "AUTHORIZATION \(role), or GRANT CREATE ON DATABASE "
          + "\(SQLIdentifier.quoted(self.database)) TO \(role)"
      }
      return "role \(self.role) is not allowed to create tables in schema \(schema) of "
        + "\(self.database). " + (self.ownershipRemedy.map { "\($0). " } ?? "")
        + "Ask the owner of the schema to run GRANT USAGE, CREATE ON SCHEMA \(schema) TO \(role)"
    }
    guard !self.missingGrants.isEmpty else { return nil }
    let advice = self.ownershipRemedy.map {
      "\($0). Or, to let it write without owning them (new fields then need the owner: "
        + "'pubsub-etl plan'), ask"
    }
    return "role \(self.role) lacks privileges in schema \(schema) of \(self.database). "
      + (advice ?? "Ask") + " the owner to run \(self.missingGrants.joined(separator: "; "))"
  }

  /// Names a schema that differs only in case; empty if there is none.
  package var namesakeHint: String {
    guard !self.hasSchema, let name = self.namesakes.first else { return "" }
    return "Schema \(SQLIdentifier.quoted(name)) exists and differs only in case: if you mean it, "
      + "correct \"schema\" in the pipeline file"
  }

  /// The owner of the tables and the statements that change it; nil when the role owns all of them.
  package var ownershipRemedy: String? {
    guard let first = self.ownerships.first else { return nil }
    let role = SQLIdentifier.quoted(self.role)
    let schema = SQLIdentifier.quoted(self.schema)
    let statements = self.ownerships.map(\.statement)
    let owner = SQLIdentifier.quoted(first.owner)
    let isWrongRole = !self.ownsTables && self.ownerships.allSatisfy { $0.owner == first.owner }
    let change =
      "run as a superuser, to make \(self.role) their owner, \(statements.joined(separator: "; "))"
    // A dump that was restored with --no-owner belongs to the superuser who restored it.
    guard isWrongRole, !self.ownersAreSuperusers else {
      let owners = Set(self.ownerships.map(\.owner)).sorted().map { SQLIdentifier.quoted($0) }
      return "Tables or views of the sink in schema \(schema) belong to "
        + "\(owners.joined(separator: ", ")) (restored with --no-owner?). To fix this, \(change)"
    }
    let connect = "connect as \(owner) (the user in url)"
    let grant = "run GRANT \(owner) TO \(role)"
    return "The tables in schema \(schema) belong to role \(owner): "
      + (self.ownersMayLogIn ? "\(connect), or \(grant)" : grant) + ". Or \(change)"
  }

  /// What to print after an error about a missing privilege; nil if the role lacks nothing.
  var remedy: String? { self.obstacle ?? self.ownershipRemedy }

  /// The statements that let a sequence continue which the message of an error names; nil if it
  /// cannot be found.
  func sequenceRemedy(_ error: PostgresError) -> String? {
    let found = try? self.connection.query(
      """
      SELECT format('%I.%I', n.nspname, s.relname), q.seqincrement > 0,
        CASE WHEN q.seqincrement > 0 THEN q.seqmax = 9223372036854775807
          ELSE q.seqmin = -9223372036854775808 END,
        quote_ident(tn.nspname) || '.' || quote_ident(t.relname), quote_ident(a.attname),
        a.atttypid = 20
      FROM pg_catalog.pg_sequence AS q
      JOIN pg_catalog.pg_class AS s ON s.oid = q.seqrelid
      JOIN pg_catalog.pg_namespace AS n ON n.oid = s.relnamespace
      LEFT JOIN pg_catalog.pg_depend AS d ON d.classid = 'pg_catalog.pg_class'::regclass
        AND d.objid = s.oid AND d.refclassid = 'pg_catalog.pg_class'::regclass
        AND d.deptype IN ('a', 'i')
      LEFT JOIN pg_catalog.pg_class AS t ON t.oid = d.refobjid
      LEFT JOIN pg_catalog.pg_namespace AS tn ON tn.oid = t.relnamespace
      LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
      WHERE NOT q.seqcycle AND strpos($1, '"' || s.relname || '"') > 0
        AND CASE WHEN has_sequence_privilege(s.oid, 'USAGE, SELECT')
          THEN pg_sequence_last_value(s.oid) IN (q.seqmax, q.seqmin) ELSE true END
      ORDER BY n.nspname = $2 DESC LIMIT 1
      """, [error.message, self.schema])
    guard let found, found.rowCount == 1, let sequence = found[0, 0] else { return nil }
    var statements: [String] = []
    if let column = found[0, 4], let table = found[0, 3], found[0, 2] == "t" {
      statements.append(
        "SELECT setval(\(SQLIdentifier.literal(sequence)), (SELECT coalesce(max(\(column)), 1) "
          + "FROM \(table)))")
    } else if found[0, 2] == "t" {
      statements.append("ALTER SEQUENCE \(sequence) RESTART")
    } else {
      if let column = found[0, 4], let table = found[0, 3], found[0, 5] != "t" {
        statements.append("ALTER TABLE \(table) ALTER COLUMN \(column) TYPE bigint")
      }
      statements.append(
        "ALTER SEQUENCE \(sequence) AS bigint NO \(found[0, 1] == "t" ? "MAXVALUE" : "MINVALUE")")
    }
    return "Sequence \(sequence) has given out its last number; ask its owner to run "
      + statements.joined(separator: "; ")
  }
}

extension PostgresSinkConfiguration {
  /// Adds what the role lacks, and the statements to run, to an error about a missing privilege.
  package func explaining<Value>(_ body: () throws -> Value) throws -> Value {
    do {
      return try body()
    } catch let error as PostgresError {
      throw self.explained(error)
    }
  }

  /// The same for an error that was caught.
  package func explained(_ error: PostgresError) -> PostgresError {
    guard error.sqlState == SQLState.insufficientPrivilege || error.isExhaustedSequence,
      !error.isExplained
    else { return error }
    var error = error
    error.isExplained = true
    // If this fails too, the first error says more.
    guard let probe = try? DatabaseProbe(self) else { return error }
    let remedy = error.isExhaustedSequence ? probe.sequenceRemedy(error) : probe.remedy
    if let remedy { error.message += ". " + remedy }
    return error
  }
}
