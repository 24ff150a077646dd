package import PostgresClient

/// The two tables of an entity whose current rows can be rebuilt.
package struct StoredTables: Sendable, Equatable {
  package var entity: String
  package var history: TableDefinition
  package var current: TableDefinition
}

/// The tables of an entity that views for reports show.
package struct ReportedTables: Sendable, Equatable {
  package var current: TableDefinition
  package var history: TableDefinition?
}

extension TableCatalog {
  /// The entities that have both tables under the names this configuration gives them, as the
  /// database and its bookkeeping describe them; sorted. Changes nothing.
  package func storedTables(
    over connection: PostgresConnection
  ) throws(PostgresError) -> [StoredTables] {
    guard try self.missingBookkeeping(over: connection).isEmpty else { return [] }
    let entities = try connection.query(
      """
      SELECT entity FROM \(self.bookkeeping.qualified("_etl_table")) \
      GROUP BY entity HAVING count(DISTINCT kind) = 2 ORDER BY entity COLLATE "C"
      """)
    var stored: [StoredTables] = []
    for row in 0..<entities.rowCount {
      guard let entity = entities[row, 0] else { continue }
      var state = try self.emptyState(ofEntity: entity, kinds: [.history, .current])
      try state.read(over: connection, bookkeeping: Set(Bookkeeping.names))
      // Tables of other names belong to another pipeline.
      guard
        state.tables.allSatisfy({
          $0.exists && $0.registeredEntity == entity && $0.registeredKind == $0.kind.rawValue
        }), let history = state.definition(.history), let current = state.definition(.current)
      else { continue }
      stored.append(StoredTables(entity: entity, history: history, current: current))
    }
    return stored
  }
}

extension TableCatalog {
  /// The entity's current table, if it exists under the configured name.
  func currentTable(
    of entity: String, over connection: PostgresConnection
  ) throws(PostgresError) -> TableDefinition? {
    guard self.configuration.mode != .history else { return nil }
    var state = try self.emptyState(ofEntity: entity, kinds: [.current])
    try state.read(over: connection, bookkeeping: Set(Bookkeeping.names))
    guard let table = state.tables.first, table.exists, table.registeredEntity == entity else {
      return nil
    }
    return state.definition(.current)
  }
}

extension EntityState {
  /// The columns that all tables have, in the first table's order. The order of the other table
  /// differs only where a column was added to it later.
  var dataColumns: [TableColumn] {
    guard let first = self.tables.first else { return [] }
    var columns: [TableColumn] = []
    for registered in first.registered {
      guard self.tables.allSatisfy({ $0.column(registered.name) != nil }),
        let actual = first.column(registered.name),
        let type = PostgresType(oid: actual.typeOID)
      else { continue }
      var column = TableColumn(
        name: registered.name, type: type, path: registered.path,
        salesforceType: registered.salesforceType, isCompound: registered.isCompound,
        ordinal: registered.ordinal)
      column.isOnlyRead = registered.isOnlyRead
      columns.append(column)
    }
    return columns
  }

  /// The tables as they exist; nil without a current table.
  var reported: ReportedTables? {
    func exists(_ kind: TableDefinition.Kind) -> Bool {
      self.tables.contains { $0.kind == kind && $0.isTable }
    }
    guard exists(.current), let current = self.definition(.current) else { return nil }
    return ReportedTables(
      current: current, history: exists(.history) ? self.definition(.history) : nil)
  }

  func definition(_ kind: TableDefinition.Kind) -> TableDefinition? {
    self.tables.first { $0.kind == kind }.map { table in
      let columns = self.dataColumns
      var otherTypes: [String: UInt32] = [:]
      for column in columns {
        guard let found = table.column(column.name)?.typeOID,
          PostgresType(oid: found) != column.type
        else { continue }
        otherTypes[column.name] = found
      }
      var definition = TableDefinition(
        kind: kind, entity: self.entity, schema: table.schema, name: table.name,
        dataColumns: columns, otherTypes: otherTypes)
      definition.hasReadColumns = table.hasReadColumns
      definition.hasUnreadColumns = table.registered.contains {
        $0.state == .hidden || $0.state == .notReadable
      }
      definition.goneColumns = Set(table.registered.filter { $0.state == .gone }.map(\.name))
      return definition
    }
  }
}
