package import JSON
package import Pipeline
internal import PostgresClient

/// Shows events as JSON rows of tables created for their layouts, without a connection.
///
/// Each event passes through the encoder that loads tables, and its values are read back from the
/// encoded row by the names and types of the columns. Used by one thread at a time.
package final class RowPreview {
  private struct Compiled {
    var tables: LayoutTables
    var encoder: CopyEncoder
  }

  private let catalog: TableCatalog
  private var states: [String: EntityState] = [:]
  private var compiled = LayoutCache<Compiled>()

  package init(_ configuration: PostgresSinkConfiguration) {
    var configuration = configuration
    // Without existing tables, no column can be missing.
    configuration.contract = .evolve
    self.catalog = TableCatalog(configuration)
  }

  /// One row per record of the event, with the columns of a history whatever the mode. Data columns
  /// that the event lacks are left out.
  ///
  /// - Throws: `RejectedValue`; `PostgresError` for a layout that a table cannot have.
  package func rows(ofEvent index: Int, of batch: RecordBatch) throws -> [JSONValue] {
    let compiled = try self.compiled(for: batch.layout)
    var buffer = RowBuffer(columnCount: compiled.tables.dataColumns.count)
    try compiled.encoder.append(event: index, of: batch, to: &buffer)
    return buffer.rows.map { row in
      var members = Self.metadata(buffer.bytes[row.metadata])
      for cell in buffer.cells[row.cells] {
        let column = compiled.tables.dataColumns[Int(cell.column)]
        let range = Int(cell.offset)..<Int(cell.offset) + max(0, Int(cell.count))
        members.append(
          JSONMember(
            column.name,
            cell.isNull ? nil : PostgresValue(buffer.bytes[range]).json(as: column.type)))
      }
      return JSONValue(.object(members))
    }
  }

  private func compiled(for layout: RecordLayout) throws(PostgresError) -> Compiled {
    if let known = self.compiled[layout] { return known }
    let mapping = try TableMapping(layout, self.catalog.configuration)
    let state: EntityState
    if let known = self.states[layout.entity] {
      state = known
    } else {
      state = try self.catalog.emptyState(of: mapping)
    }
    let evolution = try TableEvolution(state, mapping, self.catalog.configuration)
    self.states[layout.entity] = evolution.state
    let tables = evolution.tables
    let compiled = Compiled(
      tables: tables, encoder: CopyEncoder(layout: layout, tables: tables))
    self.compiled.insert(compiled, for: layout)
    return compiled
  }

  /// Fields of a COPY: the fixed columns of history, and then those of reads.
  private static func metadata(_ fields: ArraySlice<UInt8>) -> [JSONMember] {
    var value = PostgresValue(fields)
    var members: [JSONMember] = []
    for column in TableDefinition.allFixedColumns(.history) where column.name != "_loaded_at" {
      guard let count = value.take(Int32.self) else { break }
      guard count >= 0 else {
        members.append(JSONMember(column.name, nil))
        continue
      }
      let type = PostgresType(rawValue: column.sqlType) ?? .text
      members.append(
        JSONMember(column.name, PostgresValue(value.take(Int(count))).json(as: type)))
    }
    return members
  }
}
