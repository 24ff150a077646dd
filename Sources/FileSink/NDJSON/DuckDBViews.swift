/// Writes `_views.sql`: a view for each entity that reads its finished files with a type for each
/// column, so that no query depends on what DuckDB would guess from the first lines.
struct DuckDBViews {
  /// Absolute path of the sink's directory.
  let directory: String

  func text(of entities: [(directory: String, columns: EntityColumns)]) -> String {
    Self.head + entities.map { self.view(of: $0.columns, in: $0.directory) }.joined()
  }

  private static let head = """
    -- Typed DuckDB views of the files below this directory, one for each entity. Written by
    -- pubsub-etl and replaced whenever a new schema appears: do not edit.
    --
    --   duckdb -init _views.sql
    --
    -- A key that is absent from a line and an explicit null both read as NULL. In an UPDATE the
    -- difference matters: list_contains(_nulled_fields, 'Amount') is true when the field was
    -- cleared; otherwise NULL means that the event did not touch it. In a CREATE or UNDELETE NULL
    -- means null.
    -- _file is the line's file, _epoch and _first_ordinal are the place in the stream of that file's
    -- first event: files of a topic in that order, and the lines of each, are the stream.
    -- A view cannot be made before its first file is finished.

    """

  /// Columns made from the name of the file (`SegmentName`).
  private static let placeNames = ["_file", "_epoch", "_first_ordinal"]
  private static let place = [(1, "_epoch"), (2, "_first_ordinal")].map { group, name in
    ",\n  try_cast(regexp_extract(_file, '-e([0-9]+)-([0-9]+)[.]ndjson[.]zst$', \(group)) AS BIGINT)"
      + " AS \(name)"
  }.joined()

  private func view(of columns: EntityColumns, in entityDirectory: String) -> String {
    var types: [(name: String, type: String)] = []
    var decoded: [String] = []
    var skipped: [String] = []
    var seen: [String: Int] = [:]
    for entry in columns.entries {
      let type = Self.type(entry.type)
      if let index = seen[entry.name.lowercased()] {
        if types[index].name == entry.name {
          types[index].type = Self.common(types[index].type, type)
        } else {
          skipped.append(entry.name)
        }
        continue
      }
      seen[entry.name.lowercased()] = types.count
      types.append((entry.name, type))
    }
    for entry in columns.entries
    where entry.type == "bytes"
      && columns.entries.allSatisfy({ $0.name != entry.name || $0.type == "bytes" })
    {
      decoded.append(Self.identifier(entry.name))
    }
    types.append(("_nonfinite", "JSON"))

    var text = "\nCREATE OR REPLACE VIEW \(Self.identifier(columns.entity)) AS\nSELECT *"
    if !decoded.isEmpty {
      let replacements = decoded.map { "from_base64(\($0)) AS \($0)" }
      text += " REPLACE (\(replacements.joined(separator: ", ")))"
    }
    // A stage may have given one of these names to a column.
    let hasPlace = Self.placeNames.allSatisfy { seen[$0] == nil }
    if hasPlace { text += Self.place }
    let glob = "\(self.directory)/\(entityDirectory)/*/*.ndjson.zst"
    text += "\nFROM read_json(\(Self.literal(glob)),\n  format = 'newline_delimited',"
    text += "\n  hive_partitioning = true,\n"
    if hasPlace { text += "  filename = '_file',\n" }
    text += "  columns = {\n"
    text += types.map { "    \(Self.literal($0.name)): \(Self.literal($0.type))" }
      .joined(separator: ",\n")
    text += "\n  });\n"
    for name in skipped {
      // A line comment ends at the next line break.
      let shown = String(name.map { $0.isNewline ? " " : $0 })
      text += "-- Left out, since names of DuckDB do not differ in case: \(shown)\n"
    }
    return text
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

  private static func identifier(_ name: String) -> String { Self.quoted(name, "\"") }
  private static func literal(_ text: String) -> String { Self.quoted(text, "'") }

  private static func quoted(_ text: String, _ quote: Character) -> String {
    var quoted = String(quote)
    for character in text {
      quoted.append(character)
      if character == quote { quoted.append(character) }
    }
    quoted.append(quote)
    return quoted
  }
}
