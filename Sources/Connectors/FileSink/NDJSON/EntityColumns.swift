internal import Bytes
internal import JSON
internal import Pipeline

/// The columns of all schemas of an entity: the content of `_columns.json`.
struct EntityColumns: Equatable {
  struct Entry: Equatable {
    var name: String
    /// The type as `Column.Content.typeName` writes it.
    var type: String
    /// `Data:Currency` and the like; nil for metadata and for platform fields without a type.
    var salesforceType: String?
    /// The schema in which the column first had this type.
    var firstSchemaID: String
    /// One of `ReadColumn`.
    var isOfReads = false
  }

  var entity: String
  /// The pipelines that have written the entity here, sorted; those of versions that did not note
  /// them are missing until they run again.
  var pipelines: [String] = []
  /// In the order of lines. A column whose type has changed has an entry for each type.
  var entries: [Entry] = []

  init(entity: String) { self.entity = entity }

  /// Adds new columns of a layout, each after the column that precedes it there.
  ///
  /// - Parameter isOfReads: the layout's rows are records that were read.
  mutating func merge(_ layout: RecordLayout, pipeline: String, isOfReads: Bool = false) {
    if !self.pipelines.contains(pipeline) {
      self.pipelines.append(pipeline)
      self.pipelines.sort()
    }
    var place = 0
    // Only existing columns are searched, because a service may keep sending schemas with new
    // fields.
    var names = Set(self.entries.map(\.name))
    for column in layout.columns {
      let type = column.content.typeName
      let isNew = names.insert(column.name).inserted
      let known = isNew ? nil : self.place(of: column.name, type, near: place)
      if let known {
        self.entries[known].salesforceType =
          column.salesforceType ?? self.entries[known].salesforceType
        place = known + 1
        continue
      }
      if !isNew, let other = self.entries.lastIndex(where: { $0.name == column.name }) {
        place = other + 1
      }
      self.entries.insert(
        Entry(
          name: column.name, type: type, salesforceType: column.salesforceType,
          firstSchemaID: layout.schemaID), at: place)
      place += 1
    }
    if isOfReads { self.addReadColumns(layout) }
  }

  /// Adds the columns of records that were read, after those that every line has.
  private mutating func addReadColumns(_ layout: RecordLayout) {
    let metadata = Set(layout.columns.filter(\.isMetadata).map(\.name))
    var place = self.entries.lastIndex { metadata.contains($0.name) || $0.isOfReads } ?? -1
    for column in ReadColumn.all
    where !self.entries.contains(where: { $0.name == column.name }) {
      place += 1
      self.entries.insert(
        Entry(
          name: column.name, type: column.type, firstSchemaID: layout.schemaID, isOfReads: true),
        at: place)
    }
  }

  /// Columns mostly have the same place as in the previous schema, so the search starts there.
  private func place(of name: String, _ type: String, near place: Int) -> Int? {
    func isIt(_ entry: Entry) -> Bool { entry.name == name && entry.type == type }
    if place < self.entries.count, isIt(self.entries[place]) { return place }
    return self.entries.lastIndex(where: isIt)
  }
}

extension EntityColumns {
  /// - Parameter text: the content of a file. The result is nil if `text` does not write such
  ///   content.
  init?(parsing text: [UInt8]) {
    guard let value = try? JSONValue(parsing: text), let entity = value["entity"]?.string,
      let columns = value["columns"]?.array
    else { return nil }
    self.entity = entity
    self.pipelines = (value["pipelines"]?.array ?? []).compactMap(\.string)
    for column in columns {
      guard let name = column["name"]?.string, let type = column["type"]?.string,
        let firstSchemaID = column["first_schema_id"]?.string
      else { return nil }
      self.entries.append(
        Entry(
          name: name, type: type, salesforceType: column["salesforce_type"]?.string,
          firstSchemaID: firstSchemaID,
          isOfReads: column["snapshot"]?.boolean ?? false))
    }
  }

  /// The content of the file, one line per column.
  var text: String {
    var buffer = ByteBuffer()
    buffer.append(utf8: "{\n  \"entity\": ")
    buffer.appendJSONString(self.entity)
    buffer.append(utf8: ",\n  \"pipelines\": ")
    JSONValue.array(self.pipelines.map { .string($0) }).write(to: &buffer)
    buffer.append(utf8: ",\n  \"columns\": [")
    for (index, entry) in self.entries.enumerated() {
      buffer.append(utf8: index == 0 ? "\n    " : ",\n    ")
      var members = [
        JSONMember("name", .string(entry.name)), JSONMember("type", .string(entry.type)),
      ]
      if let type = entry.salesforceType {
        members.append(JSONMember("salesforce_type", .string(type)))
      }
      members.append(JSONMember("first_schema_id", .string(entry.firstSchemaID)))
      if entry.isOfReads { members.append(JSONMember("snapshot", true)) }
      JSONValue(.object(members)).write(to: &buffer)
    }
    buffer.append(utf8: "\n  ]\n}\n")
    return String(decoding: buffer.bytes, as: UTF8.self)
  }
}
