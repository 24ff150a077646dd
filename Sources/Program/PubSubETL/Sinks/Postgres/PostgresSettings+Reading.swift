import JSON
import PostgresClient
import PostgresSink

extension PostgresSettings {
  init?(reading reader: JSONReader, with configuration: ConfigurationReader) {
    let name = configuration.identifier(reader, "name")
    var connection = PostgresConnectionConfiguration(url: configuration.text(reader, "url") ?? "")
    if let mistake = PostgresConnectionConfiguration.mistake(in: connection.url) {
      reader.report("url", mistake)
    }
    let hour = Duration.seconds(3600)
    connection.statementTimeout =
      reader.duration("statement_timeout", in: .seconds(1)...hour * 24)
      ?? connection.statementTimeout
    connection.lockTimeout =
      reader.duration("lock_timeout", in: .milliseconds(1)...hour) ?? connection.lockTimeout
    var sink = PostgresSinkConfiguration(connection: connection)
    sink.schema = configuration.text(reader, "schema") ?? sink.schema
    sink.mode = reader.choice("mode") ?? sink.mode
    sink.columns = reader.choice("columns", called: "style") ?? sink.columns
    sink.delete = reader.choice("delete", called: "policy") ?? sink.delete
    sink.contract = reader.choice("contract") ?? sink.contract
    if let tables = reader.object("tables") {
      sink.tables.current = Self.table(tables, "current") ?? sink.tables.current
      sink.tables.history = Self.table(tables, "history") ?? sink.tables.history
      tables.finish()
    }
    if let types = reader.object("column_types") {
      for member in reader.any("column_types")?.members ?? [] where member.name != "//" {
        guard let text = types.string(member.name) else { continue }
        guard let type = PostgresType(named: text) else {
          let known = PostgresType.allCases.map(\.sqlName)
          types.reportUnknown(member.name, text, called: "type", known: known)
          continue
        }
        sink.columnTypes[member.name] = type
      }
      types.finish()
    }
    sink.indexes = Self.columnNames(reader, "indexes")
    self.init(sink: sink)
    self.name = name ?? self.name
    self.start = configuration.sinkStart(reader)
    self.stages = configuration.stages(reader)
  }

  /// Empty when there are none.
  private static func columnNames(_ reader: JSONReader, _ key: String) -> [String] {
    var names: [String] = []
    for (path, value) in reader.elements(key) ?? [] {
      let mistake: String? =
        switch value.string {
        case nil: "expected the name of a column, found \(value.kind)"
        case "": "expected the name of a column, found an empty text"
        case .some(let name): names.contains(name) ? "column '\(name)' is listed twice" : nil
        }
      if let mistake {
        reader.mistakes.append(
          JSONMistake(path: path, position: value.position, message: mistake))
      } else if let name = value.string {
        names.append(name)
      }
    }
    return names
  }

  private static func table(_ reader: JSONReader, _ name: String) -> String? {
    guard let template = reader.string(name) else { return nil }
    if !template.contains("{entity}") {
      reader.report(name, "expected a name with {entity}, since each entity has its own table")
    }
    return template
  }
}
