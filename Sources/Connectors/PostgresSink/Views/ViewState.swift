internal import Cryptography
internal import PostgresClient

/// A view as the database describes it.
struct ViewState {
  /// Empty if the view does not exist.
  var columns: [ReportingViews.Column] = []
  /// See `fingerprint(_:)`.
  private var fingerprint = ""
  /// See `place(_:)` and `shape(_:)`.
  private var (place, shape) = ("", "")
  /// What `CREATE … WITH` needs to keep; empty without options.
  private(set) var options = ""
  /// The last entry of the journal about the view; nil without one.
  private var note: String?

  static let action = "view"

  /// - Parameters:
  ///   - name: SQL name, not quoted.
  ///   - hasJournal: `_etl_journal` exists.
  init(
    _ name: String, _ bookkeeping: Bookkeeping, over connection: PostgresConnection
  ) throws(PostgresError) {
    let found = try connection.query(
      """
      WITH v AS MATERIALIZED (SELECT c.oid, \(Self.fingerprint("r")) AS fingerprint, \
      array_to_string(c.reloptions, ', ') AS options, \(Self.shape("c.oid")) AS shape \
      FROM pg_catalog.pg_class AS c \
      JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace \
      JOIN pg_catalog.pg_rewrite AS r ON r.ev_class = c.oid AND r.rulename = '_RETURN' \
      WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind = 'v') \
      SELECT a.attname, a.atttypid, a.atttypmod, v.fingerprint, v.options, \
      to_regclass($3) IS NOT NULL, \(Self.place("$3")), v.shape \
      FROM v JOIN pg_catalog.pg_attribute AS a ON a.attrelid = v.oid AND a.attnum > 0 \
      AND NOT a.attisdropped ORDER BY a.attnum
      """, [bookkeeping.schema, name, bookkeeping.qualified("_etl_journal")])
    guard found.rowCount > 0 else { return }
    for row in 0..<found.rowCount {
      self.columns.append(
        ReportingViews.Column(
          name: found[row, 0] ?? "", typeOID: found[row, 1].flatMap { UInt32($0) } ?? 0,
          typeModifier: found[row, 2].flatMap { Int32($0) } ?? -1))
    }
    self.fingerprint = found[0, 3] ?? ""
    self.options = found[0, 4] ?? ""
    (self.place, self.shape) = (found[0, 6] ?? "", found[0, 7] ?? "")
    guard found[0, 5] == "t" else { return }
    let noted = try connection.query(
      """
      SELECT detail FROM \(bookkeeping.qualified("_etl_journal")) \
      WHERE table_name = $1 AND action = $2 ORDER BY id DESC LIMIT 1
      """, [name, Self.action])
    if noted.rowCount > 0 { self.note = noted[0, 0] }
  }

  /// The words of the note: the digest of the query, and `fingerprint`, `place` and `shape` of the
  /// view. Notes of earlier versions have the first two.
  private var noted: [Substring] { self.note?.split(separator: " ") ?? [] }

  /// The view was made by this query, and nobody has changed it since. Nil if unknown, or if it has
  /// no note that would outlast a restore, as views of earlier versions.
  func isMade(by query: String) -> Bool? {
    let noted = self.noted
    guard noted.count >= 2 else { return nil }
    guard noted[0] == Self.digest(query), noted[1] == self.fingerprint else { return false }
    return noted.count == 4 ? true : nil
  }

  /// The view is as this program made it last.
  ///
  /// In a restored or upgraded database every fingerprint is another one. Columns show there that the
  /// view is the same.
  var isOwn: Bool {
    let noted = self.noted
    guard noted.count >= 2, noted[1] != self.fingerprint else { return noted.count >= 2 }
    return noted.count == 4 && noted[2] != self.place && noted[3] == self.shape
  }

  /// SQL: a number that differs for every other definition, whatever the session's settings are, and
  /// if what the view reads was renamed since.
  private static func fingerprint(_ rule: String) -> String {
    """
    hashtextextended(\(rule).ev_action::text || (SELECT coalesce(string_agg(\
    concat_ws('.', s.relnamespace, s.relname, a.attname), ' ' ORDER BY d.refobjid, d.refobjsubid), '') \
    FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_class AS s ON s.oid = d.refobjid \
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid \
    WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.objid = \(rule).oid \
    AND d.refclassid = 'pg_catalog.pg_class'::regclass AND s.oid <> \(rule).ev_class), 0)
    """
  }

  /// SQL: identifies the database as long as it is neither restored nor upgraded. Fingerprints contain
  /// the numbers of objects and the server's own form of a query, and neither outlasts that.
  private static func place(_ journal: String) -> String {
    "concat_ws('.', to_regclass(\(journal))::oid, current_setting('server_version_num')::int / 10000)"
  }

  /// SQL: differs if a view has other columns.
  private static func shape(_ view: String) -> String {
    """
    (SELECT md5(string_agg(concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod)), ',' \
    ORDER BY a.attnum)) FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = \(view) AND a.attnum > 0)
    """
  }

  /// The statement that notes the query by which an existing view was made.
  static func note(_ name: String, _ query: String, in bookkeeping: Bookkeeping) -> String {
    let journal = bookkeeping.qualified("_etl_journal")
    return """
      INSERT INTO \(journal) (table_name, action, detail) \
      SELECT \(SQLIdentifier.literal(name)), '\(Self.action)', concat_ws(' ', \
      '\(Self.digest(query))', \(Self.fingerprint("r")), \
      \(Self.place(SQLIdentifier.literal(journal))), \(Self.shape("r.ev_class"))) \
      FROM pg_catalog.pg_rewrite AS r WHERE r.rulename = '_RETURN' \
      AND r.ev_class = \(SQLIdentifier.literal(bookkeeping.qualified(name)))::regclass
      """
  }

  static func digest(_ query: String) -> Substring {
    SHA256.hash(of: Array(query.utf8)).hex.prefix(16)
  }

  /// The table's columns that the view shows without change, by place; they follow renames.
  static func sources(
    of name: String, table: String, _ bookkeeping: Bookkeeping, over connection: PostgresConnection
  ) throws(PostgresError) -> [Int: String] {
    // The server's form of the view has the origin of each column.
    let found = try connection.query(
      """
      SELECT m[1]::int, min(s.attname) FROM pg_catalog.pg_rewrite AS r, \
      regexp_matches(r.ev_action::text, ':resno ([0-9]+) :resname [^:]+ :ressortgroupref [0-9]+ \
      :resorigtbl ([0-9]+) :resorigcol ([0-9]+)', 'g') AS m \
      JOIN pg_catalog.pg_attribute AS s ON s.attrelid = m[2]::oid AND s.attnum = m[3]::int \
      WHERE r.ev_class = to_regclass($1) AND r.rulename = '_RETURN' AND m[2]::oid = to_regclass($2) \
      GROUP BY 1 HAVING count(*) = 1
      """, [bookkeeping.qualified(name), bookkeeping.qualified(table)])
    var sources: [Int: String] = [:]
    for row in 0..<found.rowCount {
      guard let place = found[row, 0].flatMap({ Int($0) }), let column = found[row, 1] else {
        continue
      }
      sources[place - 1] = column
    }
    return sources
  }
}

/// What brings a view up to date.
struct ViewChange {
  /// How the existing view's columns, once they are renamed, compare with the required ones.
  enum Fit {
    /// The view does not exist.
    case none
    case same
    /// `CREATE OR REPLACE` may add columns at the end, nothing else.
    case extensible
    case other

    init(_ existing: [ReportingViews.Column], _ wanted: [ReportingViews.Column]) {
      self =
        existing.isEmpty
        ? .none
        : !wanted.starts(with: existing)
          ? .other : existing.count == wanted.count ? .same : .extensible
    }
  }

  /// SQL name, not quoted.
  var name: String
  var query: String
  var state: ViewState
  var fit: Fit
  /// Columns that follow those of the table.
  var renames: [(from: String, to: String)] = []
  let bookkeeping: Bookkeeping

  private var qualifiedName: String { self.bookkeeping.qualified(self.name) }

  /// Nothing has to be done.
  var isDone: Bool {
    self.fit == .same && self.renames.isEmpty && self.state.isMade(by: self.query) == true
  }

  /// Nothing is known to be left to do.
  var mayBeDone: Bool {
    self.fit == .same && self.renames.isEmpty && self.state.isMade(by: self.query) != false
  }

  /// There is a view of that name, and nobody noted it as it is now, so somebody else made it.
  var isOfAnother: Bool { self.fit != .none && !self.state.isOwn }

  var drop: String { "DROP VIEW \(self.qualifiedName)" }

  var create: String {
    let options = self.state.options.isEmpty ? "" : " WITH (\(self.state.options))"
    return "CREATE OR REPLACE VIEW \(self.qualifiedName)\(options) AS \(self.query)"
  }

  /// - Parameter hasJournal: `_etl_journal` exists, or an earlier statement creates it.
  func note(hasJournal: Bool) -> [String] {
    hasJournal ? [ViewState.note(self.name, self.query, in: self.bookkeeping)] : []
  }

  /// Renaming a column disturbs neither grants nor views that read it.
  var renaming: [String] {
    func rename(_ from: String, _ to: String) -> String {
      "ALTER VIEW \(self.qualifiedName) RENAME COLUMN \(SQLIdentifier.quoted(from)) TO "
        + SQLIdentifier.quoted(to)
    }
    let taken = Set(self.state.columns.map(\.name))
    guard self.renames.contains(where: { taken.contains($0.to) }) else {
      return self.renames.map { rename($0.from, $0.to) }
    }
    // Two columns may swap their names.
    let places = self.renames.enumerated().map { (place: "_etl_\($0.offset)", change: $0.element) }
    return places.map { rename($0.change.from, $0.place) }
      + places.map { rename($0.place, $0.change.to) }
  }
}
