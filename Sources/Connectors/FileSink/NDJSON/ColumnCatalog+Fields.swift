internal import Bytes
internal import DurableFiles
internal import JSON
internal import Pipeline

/// `_fields.ndjson` and `_picklist.ndjson`: what the org says about the fields of each object, and the
/// values of its picklists. The views `_fields` and `_picklist` read them.
extension ColumnCatalog {
  /// A file with a line for each row of a view.
  struct Listing {
    /// The view's name.
    var name: String
    /// With their types in DuckDB, those of the tables of that name in PostgreSQL.
    var columns: [(name: String, type: String)]

    var fileName: String { "\(self.name).ndjson" }
  }

  static let fields = Listing(
    name: "_fields",
    columns: [
      ("entity", "VARCHAR"), ("field", "VARCHAR"), ("label", "VARCHAR"), ("type", "VARCHAR"),
      ("length", "BIGINT"), ("reference_to", "VARCHAR[]"), ("formula", "VARCHAR"),
      ("help_text", "VARCHAR"), ("changed_at", "TIMESTAMPTZ"),
    ])
  static let choices = Listing(
    name: "_picklist",
    columns: [
      ("entity", "VARCHAR"), ("field", "VARCHAR"), ("value", "VARCHAR"), ("label", "VARCHAR"),
      ("is_active", "BOOLEAN"), ("is_default", "BOOLEAN"), ("position", "BIGINT"),
      ("changed_at", "TIMESTAMPTZ"),
    ])
  static let listings = [Self.fields, Self.choices]

  /// Replaces the lines of objects. Lines that are the same keep their time.
  ///
  /// - Returns: false if no object has been exported yet, so that nothing is there to describe.
  /// - Parameters:
  ///   - descriptions: by object.
  ///   - now: milliseconds since 1970.
  func setFields(
    _ descriptions: [String: [FieldDescription]], at now: Int64
  ) throws(FileSystemError) -> Bool {
    guard try self.fileSystem.size(of: "\(self.directory)/\(Self.viewsName)") != nil else {
      return false
    }
    let lock = try self.lock()
    try self.replaceLines(
      of: Self.fields, by: descriptions.mapValues { $0.map(Self.row) }, at: now)
    try self.replaceLines(
      of: Self.choices, by: descriptions.mapValues { $0.flatMap(Self.choices) }, at: now)
    _ = consume lock
    return true
  }

  /// Creates the files that do not exist, because DuckDB makes no view of a file that is missing.
  func makeFields() throws(FileSystemError) {
    for listing in Self.listings {
      let path = "\(self.directory)/\(listing.fileName)"
      if try self.fileSystem.size(of: path) == nil { try self.replace(path, with: "") }
    }
  }

  /// - Parameter rows: by object, without its name.
  private func replaceLines(
    of listing: Listing, by rows: [String: [[JSONMember]]], at now: Int64
  ) throws(FileSystemError) {
    let path = "\(self.directory)/\(listing.fileName)"
    var lines: [String: [[JSONMember]]] = [:]
    for line in try self.lines(path, of: listing.columns) {
      guard let entity = line["entity"]?.string, let members = line.members else { continue }
      lines[entity, default: []].append(members)
    }
    let time = JSONMember("changed_at", .string(UTCTime.timestamp(milliseconds: now)))
    for (entity, rows) in rows {
      let former = Dictionary(
        (lines[entity] ?? []).map { line in
          (JSONValue(.object(line.filter { $0.name != time.name })).text(), line)
        }, uniquingKeysWith: { first, _ in first })
      lines[entity] = rows.map { row in
        let row = [JSONMember("entity", .string(entity))] + row
        return former[JSONValue(.object(row)).text()] ?? row + [time]
      }
    }
    let text = lines.sorted { $0.key < $1.key }.flatMap(\.value).map {
      JSONValue(.object($0)).text() + "\n"
    }
    try self.replace(path, with: text.joined())
  }

  private static func row(of field: FieldDescription) -> [JSONMember] {
    [
      JSONMember("field", .string(field.name)), JSONMember("label", .string(field.label)),
      JSONMember("type", .string(field.type)),
      JSONMember("length", field.length.map { .integer($0) } ?? nil),
      JSONMember(
        "reference_to",
        field.references.isEmpty ? nil : .array(field.references.map { .string($0) })),
      JSONMember("formula", field.formula.map { .string($0) } ?? nil),
      JSONMember("help_text", field.helpText.map { .string($0) } ?? nil),
    ]
  }

  /// A value that the org lists twice has one line, as it has one row in PostgreSQL.
  private static func choices(of field: FieldDescription) -> [[JSONMember]] {
    var values: Set<[UInt8]> = []
    return field.choices.enumerated().compactMap { place, choice in
      guard values.insert(Array(choice.value.utf8)).inserted else { return nil }
      return [
        JSONMember("field", .string(field.name)), JSONMember("value", .string(choice.value)),
        JSONMember("label", .string(choice.label)),
        JSONMember("is_active", .boolean(choice.isActive)),
        JSONMember("is_default", .boolean(choice.isDefault)),
        JSONMember("position", .integer(place + 1)),
      ]
    }
  }
}
