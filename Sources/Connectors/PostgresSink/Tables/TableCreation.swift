/// The columns of a table that is created.
///
/// The record and its fields come first, so that `SELECT *` and the column lists of tools begin
/// with them. The program's own columns follow, then columns that later schemas add.
struct TableCreation {
  let place: Int
  private let key: [String]
  var fields: [String] = []
  private let own: [String]

  init(place: Int, _ fixed: [TableDefinition.FixedColumn]) {
    self.place = place
    self.key = fixed.filter(\.isKey).map(\.definition)
    self.own = fixed.filter { !$0.isKey }.map(\.definition)
  }

  var lines: [String] { self.key + self.fields + self.own }
}
