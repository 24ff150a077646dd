internal import DurableFiles
internal import JSON

/// `_freshness.ndjson`: a line for each object and pipeline, which the view `_freshness` reads.
extension ColumnCatalog {
  static let freshnessName = "_freshness.ndjson"

  private var freshnessPath: String { "\(self.directory)/\(Self.freshnessName)" }

  /// The lines of this pipeline.
  func freshness() throws(FileSystemError) -> [ObjectFreshness] {
    try self.freshnessLines().filter { $0.isOwn }.compactMap { ObjectFreshness(json: $0.json) }
  }

  /// Replaces the lines of this pipeline.
  func setFreshness(_ lines: [JSONValue]) throws(FileSystemError) {
    let lock = try self.lock()
    let others = try self.freshnessLines().filter { !$0.isOwn }.map(\.json)
    let text = (others + lines).map { $0.text(.compact) + "\n" }.joined()
    try self.replace(self.freshnessPath, with: text)
    _ = consume lock
  }

  /// Creates the file if it does not exist, because DuckDB makes no view of a file that is missing.
  func makeFreshness() throws(FileSystemError) {
    guard try self.fileSystem.size(of: self.freshnessPath) == nil else { return }
    try self.replace(self.freshnessPath, with: "")
  }

  /// The name of the object whose files are in a folder; nil if unknown.
  func entity(inFolder folder: String) throws(FileSystemError) -> String? {
    try self.read("\(self.directory)/\(folder)/\(Self.columnsName)")
      .flatMap { EntityColumns(parsing: $0) }?.entity
  }

  /// Lines that this program does not write, perhaps edited by hand, are left out, because nothing
  /// depends on them and a reader may fail on them.
  private func freshnessLines() throws(FileSystemError) -> [(json: JSONValue, isOwn: Bool)] {
    try self.lines(self.freshnessPath, of: DuckDBViews.lineColumns).compactMap { json in
      guard let name = json["pipeline"]?.string, json["entity"]?.string != nil else { return nil }
      return (json, name == self.pipeline)
    }
  }

  /// The lines of a file whose values the columns of a view can hold.
  ///
  /// - Parameter columns: with their types in DuckDB.
  func lines(
    _ path: String, of columns: [(name: String, type: String)]
  ) throws(FileSystemError) -> [JSONValue] {
    guard let content = try self.read(path) else { return [] }
    return content.split(separator: UInt8(ascii: "\n")).compactMap { line in
      guard let json = try? JSONValue(parsing: Array(line)),
        columns.allSatisfy({ Self.isWritten(json[$0.name], as: $0.type) })
      else { return nil }
      return json
    }
  }

  /// - Parameter type: the type of the column in DuckDB.
  private static func isWritten(_ value: JSONValue?, as type: String) -> Bool {
    guard let value, value != nil else { return true }
    return switch type {
    case "BIGINT": value.integer != nil
    case "BOOLEAN": value.boolean != nil
    case "TIMESTAMPTZ": value.string.flatMap(ObjectFreshness.milliseconds(of:)) != nil
    case "VARCHAR[]": value.array?.allSatisfy { $0.string != nil } == true
    default: value.string != nil
    }
  }
}
