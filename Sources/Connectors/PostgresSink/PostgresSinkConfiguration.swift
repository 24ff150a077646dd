package import Clocks
package import PostgresClient

/// The settings of a `postgres` sink (PipelineReference.md#sink-postgres).
package struct PostgresSinkConfiguration: Sendable, Equatable {
  package enum Mode: String, Sendable, CaseIterable {
    case both, history, current

    package var tableKinds: [TableDefinition.Kind] {
      switch self {
      case .both: [.history, .current]
      case .history: [.history]
      case .current: [.current]
      }
    }
  }

  /// What happens to the current row of a deleted record.
  package enum DeletePolicy: String, Sendable, CaseIterable {
    /// `_deleted_at` is set.
    case mark
    /// The row is deleted, its key kept in `_etl_tombstone`.
    case remove
  }

  /// What happens when a schema has columns that the tables lack.
  package enum Contract: String, Sendable, CaseIterable {
    /// They are added.
    case evolve
    /// Nothing is created or changed; the run stops and says what is missing.
    case freeze
    /// They are left out. Tables of a new entity are still created.
    case discard
  }

  /// Templates of table names; `{entity}` is the entity's name in the style of columns.
  package struct TableNames: Sendable, Equatable {
    package var current: String
    package var history: String

    package init(current: String = "{entity}", history: String = "{entity}_history") {
      self.current = current
      self.history = history
    }

    package func template(_ kind: TableDefinition.Kind) -> String {
      switch kind {
      case .current: self.current
      case .history: self.history
      }
    }
  }

  package var connection: PostgresConnectionConfiguration
  package var schema: String
  package var mode: Mode
  package var tables: TableNames
  package var columns: SQLIdentifier.Style
  package var delete: DeletePolicy
  package var contract: Contract
  /// Configured types, by the column's name in lines (`Amount`, `BillingAddress_City`) or the
  /// dotted path of its field, either with the entity before it (`Opportunity.Amount`) or without.
  package var columnTypes: [String: PostgresType]
  /// Columns to index in new tables, named as in `columnTypes` or by their SQL name; `lookups` stands
  /// for all columns with IDs of other records. The index is on the current table, or on the history
  /// if that is the only table.
  package var indexes: [String] = []
  /// How long the sink waits for a database that does not answer, and how often it tries.
  package var retry = RetrySchedule()
  /// Stages have conditions about values, which select changes, not records: the history may lack
  /// changes between those that it has.
  package var selectsChanges = false
  /// Settings for reading records in addition to the stream; nil if none are read.
  package var reads: Reads?
  /// The objects without change events, and how often they are read. Empty unless records are read.
  package var polls: [String: Duration] = [:]
  /// The keys of passes over fields that change without events.
  package var refreshes: Set<String> = []
  /// The objects of which only some records are copied. Each changed record of them is read again,
  /// to find out whether it is one of these.
  package var subsets: Set<String> = []

  package struct Reads: Sendable, Equatable {
    /// Milliseconds after which every reader sees a commit.
    package var visibilityWait: Int64

    package init(visibilityWait: Duration = .milliseconds(ReadMerge.visibilityWait)) {
      let (seconds, attoseconds) = visibilityWait.components
      self.visibilityWait = seconds * 1000 + attoseconds / 1_000_000_000_000_000
    }
  }

  package init(
    connection: PostgresConnectionConfiguration, schema: String = "salesforce", mode: Mode = .both,
    tables: TableNames = TableNames(), columns: SQLIdentifier.Style = .lower,
    delete: DeletePolicy = .mark, contract: Contract = .evolve,
    columnTypes: [String: PostgresType] = [:]
  ) {
    self.connection = connection
    self.schema = schema
    self.mode = mode
    self.tables = tables
    self.columns = columns
    self.delete = delete
    self.contract = contract
    self.columnTypes = columnTypes
  }

  /// How long a change of a table or view waits for its lock. Readers queue behind it meanwhile.
  private var lockWait: Duration {
    let limit = self.connection.lockTimeout
    return limit > .zero ? min(limit, .seconds(1)) : .seconds(1)
  }

  /// How long they are left alone before the next attempt, at least.
  var lockPause: Duration { self.lockWait * 4 }

  /// The statement that limits the waits for locks in a transaction that changes tables or views.
  var lockLimit: String {
    "SET LOCAL lock_timeout = \(max(1, Int(self.lockWait / .milliseconds(1))))"
  }

  /// The connection of a run: a database that answers nothing is noticed by the time the run gives
  /// up.
  var runConnection: PostgresConnectionConfiguration {
    var connection = self.connection
    connection.stallTimeout = self.retry.giveUpAfter
    if let limit = self.retry.giveUpAfter {
      connection.silenceTimeout = min(connection.silenceTimeout, max(limit, .seconds(5)))
    }
    return connection
  }

  /// Both sinks would write to the same table.
  package func sharesTables(_ other: Self) -> Bool {
    self.connection.url == other.connection.url && self.schema == other.schema
      && self.columns == other.columns
      && self.mode.tableKinds.contains { kind in
        other.mode.tableKinds.contains(kind)
          && self.tables.template(kind) == other.tables.template(kind)
      }
  }

  /// - Parameter column: of a table that is recreated, for which the names in lines are unknown.
  func isIndexed(_ column: TableState.Registered, of entity: String) -> Bool {
    let path = column.path.split(separator: ".").joined(separator: "_")
    return self.isIndexed([column.name, column.path, path], column.salesforceType, of: entity)
  }

  /// - Parameter names: all names that the column has.
  func isIndexed(_ names: [String], _ salesforceType: String?, of entity: String) -> Bool {
    self.indexes.contains { index in
      index == Self.lookups && salesforceType?.hasSuffix(":EntityId") == true
        || names.contains { index == $0 || index == "\(entity).\($0)" }
    }
  }

  private static let lookups = "lookups"
}
