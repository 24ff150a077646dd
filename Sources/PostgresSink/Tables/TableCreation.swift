/// The columns of a table that is created.
///
/// What people look for comes first: `SELECT *` and the lists of tools begin with the record and its
/// fields. The columns of the program's own follow, and what later schemas add after those.
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
