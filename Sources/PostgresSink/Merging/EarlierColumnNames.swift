/// Columns by the names they had when an event was written, which its row's lists go on naming.
///
/// A field that gets another type takes its name with it to a new column, and the old one is renamed
/// (`TableEvolution`). The journal tells of every renaming, and between which of them a schema was
/// first seen; its events were written then or later.
struct EarlierColumnNames {
  /// Index of the column by name, -1 for one that is gone; from the table's making on, one more
  /// after each renaming.
  private var states: [[String: Int]]
  /// By schema ID: the state at its first sight, or after the last renaming that it caused.
  private var firstStates: [String: Int] = [:]

  struct Entry {
    var action: String
    var detail: String
    var schemaID: String
  }

  /// - Parameters:
  ///   - columns: names as they are now.
  ///   - journal: entries `rename_column` and `schema` since the table was made, in their order.
  init(_ columns: [String], journal: [Entry] = []) {
    var names = Dictionary(
      columns.enumerated().map { ($1, $0) }, uniquingKeysWith: { _, last in last })
    self.states = [names]
    let renamings = journal.filter { $0.action == "rename_column" }
    for renaming in renamings.reversed() {
      let (old, new) = Self.names(in: renaming.detail, names)
      // A column that has had the old name since was another.
      names[old] = names[new] ?? -1
      names[new] = nil
      self.states.append(names)
    }
    self.states.reverse()
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

  /// The two names in `old to new`, where either may hold the words between them.
  private static func names(in detail: String, _ names: [String: Int]) -> (String, String) {
    let splits = detail.ranges(of: " to ").map {
      (String(detail[..<$0.lowerBound]), String(detail[$0.upperBound...]))
    }
    return splits.first { names[$0.1] != nil } ?? splits.first ?? (detail, detail)
  }

  /// Whether a name always means the column that has it now.
  var areToday: Bool { self.states.count == 1 }

  /// The column of that name in events of a schema; of one that is not in the journal by the names
  /// of today. Nil when there is none, or no longer.
  func column(_ name: String, schemaID: String?) -> Int? {
    let first = schemaID.flatMap { self.firstStates[$0] } ?? self.states.count - 1
    let column = self.states[first...].lazy.compactMap { $0[name] }.first
    return column == -1 ? nil : column
  }
}
