/// Writes `_views.sql`: a view for each entity that reads its finished files with explicit column
/// types, so that no query depends on the types that DuckDB guesses from the first lines.
struct DuckDBViews {
  /// Absolute path of the sink's directory.
  let directory: String

  /// An entity's directory below `directory`.
  struct Entity {
    var directory: String
    var columns: EntityColumns
    /// There is an `EmptyFile` for it.
    var hasEmptyFile: Bool
  }

  func text(of entities: [Entity]) -> String {
    guard !self.directory.utf8.contains(UInt8(ascii: "\\")) else {
      return Self.head
        + "\n-- No views: DuckDB takes the backslash in the name of this directory for a separator.\n"
    }
    var text = Self.head
    let names = Set(entities.map { Self.key($0.columns.entity) })
    // An object of that name has its own view.
    func isFree(_ name: String) -> Bool { !names.contains(Self.key(name)) }
    var seen: Set<[UInt8]> = []
    var viewed: [EntityColumns] = []
    for entity in entities {
      if seen.insert(Self.key(entity.columns.entity)).inserted {
        text += self.view(of: entity.columns, in: entity)
        if isFree(Self.currentName(of: entity.columns.entity)) {
          text += Self.currentView(of: entity.columns)
        }
        viewed.append(entity.columns)
      } else {
        text += Self.leftOut(entity.columns.entity)
      }
    }
    let users = viewed.first {
      $0.entity == "User" && Self.hasCurrentView($0) && isFree(Self.currentName(of: $0.entity))
    }
    for columns in viewed where isFree(Self.changesName(of: columns.entity)) {
      text += Self.changesView(
        of: columns, users: users, history: Self.fieldHistory(of: columns.entity, among: viewed))
    }
    if isFree(Self.freshnessName) {
      text += self.freshnessView(of: viewed) {
        Self.hasCurrentView($0) && isFree(Self.currentName(of: $0.entity))
      }
    }
    // At the end: DuckDB stops at a view whose file is missing.
    for listing in ColumnCatalog.listings where isFree(listing.name) && !viewed.isEmpty {
      text += self.view(of: listing)
    }
    return text
  }

  private static let head = """
    -- Typed DuckDB views of the files below this directory, one for each entity. Written by
    -- pubsub-etl and replaced whenever a new schema appears: do not edit.
    --
    --   duckdb -init _views.sql
    --
    -- "Opportunity" has every line. "Opportunity_now" has a row for each record with its newest
    -- values. _changed_at is the time of its last change, _read_at that of its last read.
    -- _partial: it was never read completely, so columns without a change are null. _stale: a gap
    -- event reported a change without its values.
    -- "Opportunity_changes" has a row for each changed field, with its value before and after.
    -- source is event, or field history: then the lookup OpportunityFieldHistory has the change.
    -- _freshness has a row for each object: up to when its files are complete, and its state:
    -- copying, stale, late or fresh.
    -- _fields has a row for each field of an object: its label, type, references, formula and help
    -- text. _picklist has a row for each value of a picklist, in the order of the org.
    --
    -- A key that is absent from a line and an explicit null both read as NULL. In an UPDATE the
    -- difference matters: list_contains(_nulled_fields, 'Amount') is true when the field was
    -- cleared; otherwise NULL means that the event did not touch it. In a CREATE or UNDELETE, NULL
    -- means null.
    -- Without the stage flatten, an address is one JSON column. In an UPDATE it holds the parts that
    -- changed, and the lists name the column; a part that was cleared is null in it.
    -- _file is the line's file. _file_epoch and _first_ordinal are the position in the stream of
    -- that file's first event. Files of a topic in that order, and the lines of each, are the stream.
    -- _epoch is the line's epoch. A line that has an _ordinal belongs at that position instead,
    -- after the lines of its file that have a lower ordinal or none. Such lines came from dead
    -- letters, or from a file after them.
    -- A line with _kind 'snapshot' is a record as it was read, and not an event: _system_modstamp
    -- says how new it is. The position of its file is the place before which the snapshot belongs:
    -- it contains every event of the files before. SNAPSHOT_REFRESH: only the fields in
    -- _changed_fields were read, as of _read_at. SNAPSHOT_DELETE: the record was in the recycle bin, or
    -- no longer belongs to the copy.
    -- _pipeline is the pipeline that wrote the file. If several pipelines export an entity here, its
    -- view has the lines of all, so an event appears once for each of them. Each pipeline also has a
    -- view of its own: "Opportunity@opps".
    -- A value that the column's type cannot hold, such as a date after the year 294246, reads as
    -- NULL; the file has it as text.
    -- A view without files is empty. DuckDB cannot create a view if no file matches its pattern. So
    -- each pattern also matches an empty file in a hidden directory (.pportunity for Opportunity).

    """

  /// Columns derived from the file name (`SegmentName`).
  private static let placeNames = ["_file", "_file_epoch", "_first_ordinal", "_pipeline", "_epoch"]
  private static let place =
    [(2, "_file_epoch"), (3, "_first_ordinal")].map { group, name in
      ",\n  \(Self.number(group)) AS \(name)"
    }.joined() + ",\n  \(Self.part(1)) AS _pipeline"

  private static func number(_ group: Int) -> String {
    "try_cast(\(Self.part(group)) AS BIGINT)"
  }

  private static func part(_ group: Int) -> String {
    "regexp_extract(_file,"
      + " '([^/]+)-[^-/]+-e[a-r]?([0-9]+)-([0-9]+)(-s[a-r]?[0-9]+-r[a-r]?[0-9]+-[0-9]+)?"
      + "[.]ndjson[.]zst$', \(group))"
  }

  private func view(of columns: EntityColumns, in entity: Entity) -> String {
    var (types, skipped) = Self.types(of: columns)
    var seen = Set(types.map { Self.key($0.name) })
    let decoded = columns.entries.filter { entry in
      entry.type == "bytes"
        && columns.entries.allSatisfy { $0.name != entry.name || $0.type == "bytes" }
    }.map { Self.identifier($0.name) }
    // A stage may have given one of these names to a column.
    let own = Set(columns.entries.filter { !$0.isOfReads }.map { Self.key($0.name) })
    let hasPlace = Self.placeNames.allSatisfy { !own.contains(Self.key($0)) }
    let hasReads = hasPlace && columns.entries.contains { $0.name == "_change_type" }
    if hasPlace {
      // Present in every view, so that queries are the same with and without such lines.
      for column in hasReads ? ReadColumn.all : ReadColumn.place
      where seen.insert(Self.key(column.name)).inserted {
        types.append((column.name, Self.type(column.type)))
      }
    }
    types.append(("_nonfinite", "JSON"))

    var text = "\nCREATE OR REPLACE VIEW \(Self.identifier(columns.entity)) AS\nSELECT *"
    var replacements = decoded.map { "from_base64(\($0)) AS \($0)" }
    for (name, type) in types {
      guard let value = Self.conversion(of: Self.identifier(name), to: type) else { continue }
      replacements.append("\(value) AS \(Self.identifier(name))")
    }
    let epoch = Self.number(2)
    if hasPlace { replacements.append("coalesce(_epoch, \(epoch)) AS _epoch") }
    if !replacements.isEmpty {
      text += " REPLACE (\n  \(replacements.joined(separator: ",\n  ")))"
    }
    // DuckDB would also create a column for every `name=value` directory above the files.
    let isHive = !self.directory.utf8.contains(UInt8(ascii: "=")) || !hasPlace
    if hasPlace {
      if !isHive { text += Self.date(of: columns) }
      text += Self.place
    }
    let pattern =
      entity.hasEmptyFile ? EmptyFile.pattern(of: entity.directory) : entity.directory
    let glob = "\(Self.globEscaped(self.directory))/\(pattern)/*/*.ndjson.zst"
    text += "\nFROM read_json(\(Self.literal(glob)),\n  format = 'newline_delimited',"
    // Explicit, because DuckDB treats the part of a name after `?` as the query of a URL.
    text += "\n  compression = 'zstd',"
    text += "\n  hive_partitioning = \(isHive),\n"
    if hasPlace { text += "  filename = '_file',\n" }
    text += "  columns = {\n"
    text += types.map { name, type in
      let isConverted = Self.conversion(of: "", to: type) != nil
      return "    \(Self.literal(name)): \(Self.literal(isConverted ? "VARCHAR" : type))"
    }.joined(separator: ",\n")
    text += "\n  });\n"
    for name in skipped { text += Self.leftOut(name) }
    if hasPlace, columns.pipelines.count > 1 {
      for pipeline in columns.pipelines {
        text += "\nCREATE OR REPLACE VIEW \(Self.identifier("\(columns.entity)@\(pipeline)")) AS\n"
        text += "SELECT * FROM \(Self.identifier(columns.entity)) WHERE _pipeline = "
        text += "\(Self.literal(SegmentName.pipelinePart(pipeline)));\n"
      }
    }
    return text
  }

  private func view(of listing: ColumnCatalog.Listing) -> String {
    let path = Self.globEscaped(self.directory) + "/" + listing.fileName
    let columns = listing.columns.map { "\(Self.literal($0.name)): '\($0.type)'" }
    return """

      CREATE OR REPLACE VIEW \(Self.identifier(listing.name)) AS
      SELECT * FROM read_json(\(Self.literal(path)),
        format = 'newline_delimited', hive_partitioning = false, ignore_errors = true,
        columns = {\(columns.joined(separator: ", "))});

      """
  }

  /// The columns of a view with their types, and those left out because names of DuckDB do not differ
  /// in case.
  static func types(
    of columns: EntityColumns
  ) -> (types: [(name: String, type: String)], leftOut: [String]) {
    var types: [(name: String, type: String)] = []
    var leftOut: [String] = []
    var seen: [[UInt8]: Int] = [:]
    for entry in columns.entries {
      let type = Self.type(entry.type)
      if let index = seen[Self.key(entry.name)] {
        if types[index].name == entry.name {
          types[index].type = Self.common(types[index].type, type)
        } else {
          leftOut.append(entry.name)
        }
        continue
      }
      seen[Self.key(entry.name)] = types.count
      types.append((entry.name, type))
    }
    return (types, leftOut)
  }

  /// The date of the directory, for when `hive_partitioning` cannot be used to get it.
  private static func date(of columns: EntityColumns) -> String {
    let isChange = columns.entries.contains { $0.name == "_commit_timestamp" }
    return
      ",\n  try_cast(regexp_extract(_file, '/(commit|export)_date=([0-9-]+)/[^/]*$', 2) AS DATE)"
      + " AS \(isChange ? "commit_date" : "export_date")"
  }

  /// Names that DuckDB treats as equal have the same key; it ignores the case of ASCII letters.
  private static func key(_ name: String) -> [UInt8] {
    name.utf8.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
  }

  static func isEqual(_ name: String, _ other: String) -> Bool { Self.key(name) == Self.key(other) }

  private static func leftOut(_ name: String) -> String {
    Self.comment("Left out, since names of DuckDB do not differ in case: \(name)")
  }

  /// A line comment ends at the next line break, so line breaks are removed from names.
  static func comment(_ text: String) -> String {
    var shown = ""
    for scalar in text.unicodeScalars {
      shown.unicodeScalars.append(scalar.properties.generalCategory == .control ? " " : scalar)
    }
    return "-- \(shown)\n"
  }

  /// The DuckDB type for a type of `_columns.json`.
  private static func type(_ name: String) -> String {
    switch name {
    case "boolean": "BOOLEAN"
    case "int": "INTEGER"
    case "long": "BIGINT"
    case "float": "FLOAT"
    case "double": "DOUBLE"
    case "uuid": "UUID"
    case "date": "DATE"
    case "time-millis", "time-micros", "time-nanos": "TIME"
    case "timestamp-millis", "timestamp-micros", "timestamp-nanos": "TIMESTAMPTZ"
    case "local-timestamp-millis", "local-timestamp-micros": "TIMESTAMP"
    case "local-timestamp-nanos": "TIMESTAMP_NS"
    case "duration": "STRUCT(months UINTEGER, days UINTEGER, milliseconds UINTEGER)"
    case "array<string>": "VARCHAR[]"
    case "record", "union", "json": "JSON"
    default: Self.decimal(name) ?? "VARCHAR"
    }
  }

  /// The value of a column that is read as text, since one value that its type cannot hold would
  /// fail the query; nil for types that hold every value of theirs.
  private static func conversion(of column: String, to type: String) -> String? {
    switch type {
    // The sign of years after 9999 (ISO 8601) is unknown to DuckDB.
    case "DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_NS":
      "try_cast(ltrim(\(column), '+') AS \(type))"
    case "TIME", "UUID": "try_cast(\(column) AS \(type))"
    default: type.hasPrefix("DECIMAL") ? "try_cast(\(column) AS \(type))" : nil
    }
  }

  /// `DECIMAL(10,2)` for `decimal(10,2)`; nil for other types and for more digits than DuckDB has.
  private static func decimal(_ name: String) -> String? {
    guard name.hasPrefix("decimal("), name.hasSuffix(")") else { return nil }
    let numbers = name.dropFirst(8).dropLast().split(separator: ",").map { Int($0) ?? -1 }
    guard numbers.count == 2, (1...38).contains(numbers[0]), (0...numbers[0]).contains(numbers[1])
    else { return nil }
    return "DECIMAL(\(numbers[0]),\(numbers[1]))"
  }

  /// A type that can hold values of both, for a column whose type has changed.
  private static func common(_ left: String, _ right: String) -> String {
    if left == right { return left }
    let order = ["INTEGER", "BIGINT", "DOUBLE"]
    func rank(_ type: String) -> Int? { order.firstIndex(of: type == "FLOAT" ? "DOUBLE" : type) }
    if let left = rank(left), let right = rank(right) { return order[max(left, right)] }
    let structured = ["JSON", "VARCHAR[]"]
    let isStructured = [left, right].contains { structured.contains($0) || $0.hasPrefix("STRUCT") }
    return isStructured ? "JSON" : "VARCHAR"
  }

  static func identifier(_ name: String) -> String { Self.quoted(name, "\"") }
  static func literal(_ text: String) -> String { Self.quoted(text, "'") }

  /// Compares scalars, because a quote followed by a combining character is a single `Character`
  /// that is not a quote.
  private static func quoted(_ text: String, _ quote: Unicode.Scalar) -> String {
    var quoted = ""
    quoted.unicodeScalars.append(quote)
    for scalar in text.unicodeScalars {
      quoted.unicodeScalars.append(scalar)
      if scalar == quote { quoted.unicodeScalars.append(scalar) }
    }
    quoted.unicodeScalars.append(quote)
    return quoted
  }

  /// A path as a pattern that matches only itself: special characters become character classes.
  static func globEscaped(_ path: String) -> String {
    var escaped = ""
    for scalar in path.unicodeScalars {
      switch scalar {
      case "*", "?", "[":
        escaped += "[\(scalar)]"
      default:
        escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }
}
