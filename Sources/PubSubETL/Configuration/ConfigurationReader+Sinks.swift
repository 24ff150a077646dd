import FileSink
import JSON
import PostgresClient
import PostgresSink

extension ConfigurationReader {
  /// Empty when there is none or one is not usable.
  func sinks(_ reader: JSONReader) -> [SinkConfiguration] {
    guard let readers = reader.objects("sinks", required: true) else { return [] }
    if readers.isEmpty { reader.report("sinks", "at least one sink is expected") }
    if readers.count > Self.maxSinkCount {
      reader.report(
        "sinks",
        "\(readers.count) sinks, at most \(Self.maxSinkCount) share a pipeline; put the others into "
          + "a pipeline of their own")
    }
    var sinks: [SinkConfiguration] = []
    for sinkReader in readers {
      guard let sink = self.sink(sinkReader) else { continue }
      if sinks.contains(where: { $0.name == sink.name }) {
        sinkReader.report(
          "name",
          "two sinks have the name '\(sink.name)', which is their identity; give one another \"name\""
        )
      }
      if case .files(let files) = sink,
        sinks.contains(where: {
          if case .files(let other) = $0 { other.directory == files.directory } else { false }
        })
      {
        sinkReader.report("directory", "another sink writes to \(files.directory)")
      }
      if case .postgres(let postgres) = sink,
        let other = sinks.first(where: {
          if case .postgres(let other) = $0 {
            other.sink.sharesTables(postgres.sink)
          } else {
            false
          }
        })
      {
        sinkReader.report(
          "schema",
          "sink '\(other.name)' writes to the same tables; give one another schema, or other names "
            + "in \"tables\"")
      }
      sinks.append(sink)
    }
    return sinks
  }

  private static let maxSinkCount = 32

  /// The channel of all change events sends those of an object's own topic, too.
  func checkTopics(
    _ reader: JSONReader, _ topics: [SourceConfiguration.Topic], sinks: [SinkConfiguration]
  ) {
    let isToDatabase = sinks.contains { if case .postgres = $0 { true } else { false } }
    guard isToDatabase, topics.contains(where: { $0.name == "/data/ChangeEvents" }),
      let twice = topics.first(where: { $0.name.hasPrefix("/data/") && !$0.isChannel }),
      let source = reader.any("source")
    else { return }
    reader.mistakes.append(
      JSONMistake(
        path: "\(reader.path(of: "source"))/topic", position: source.position,
        message:
          "/data/ChangeEvents sends the events of \(twice.name), too, and in a database each "
          + "would be there twice; remove one of the two"))
  }

  private func sink(_ reader: JSONReader) -> SinkConfiguration? {
    guard let type = reader.string("type", required: true) else { return nil }
    switch type {
    case "files": return self.filesSink(reader).map { .files($0) }
    case "postgres": return self.postgresSink(reader).map { .postgres($0) }
    default:
      reader.reportUnknown("type", type, called: "sink", known: ["files", "postgres"])
      return nil
    }
  }

  private func sinkStart(_ reader: JSONReader) -> SinkStart? {
    guard reader.any("start")?.string != "earliest" else {
      reader.report(
        "start",
        "a sink that joins an old checkpoint begins at \"now\"; for what was exported before, read "
          + "the topics with a pipeline of its own, \"start\": \"earliest\"")
      return nil
    }
    return reader.choice("start")
  }

  private func postgresSink(_ reader: JSONReader) -> PostgresSinkSettings? {
    let name = self.identifier(reader, "name")
    var connection = PostgresConnectionConfiguration(url: self.text(reader, "url") ?? "")
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
    sink.schema = self.text(reader, "schema") ?? sink.schema
    sink.mode = reader.choice("mode") ?? sink.mode
    sink.columns = reader.choice("columns", called: "style") ?? sink.columns
    sink.delete = reader.choice("delete", called: "policy") ?? sink.delete
    sink.contract = reader.choice("contract") ?? sink.contract
    if let tables = reader.object("tables") {
      sink.tables.current = self.table(tables, "current") ?? sink.tables.current
      sink.tables.history = self.table(tables, "history") ?? sink.tables.history
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
    sink.indexes = self.columnNames(reader, "indexes")
    let start = self.sinkStart(reader)
    let stages = self.stages(reader)
    reader.finish()
    return PostgresSinkSettings(
      name: name ?? "postgres", start: start, sink: sink, stages: stages)
  }

  /// Empty when there are none.
  private func columnNames(_ reader: JSONReader, _ key: String) -> [String] {
    var names: [String] = []
    for (path, value) in reader.elements(key) ?? [] {
      let mistake: String? =
        switch value.string {
        case nil: "the name of a column is expected, found \(value.kind)"
        case "": "the name of a column is expected, found an empty text"
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

  private func table(_ reader: JSONReader, _ name: String) -> String? {
    guard let template = reader.string(name) else { return nil }
    if !template.contains("{entity}") {
      reader.report(name, "a name with {entity} is expected, since each entity has its own table")
    }
    return template
  }

  private func filesSink(_ reader: JSONReader) -> FilesSinkConfiguration? {
    let name = self.identifier(reader, "name")
    let directory = self.path(reader, "directory", required: true)
    var sink = FilesSinkConfiguration(name: name ?? "files", directory: directory ?? "")
    sink.int64 = reader.choice("int64", called: "form") ?? sink.int64
    sink.start = self.sinkStart(reader)
    if let compression = reader.object("compression") {
      enum Kind: String, CaseIterable { case zstd }
      _ = compression.choice("type", of: Kind.self, called: "compression")
      sink.compressionLevel = compression.integer("level", in: 1...19) ?? sink.compressionLevel
      compression.finish()
    }
    if let rotate = reader.object("rotate") {
      let day = Duration.seconds(86_400)
      sink.rotateBytes =
        rotate.byteCount("max_bytes", in: 64 << 10...1 << 40) ?? sink.rotateBytes
      sink.rotateEvents = rotate.integer("max_events", in: 1 ... .max) ?? sink.rotateEvents
      sink.rotateAge = rotate.duration("max_age", in: .seconds(1)...day * 7) ?? sink.rotateAge
      sink.rotateIdle = rotate.duration("max_idle", in: .seconds(1)...day * 7) ?? sink.rotateIdle
      rotate.finish()
    }
    sink.whenMissing = reader.choice("when_missing", called: "policy") ?? sink.whenMissing
    sink.permissions = self.permissions(reader)
    sink.stages = self.stages(reader)
    reader.finish()
    return directory == nil ? nil : sink
  }

  /// `mode` and `group`.
  private func permissions(_ reader: JSONReader) -> FileSinkConfiguration.Permissions? {
    let mode = reader.string("mode")
    let group = self.text(reader, "group")
    guard mode != nil || group != nil else { return nil }
    var permissions = FileSinkConfiguration.Permissions()
    if let mode {
      if let number = Self.fileMode(mode) {
        permissions.mode = number
      } else {
        reader.report(
          "mode",
          "a mode in octal digits is expected, with which the owner may read and write and which "
            + "makes nothing executable: \"0640\", \"0644\", \"0660\"")
      }
    }
    if let group {
      do throws(UserGroup.LookUpError) {
        permissions.groupID = try UserGroup.id(of: group)
      } catch {
        reader.report("group", error.description)
      }
    }
    return permissions
  }

  /// Read and write bits, those of the owner included; nil for anything else.
  private static func fileMode(_ text: String) -> UInt32? {
    guard (3...4).contains(text.utf8.count), let mode = UInt32(text, radix: 8),
      mode & 0o600 == 0o600, mode & ~0o666 == 0
    else { return nil }
    return mode
  }
}
