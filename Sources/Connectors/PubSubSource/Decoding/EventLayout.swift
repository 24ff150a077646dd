internal import Avro
internal import Pipeline

/// What is known about events of one schema before the first is decoded: columns, slots, and the
/// plan that fills them.
struct EventLayout: Sendable {
  /// Name of the header, which is field 0 of every change event (ChangeEvents.md#header).
  static let headerName = "ChangeEventHeader"

  let layout: RecordLayout
  let plan: DecodePlan
  /// Nil for platform events.
  let header: Header?
  /// UTF-8 of the layout's entity.
  let entity: [UInt8]
  /// Bytes of a bitset over the slots.
  let setByteCount: Int
  /// Fields that are a scalar or a record.
  let unions: [Union]
  /// Dates in milliseconds, whose values show whether they are dates.
  let dates: [DateField]
  /// The maximum number of arena bytes for an event's metadata, without IDs and payload.
  let metadataByteCount: Int

  /// Slots of a field that is a union of a scalar and a record.
  struct Union: Sendable {
    /// The slot of the scalar branch.
    var scalar: Int
    /// The slot of the field's presence, which decoding sets only for the record branch.
    var field: Int
  }

  struct DateField: Sendable {
    private static let day: Int64 = 86_400_000

    var slot: Int
    /// In `layout.columns`.
    var column: Int

    static func isDate(_ cell: UInt64) -> Bool { Int64(bitPattern: cell) % Self.day == 0 }
  }

  struct Header: Sendable {
    let bitmaps: FieldBitmapIndex
    /// By index in the writer schema's enum; empty if the change type is a string.
    let changeTypes: [ChangeType]
  }

  init(
    _ schema: Schema, schemaID: String, topic: String, options: EventDecodingOptions
  ) throws(EventDecodingError) {
    func mistake(
      _ reason: String, path: String = "", cause: (any Error)? = nil
    )
      -> EventDecodingError
    {
      EventDecodingError(
        code: .schema, reason: reason, path: path, topic: topic, schemaID: schemaID, cause: cause)
    }
    guard case .record(let fields) = schema[schema.root].kind,
      let name = schema[schema.root].name?.name
    else { throw mistake("the event's schema is not a record") }

    let isChangeEvent: Bool
    do throws(HeaderFault) {
      isChangeEvent = try Self.hasHeader(fields, in: schema, topic: topic)
    } catch {
      throw mistake(error.reason, path: error.hasField ? Self.headerName : "")
    }
    var planOptions = DecodePlan.Options(firstSlot: MetadataSlot.count) { field in
      SalesforceFieldType(doc: field.doc)?.meaningOfLong
    }
    if isChangeEvent {
      // The header record's presence means nothing, and this slot is filled only after the body is
      // decoded.
      planOptions.slots[[Self.headerName]] = MetadataSlot.recordID
      for field in HeaderField.all {
        let path = [Self.headerName, field.name]
        planOptions.slots[path] = field.slot
        if field.isList { planOptions.lists.insert(path) }
      }
    }
    do {
      self.plan = try DecodePlan(schema, options: planOptions, limits: options.limits)
    } catch {
      throw mistake(error.description, path: error.path, cause: error)
    }

    var columns = [
      Column(name: "_topic", path: ["_topic"], content: .constant(topic), isMetadata: true),
      Self.metadata("_replay_id", MetadataSlot.replayID, .string),
      Self.metadata("_event_id", MetadataSlot.eventID, .string),
      Column(
        name: "_schema_id", path: ["_schema_id"], content: .constant(schemaID), isMetadata: true),
      Self.metadata(
        "_kind", MetadataSlot.kind, .enumeration(EventKind.allCases.map(\.name))),
      Self.metadata("_entity", MetadataSlot.entity, .string),
    ]
    var body = self.plan.fields[...]
    var entity = name
    if isChangeEvent, let header = body.popFirst() {
      guard case .record(_, _, let headerFields) = header.content else {
        throw mistake("\(Self.headerName) cannot be flattened", path: Self.headerName)
      }
      if let field = headerFields.first(where: { !HeaderField.isAsExpected($0) }) {
        let path = field.path.joined(separator: ".")
        throw mistake("\(path) is not of the type that change events have there", path: path)
      }
      for required in ["recordIds", "changeType"]
      where !headerFields.contains(where: { $0.name == required }) {
        throw mistake("\(Self.headerName) has no field \(required)", path: Self.headerName)
      }
      columns += Self.headerColumns(headerFields, recordIDs: options.recordIDs)
      entity = TopicName.entity(ofChangeEvent: name)
      self.header = Header(
        bitmaps: FieldBitmapIndex(schema, fields: self.plan.fields),
        changeTypes: Self.changeTypes(headerFields))
    } else {
      self.header = nil
    }
    columns += body.map { Self.column($0) }
    // The member at the end of lines with numbers that are not finite.
    var names: Set<String> = ["_nonfinite"]
    for column in columns where !names.insert(column.name).inserted {
      throw mistake(
        "field \(column.path.joined(separator: ".")) has the name of a column that every line "
          + "has", path: column.path.joined(separator: "."))
    }
    self.entity = Array(entity.utf8)
    self.unions = Self.unions(body)
    self.dates = columns.enumerated().compactMap { index, column in
      guard !column.isMetadata, case .slot(let slot, .date(.milliseconds)) = column.content else {
        return nil
      }
      return DateField(slot: slot, column: index)
    }
    self.setByteCount = (self.plan.slotCount + 7) / 8
    let longestType = self.header?.changeTypes.map(\.name.count).max() ?? 0
    self.metadataByteCount =
      isChangeEvent
      ? longestType + ArenaWriter.maxDecimalByteCount + 3 * self.setByteCount : self.entity.count
    self.layout = RecordLayout(
      topic: topic, schemaID: schemaID, entity: entity,
      family: isChangeEvent ? .changeEvent : .platformEvent, slotCount: self.plan.slotCount,
      fieldOrder: Self.fieldOrder(Array(body)), columns: columns, compounds: Self.compounds(body))
  }

  /// Why the schema does not show whether events have a header.
  private struct HeaderFault: Error {
    var reason: String
    var hasField: Bool
  }

  /// Whether events of the schema have a change event header: a record in the first field that is
  /// never null.
  ///
  /// On `/event/` topics, whose events have no header, a field with that name in another place or
  /// with another type is an ordinary field. On other topics, it is an error.
  private static func hasHeader(
    _ fields: [Schema.Field], in schema: Schema, topic: String
  ) throws(HeaderFault) -> Bool {
    let index = fields.firstIndex { $0.name == Self.headerName }
    var isRecord = false
    if let index, case .record = schema[fields[index].type].kind { isRecord = true }
    if index == 0, isRecord { return true }
    if TopicName.hasPlatformEvents(topic) { return false }
    guard let index else {
      guard TopicName.hasChanges(topic) else { return false }
      throw HeaderFault(
        reason: "an event of \(topic) has a \(Self.headerName), this schema has none",
        hasField: false)
    }
    throw HeaderFault(
      reason: isRecord
        ? "\(Self.headerName) is field \(index); change events have it first"
        : "\(Self.headerName) is not simply a record, as change events have it", hasField: true)
  }

  /// The symbols of `changeType`, not of any other enum in the header.
  private static func changeTypes(_ fields: [DecodePlan.Field]) -> [ChangeType] {
    for field in fields {
      if case .value(MetadataSlot.changeType, .enumeration(let symbols)) = field.content {
        return symbols.map { ChangeType(Array($0.utf8)) }
      }
    }
    return []
  }

  // MARK: Columns

  private static func metadata(_ name: String, _ slot: Int, _ type: ColumnType) -> Column {
    Column(name: name, path: [name], content: .slot(slot, type), isMetadata: true)
  }

  private static func headerColumns(
    _ fields: [DecodePlan.Field], recordIDs: EventDecodingOptions.RecordIDs
  ) -> [Column] {
    var columns = [Self.metadata("_change_type", MetadataSlot.changeType, .string)]
    switch recordIDs {
    case .rows: columns.append(Self.metadata("_record_id", MetadataSlot.recordID, .string))
    case .array:
      columns.append(Self.metadata("_record_ids", MetadataSlot.recordIDs, .stringList))
    }
    columns += [
      Self.metadata(
        "_commit_timestamp", MetadataSlot.commitTimestamp,
        .timestamp(.milliseconds, isLocal: false)),
      Self.metadata("_commit_number", MetadataSlot.commitNumber, .string),
      Self.metadata("_commit_user", MetadataSlot.commitUser, .string),
      Self.metadata("_transaction_key", MetadataSlot.transactionKey, .string),
      Self.metadata("_sequence_number", MetadataSlot.sequenceNumber, .int32),
      Self.metadata("_change_origin", MetadataSlot.changeOrigin, .string),
      Self.metadata("_changed_fields", MetadataSlot.changedFields, .fieldSet),
      Self.metadata("_nulled_fields", MetadataSlot.nulledFields, .fieldSet),
      Self.metadata("_diff_fields", MetadataSlot.diffFields, .fieldSet),
    ]
    // Fields of future headers, unknown here, are exported, not dropped.
    for field in fields where HeaderField.named(field.name) == nil {
      var column = Self.column(field)
      column.name = "_" + Self.snakeCase(field.name)
      column.isMetadata = true
      columns.append(column)
    }
    return columns
  }

  /// `newFieldID` → `new_field_id`.
  private static func snakeCase(_ name: String) -> String {
    var result = ""
    var wasLower = false
    for character in name {
      if character.isUppercase, wasLower { result += "_" }
      wasLower = !character.isUppercase
      result += character.lowercased()
    }
    return result
  }

  /// - Parameter parent: the ID of the custom field that the field is a part of.
  private static func column(_ field: DecodePlan.Field, of parent: String? = nil) -> Column {
    let type = SalesforceFieldType(doc: field.doc)
    let fieldID = type?.fieldID.map(String.init) ?? parent.map { "\($0).\(field.name)" }
    let content: Column.Content =
      switch field.content {
      case .value(let slot, let type): .slot(slot, ColumnType(type))
      case .list(let slot): .slot(slot, .stringList)
      case .record(let slot, let scalar, let fields):
        .record(
          slot: slot,
          scalar: scalar.map { Column.ScalarBranch(slot: $0.slot, type: ColumnType($0.type)) },
          children: fields.map { Self.column($0, of: fieldID) })
      }
    var column = Column(
      name: field.name, path: field.path, content: content, salesforceType: type?.name)
    column.fieldID = fieldID
    return column
  }

  /// Includes unions within records.
  private static func unions(_ fields: some Sequence<DecodePlan.Field>) -> [Union] {
    fields.flatMap { field -> [Union] in
      guard case .record(let slot, let scalar, let children) = field.content else { return [] }
      let own = scalar.map { [Union(scalar: $0.slot, field: slot)] } ?? []
      return own + Self.unions(children)
    }
  }

  private static func compounds(
    _ fields: some Sequence<DecodePlan.Field>
  ) -> [RecordLayout.Compound] {
    fields.flatMap { field -> [RecordLayout.Compound] in
      guard case .record(let slot, _, let children) = field.content else { return [] }
      return [RecordLayout.Compound(slot: slot, path: field.path)] + Self.compounds(children)
    }
  }

  /// Level by level: fields of the event, then those of its records, each in schema order.
  private static func fieldOrder(_ fields: [DecodePlan.Field]) -> [Int] {
    var order: [Int] = []
    var level = fields
    while !level.isEmpty {
      var next: [DecodePlan.Field] = []
      for field in level {
        switch field.content {
        case .value(let slot, _), .list(let slot): order.append(slot)
        case .record(_, let scalar, let children):
          if let scalar { order.append(scalar.slot) }
          next += children
        }
      }
      level = next
    }
    return order
  }
}

extension ColumnType {
  init(_ type: ValueType) {
    switch type {
    case .boolean: self = .boolean
    case .int: self = .int32
    case .long: self = .int64
    case .float: self = .float
    case .double: self = .double
    case .enumeration(let symbols): self = .enumeration(symbols)
    case .date: self = .date(.days)
    case .dateInMilliseconds: self = .date(.milliseconds)
    case .time(let unit): self = .time(TimeUnit(unit))
    case .timestamp(let unit, let isLocal): self = .timestamp(TimeUnit(unit), isLocal: isLocal)
    case .string: self = .string
    case .bytes: self = .bytes
    case .decimal(let precision, let scale): self = .decimal(precision: precision, scale: scale)
    case .duration: self = .duration
    // The scale differs from row to row, so no numeric column type can hold all values.
    case .bigDecimal: self = .string
    case .uuid: self = .uuid
    case .stringList: self = .stringList
    case .json: self = .json
    }
  }
}

extension ColumnType.TimeUnit {
  fileprivate init(_ unit: LogicalType.TimeUnit) {
    switch unit {
    case .milliseconds: self = .milliseconds
    case .microseconds: self = .microseconds
    case .nanoseconds: self = .nanoseconds
    }
  }
}
