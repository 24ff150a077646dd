internal import PostgresClient

/// Finds columns by the names they had when an event was written. The lists of its row keep these
/// names.
///
/// When a field changes its type, a new column takes its name, and the old column is renamed; when it
/// gets another API name, its column is renamed (`TableEvolution`). The journal records each renaming and each schema when it was first seen;
/// the schema's events were written then or later.
struct EarlierColumnNames {
  /// Column indexes by name, -1 for a dropped column: one state at the table's creation, and one
  /// after each renaming.
  private var states: [[String: Int]]
  /// By schema ID, the state when it was first seen, or after the last renaming that it caused.
  private var firstStates: [String: Int] = [:]
  /// In the order in which they happened.
  private(set) var renamings: [(from: String, to: String)] = []

  struct Entry {
    var action: String
    var detail: String
    var schemaID: String
  }

  /// - Parameters:
  ///   - columns: current names.
  ///   - journal: entries `rename_column` and `schema` since the table was made, in their order.
  init(_ columns: [String], journal: [Entry] = []) {
    var names = Dictionary(
      columns.enumerated().map { ($1, $0) }, uniquingKeysWith: { _, last in last })
    self.states = [names]
    let renamings = journal.filter { $0.action == "rename_column" }
    for renaming in renamings.reversed() {
      let (old, new) = Self.names(in: renaming.detail, names)
      self.renamings.append((old, new))
      // A column that later had the old name is a different one.
      names[old] = names[new] ?? -1
      names[new] = nil
      self.states.append(names)
    }
    self.states.reverse()
    self.renamings.reverse()
    var state = 0
    for entry in journal {
      if entry.action == "rename_column" {
        state += 1
        self.firstStates[entry.schemaID] = state
      } else if self.firstStates[entry.schemaID] == nil {
        self.firstStates[entry.schemaID] = state
      }
    }
  }

  /// Reads the journal of a history table.
  ///
  /// - Parameter planned: renamings that a plan will have made since.
  init(
    _ history: TableDefinition, planned: [ColumnRename] = [], over connection: PostgresConnection
  ) throws(PostgresError) {
    let journal = Bookkeeping(schema: history.schema).qualified("_etl_journal")
    let entries = try connection.query(
      """
      SELECT action, detail, schema_id FROM \(journal) \
      WHERE table_name = $1 AND action IN ('rename_column', 'schema') AND id > coalesce((\
      SELECT max(id) FROM \(journal) WHERE table_name = $1 AND action = 'create_table'), 0) \
      ORDER BY id
      """, [history.name])
    self.init(
      history.dataColumns.map(\.name),
      journal: (0..<entries.rowCount).map { row in
        Entry(
          action: entries[row, 0] ?? "", detail: entries[row, 1] ?? "",
          schemaID: entries[row, 2] ?? "")
      }
        + planned.filter { $0.table == history.name }.map {
          Entry(
            action: "rename_column", detail: Bookkeeping.renaming($0.from, $0.to),
            schemaID: $0.schemaID)
        })
  }

  /// Splits `old to new`, where each name may itself contain " to ".
  private static func names(in detail: String, _ names: [String: Int]) -> (String, String) {
    let splits = detail.ranges(of: " to ").map {
      (String(detail[..<$0.lowerBound]), String(detail[$0.upperBound...]))
    }
    return splits.first { names[$0.1] != nil } ?? splits.first ?? (detail, detail)
  }

  /// Whether a name always means the column that has it now.
  var areToday: Bool { self.states.count == 1 }

  /// The column of that name in events of a schema, or by current names if the journal lacks the
  /// schema. Nil if there is none.
  func column(_ name: String, schemaID: String?) -> Int? {
    let first = schemaID.flatMap { self.firstStates[$0] } ?? self.states.count - 1
    let column = self.states[first...].lazy.compactMap { $0[name] }.first
    return column == -1 ? nil : column
  }

  /// By index of the column, the names that lists of a schema's events have, where its present name means
  /// another column in them.
  func names(_ columns: [TableColumn], schemaID: String) -> [Int: String] {
    guard !self.areToday, let first = self.firstStates[schemaID] else { return [:] }
    var names: [Int: String] = [:]
    for (index, column) in columns.enumerated()
    where self.column(column.name, schemaID: schemaID) != index {
      names[index] = self.states[first].first { $0.value == index }?.key
    }
    return names
  }

  /// IDs of the schemas in the journal.
  var schemas: [String] { self.firstStates.keys.filter { !$0.isEmpty }.sorted() }

  /// The column that had the name last.
  func newestColumn(_ name: String) -> Int? {
    let column = self.states.reversed().lazy.compactMap { $0[name] }.first
    return column == -1 ? nil : column
  }

  /// Columns of deleted fields, each with the column of the field that has its name now.
  func replacements(_ columns: [TableColumn]) -> [(old: Int, new: Int)] {
    self.renamings.enumerated().compactMap { index, renaming in
      let names = self.states[index + 1]
      guard let old = names[renaming.to], let new = names[renaming.from], old >= 0, new >= 0,
        TableEvolution.isFormerPath(columns[old].path, of: columns[new].path)
      else { return nil }
      return (old, new)
    }
  }

  /// By column of an earlier type of a field, the column that took its name, and so the field's newer
  /// values.
  func successors(_ columns: [TableColumn]) -> [Int: Int] {
    var successors: [Int: Int] = [:]
    for (index, renaming) in self.renamings.enumerated() {
      let names = self.states[index + 1]
      guard let old = names[renaming.to], let new = names[renaming.from], old >= 0, new >= 0,
        columns[old].path == columns[new].path
      else { continue }
      successors[old] = new
      successors[new] = nil
    }
    return successors
  }
}
