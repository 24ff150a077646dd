internal import PostgresClient

/// Finds manual changes of a table by comparing the catalogue with the bookkeeping.
extension TableState {
  private static let kinds = [
    "v": "a view", "m": "a materialized view", "f": "a foreign table", "S": "a sequence",
    "i": "an index", "I": "an index", "c": "a type",
  ]

  /// A relation that rows can be written to.
  var isTable: Bool { self.relationKind == "r" || self.relationKind == "p" }

  /// The table is in the bookkeeping, but not in the database, and cannot be rebuilt.
  func missing(_ entity: String) -> PostgresError {
    let (loss, exception): (String, String) =
      switch self.kind {
      case .history:
        (
          "a history cannot be rebuilt",
          "a new one without the old rows and leaves the current table as it is"
        )
      case .current:
        (
          "without a history it cannot be rebuilt",
          "a new one, in which records are incomplete until they are created or loaded again"
        )
      }
    let namesake = self.namesake.map {
      "; if it is \($0) now, rename it back (ALTER TABLE … RENAME TO, or SET SCHEMA)"
    }
    return PostgresError(
      .lostTable,
      "postgres: table \(self.qualifiedName), the \(self.kind.rawValue) of \(entity), was "
        + "dropped or renamed, and \(loss). Restore it from a backup\(namesake ?? ""); or "
        + "continue with 'run --accept-missing', which creates \(exception)")
  }

  /// A column that is in the bookkeeping, but not in the table, and cannot be filled again.
  func missing(column: String) -> PostgresError {
    let name = SQLIdentifier.quoted(column)
    let consequence =
      switch self.kind {
      case .history:
        "the current table keeps its values until 'pubsub-etl rebuild' rebuilds it from the "
          + "history, which no longer has them"
      case .current: "records have no value in it until an event sets it"
      }
    return PostgresError(
      .lostTable,
      "postgres: column \(name) of table \(self.qualifiedName) was dropped, and its values "
        + "cannot be rebuilt. Restore it from a backup; or continue with 'run "
        + "--accept-missing', which creates an empty one: \(consequence)")
  }

  /// The reason why rows cannot be written to the table, and the remedy. Nil if there is no such
  /// table.
  ///
  /// - Parameter fields: columns of fields that will be written and are not yet in the bookkeeping,
  ///   in a table that somebody created for this program.
  func obstacle(writing fields: Set<String> = []) -> PostgresError? {
    guard let relationKind else { return nil }
    let name = self.qualifiedName
    guard self.isTable else {
      let found = Self.kinds[relationKind] ?? "something else (relkind \(relationKind))"
      return PostgresError(
        .configuration,
        "postgres: \(name) must be a table but is \(found); rename or drop that, or choose "
          + "another name in tables.\(self.kind.rawValue)")
    }
    return self.alteredFixedColumns() ?? self.foreignColumn(fields) ?? self.condition.obstacle(self)
  }

  private func alteredFixedColumns() -> PostgresError? {
    let name = self.qualifiedName
    let unfit = TableDefinition.fixedColumns(self.kind).filter { fixed in
      self.column(fixed.name)?.isType(of: fixed) != true
    }
    guard !unfit.isEmpty else { return nil }
    let list = unfit.map { "\($0.name) \($0.sqlType)" }.joined(separator: ", ")
    guard self.registeredEntity != nil else {
      return PostgresError(
        .configuration,
        "postgres: table \(name) exists but was not created by this program: it lacks \(list). "
          + "Rename it, or choose another name in tables.\(self.kind.rawValue)")
    }
    let faults = unfit.map { fixed in
      guard let found = self.column(fixed.name) else {
        return "column \(fixed.name) \(fixed.sqlType) was renamed or dropped (ALTER TABLE \(name) "
          + "RENAME COLUMN … TO \(fixed.name))"
      }
      return
        "column \(fixed.name) was changed to \(found.sqlType) (ALTER TABLE \(name) ALTER "
        + "COLUMN \(fixed.name) TYPE \(fixed.sqlType) USING \(fixed.name)::\(fixed.sqlType))"
    }
    return PostgresError(
      .configuration,
      "postgres: table \(name) was altered, and no rows can be written to it until this is undone: "
        + faults.joined(separator: "; "))
  }

  /// A foreign column that is NOT NULL without a default.
  private func foreignColumn(_ fields: Set<String>) -> PostgresError? {
    let own = Set(TableDefinition.allFixedColumns(self.kind).map(\.name))
    let found = self.columns.first { column in
      column.isNotNull && !column.hasDefault && self.registered[column.name] == nil
        && !own.contains(column.name) && !fields.contains(column.name)
    }
    guard let found else { return nil }
    let column = SQLIdentifier.quoted(found.name)
    return PostgresError(
      .configuration,
      "postgres: column \(column) of table \(self.qualifiedName) is NOT NULL without a "
        + "default. This program does not write it, so every row would be refused; run "
        + "ALTER TABLE \(self.qualifiedName) ALTER COLUMN \(column) DROP NOT NULL, or SET "
        + "DEFAULT …")
  }

  /// NOT NULL columns of fields that events may lack. Only checked after rows were refused, because
  /// such a column is harmless while every event has the field.
  func refusingColumn() -> PostgresError? {
    guard self.isTable,
      let found = self.columns.first(where: { $0.isNotNull && self.registered[$0.name] != nil })
    else { return nil }
    let column = SQLIdentifier.quoted(found.name)
    return PostgresError(
      .configuration,
      "postgres: column \(column) of table \(self.qualifiedName) was made NOT NULL, so rows "
        + "without a value for it are refused: deletions, gap events and incomplete records; run ALTER TABLE \(self.qualifiedName) ALTER COLUMN \(column) DROP NOT NULL"
    )
  }

  /// A column of the bookkeeping that has another name in the table now.
  struct RenamedColumn: Equatable {
    var registered: String
    var path: String
    var found: String
  }

  /// Columns keep their numbers when they are renamed: the new name is an unknown column of the same
  /// type between the neighbours of the old one, where none has been dropped.
  var renamedColumns: [RenamedColumn] {
    guard self.isTable else { return [] }
    let fixed = Set(TableDefinition.allFixedColumns(self.kind).map(\.name))
    var renamed: [RenamedColumn] = []
    var taken: Set<String> = []
    for (place, lost) in self.registered.enumerated() where self.column(lost.name) == nil {
      let known = self.registered.map { self.column($0.name)?.number }
      let before = known[..<place].last { $0 != nil } ?? nil
      let after = known[(place + 1)...].first { $0 != nil } ?? nil
      let range = (before ?? 0)..<max(after ?? .max, (before ?? 0) + 1)
      guard !self.droppedNumbers.contains(where: { $0 > range.lowerBound && range.contains($0) })
      else { continue }
      let type = PostgresType(rawValue: lost.sqlType)?.oid
      let found = self.columns.first { column in
        column.number > range.lowerBound && range.contains(column.number)
          && self.registered[column.name] == nil && !fixed.contains(column.name)
          && !taken.contains(column.name) && column.typeOID == type
      }
      guard let found else { continue }
      taken.insert(found.name)
      renamed.append(
        RenamedColumn(registered: lost.name, path: lost.path, found: found.name))
    }
    return renamed
  }

  func error(_ renamed: RenamedColumn) -> PostgresError {
    let (found, name) = (
      SQLIdentifier.quoted(renamed.found), SQLIdentifier.quoted(renamed.registered)
    )
    return PostgresError(
      .configuration,
      "postgres: column \(name) of table \(self.qualifiedName), which holds field "
        + "\(renamed.path), was renamed to \(found). Run ALTER TABLE \(self.qualifiedName) "
        + "RENAME COLUMN \(found) TO \(name). To keep the new name, give the field that name "
        + "with a \"rename\" stage, and rename the column in every table of the object")
  }
}

extension TableState {
  /// A table that is probably this one after a rename: it is in the same schema, or has this name
  /// in another schema, has all of the program's own columns, and is in no bookkeeping.
  func findNamesake(
    over connection: PostgresConnection
  ) throws(PostgresError) -> String? {
    let fixed = TableDefinition.fixedColumns(self.kind).map(\.name)
    let bookkeeping = Bookkeeping(schema: self.schema).qualified("_etl_table")
    let found = try connection.query(
      """
      SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE c.relkind IN ('r', 'p') AND (n.nspname = $1 OR c.relname = $2)
      AND NOT (n.nspname = $1 AND c.relname IN (SELECT table_name FROM \(bookkeeping)))
      AND (SELECT count(*) FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid
        AND a.attname = ANY ($3::text[]) AND NOT a.attisdropped) = \(fixed.count)
      ORDER BY 1 LIMIT 1
      """, [self.schema, self.name, SQLArray.literal(fixed)])
    return found.rowCount > 0 ? found[0, 0] : nil
  }
}

extension TableState.Column {
  /// The column has the type of one of the program's own columns, without a length or precision.
  func isType(of fixed: TableDefinition.FixedColumn) -> Bool {
    self.typeOID == fixed.typeOID && self.typeModifier == -1
  }

  /// Whether values of both types have the same binary form.
  func hasForm(of other: Self) -> Bool {
    self.typeOID == other.typeOID
      || PostgresType(oid: self.typeOID).map { $0 == PostgresType(oid: other.typeOID) } ?? false
  }
}
