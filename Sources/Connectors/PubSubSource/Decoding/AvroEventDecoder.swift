package import Avro
internal import Bytes
internal import JSON
package import Pipeline

/// Decodes the events of one schema on one topic into the rows of a batch.
///
/// Created once per schema ID. Decoding allocates nothing once the batch and decoder have grown to
/// the size of the events. Used by one thread at a time.
package final class AvroEventDecoder {
  /// Columns and slots of the rows. A batch for this decoder is created or emptied with this
  /// layout.
  package var layout: RecordLayout { self.compiled.layout }
  package let schemaID: String
  private let compiled: EventLayout
  private let options: EventDecodingOptions
  private let scratch = DecodeScratch()
  @exclusivity(unchecked) private var visitor = RowVisitor()
  @exclusivity(unchecked) private var listText = ByteBuffer(capacity: 256)
  /// Where the current event's bytes begin in the arena.
  @exclusivity(unchecked) private var arenaStart = 0

  /// - Throws: code `schema` for a schema that is not an event's.
  package init(
    schema: Schema, schemaID: String, topic: String,
    options: EventDecodingOptions = EventDecodingOptions()
  ) throws(EventDecodingError) {
    self.compiled = try EventLayout(schema, schemaID: schemaID, topic: topic, options: options)
    self.schemaID = schemaID
    self.options = options
  }

  /// A decoder for a schema in the service's form.
  ///
  /// - Parameter json: the Avro schema.
  /// - Throws: code `schema` for a text that is not a schema, or a schema that is not an event's.
  package convenience init(
    json: String, schemaID: String, topic: String,
    options: EventDecodingOptions = EventDecodingOptions()
  ) throws(EventDecodingError) {
    let schema: Schema
    do {
      schema = try Schema(parsing: Array(json.utf8))
    } catch {
      throw EventDecodingError(
        code: .schema, reason: "\(error)", path: "", topic: topic, schemaID: schemaID, cause: error)
    }
    try self.init(schema: schema, schemaID: schemaID, topic: topic, options: options)
  }

  /// Appends the rows of one event, and its entry in `events`, to a batch.
  ///
  /// An event has at least one row; without record IDs, that row has no `_record_id`.
  ///
  /// - Parameters:
  ///   - eventID: `ProducerEvent.id`, valid UTF-8.
  ///   - replayID: raw bytes.
  ///   - payload: Avro binary of one record of the schema, without compression.
  ///   - batch: a batch with a layout derived from this decoder's. Unchanged if an error is thrown.
  /// - Returns: the number of rows added.
  /// - Throws: `EventDecodingError`; the event belongs in the dead letters.
  @discardableResult
  package func decode(
    eventID: UnsafeBufferPointer<UInt8>, replayID: UnsafeBufferPointer<UInt8>,
    payload: UnsafeBufferPointer<UInt8>, into batch: RecordBatch
  ) throws(EventDecodingError) -> Int {
    precondition(
      batch.layout.slotCount == self.layout.slotCount && batch.layout.schemaID == self.schemaID,
      "a batch of another schema")
    let mark = (rows: batch.rowCount, arena: batch.arenaCount)
    do throws(EventDecodingError) {
      return try self.append(eventID, replayID, payload, to: batch, with: &self.visitor)
    } catch {
      self.visitor.end()
      batch.truncate(rows: mark.rows, arena: mark.arena)
      var error = error
      error.eventID = String(decoding: eventID, as: UTF8.self)
      throw error
    }
  }

  private func append(
    _ eventID: UnsafeBufferPointer<UInt8>, _ replayID: UnsafeBufferPointer<UInt8>,
    _ payload: UnsafeBufferPointer<UInt8>, to batch: RecordBatch, with visitor: inout RowVisitor
  ) throws(EventDecodingError) -> Int {
    guard payload.count <= self.options.limits.byteCount else {
      throw self.error(
        .limitExceeded,
        "a payload of \(payload.count) bytes; the limit is \(self.options.limits.byteCount)")
    }
    let index = batch.addRow()
    self.arenaStart = batch.arenaCount
    // One reservation for everything known beforehand. What the plan creates from the payload (JSON
    // text) follows and may move the arena.
    let room =
      payload.count + 3 * replayID.count + eventID.count + self.compiled.metadataByteCount
    var arena = ArenaWriter(at: batch.reserveArena(room), batch.commitArena(room))
    let payloadRange = arena.append(payload)
    var event = RecordBatch.Event(
      firstRow: index, rowCount: 1, replayID: arena.append(replayID),
      eventID: arena.append(eventID), commitTimestamp: nil, kind: .event)
    let replayText = arena.appendHexadecimal(replayID)

    visitor.begin(batch, row: index, payload: payloadRange)
    do throws(AvroError) {
      try self.compiled.plan.decode(payload, into: &visitor, scratch: self.scratch)
    } catch {
      throw EventDecodingError(
        code: error.code == .limitExceeded ? .limitExceeded : .payload, reason: error.description,
        path: error.path, byteOffset: error.byteOffset, topic: self.layout.topic,
        schemaID: self.schemaID, cause: error)
    }
    visitor.end()

    arena.move(to: batch.arenaBase)
    let row = batch.row(index)
    for union in self.compiled.unions where row.value(union.scalar) != nil {
      row.presence[union.field] = RecordBatch.Presence.value
    }
    for field in self.compiled.dates {
      guard let cell = row.value(field.slot), !EventLayout.DateField.isDate(cell) else { continue }
      throw self.error(
        .outdated,
        "the value has a time of day, and the schema says that it is a date; the field's type has "
          + "changed since",
        path: self.layout.columns[field.column].name)
    }
    row.set(MetadataSlot.replayID, to: replayText)
    row.set(MetadataSlot.eventID, to: event.eventID)
    if let header = self.compiled.header {
      try self.finish(header, &event, row, visitor, &arena, batch)
    } else {
      row.set(MetadataSlot.entity, to: arena.append(self.compiled.entity))
      row.set(MetadataSlot.kind, to: UInt64(EventKind.event.rawValue))
    }
    batch.events.append(event)
    return event.rowCount
  }

  // MARK: Change events

  /// Creates metadata from the header's raw values, applies the bitmaps and fans out.
  private func finish(
    _ header: EventLayout.Header, _ event: inout RecordBatch.Event, _ row: RecordBatch.Row,
    _ visitor: borrowing RowVisitor, _ arena: inout ArenaWriter, _ batch: RecordBatch
  ) throws(EventDecodingError) {
    var isFullImage = false
    event.kind = .change
    guard let changeType = row.value(MetadataSlot.changeType) else {
      throw self.error(
        .payload, "null, so the kind of change is not known",
        path: "\(EventLayout.headerName).changeType")
    }
    if header.changeTypes.isEmpty {
      let type = ChangeType(Array(arena.bytes(RecordBatch.Range(cell: changeType))))
      (event.kind, isFullImage) = (type.kind, type.isFullImage)
    } else {
      guard changeType < UInt64(header.changeTypes.count) else {
        throw self.error(
          .payload,
          "symbol \(changeType) of an enum that has \(header.changeTypes.count) symbols",
          path: "\(EventLayout.headerName).changeType")
      }
      let type = header.changeTypes[Int(changeType)]
      row.set(MetadataSlot.changeType, to: arena.append(type.name))
      (event.kind, isFullImage) = (type.kind, type.isFullImage)
    }
    if let cell = row.value(MetadataSlot.commitNumber) {
      row.set(
        MetadataSlot.commitNumber, to: arena.appendDecimal(Int64(bitPattern: cell)))
    }
    if let cell = row.value(MetadataSlot.commitTimestamp) {
      let time = Int64(bitPattern: cell)
      guard CommitTime.range.contains(time) else {
        throw self.error(
          .payload, "a time outside the years 1 to 9999",
          path: "\(EventLayout.headerName).commitTimestamp")
      }
      event.commitTimestamp = time
    }
    if let cell = row.value(MetadataSlot.transactionKey) {
      event.transactionKey = RecordBatch.Range(cell: cell)
    }
    try self.apply(
      visitor.changedFields, "changedFields", MetadataSlot.changedFields,
      marksNull: !isFullImage, header, row, &arena)
    try self.apply(
      visitor.nulledFields, "nulledFields", MetadataSlot.nulledFields,
      marksNull: !isFullImage, header, row, &arena)
    try self.apply(
      visitor.diffFields, "diffFields", MetadataSlot.diffFields, marksNull: false, header, row,
      &arena)
    try self.addRecords(visitor.recordIDs, &event, row, arena, batch)
  }

  private func apply(
    _ entries: [RowVisitor.Item], _ name: StaticString, _ slot: Int, marksNull: Bool,
    _ header: EventLayout.Header, _ row: RecordBatch.Row, _ arena: inout ArenaWriter
  ) throws(EventDecodingError) {
    let (set, range) = arena.appendZeroes(self.compiled.setByteCount)
    row.set(slot, to: range)
    // One bitmap for the record and one per compound field; more would only cost time.
    guard entries.count <= header.bitmaps.maxEntryCount else {
      throw self.error(
        .bitmap, "\(entries.count) bitmaps for fewer fields: is this the event's schema?",
        path: "\(EventLayout.headerName).\(name)")
    }
    for (index, entry) in entries.enumerated() {
      do throws(ChangedFieldBitmap.Fault) {
        try header.bitmaps.apply(
          ChangedFieldBitmap(arena.bytes(entry)), to: set, presence: row.presence,
          marksNull: marksNull)
      } catch {
        throw self.bitmapError(error, "\(EventLayout.headerName).\(name)", index)
      }
    }
  }

  private func addRecords(
    _ ids: [RowVisitor.Item], _ event: inout RecordBatch.Event, _ row: RecordBatch.Row,
    _ arena: ArenaWriter, _ batch: RecordBatch
  ) throws(EventDecodingError) {
    guard ids.count <= self.options.maxRecordsPerEvent else {
      throw self.error(
        .limitExceeded,
        "\(ids.count) record IDs; the limit is \(self.options.maxRecordsPerEvent)",
        path: "\(EventLayout.headerName).recordIds")
    }
    /// `001*`: all records of an object, by key prefix (ChangeEvents.md#gaps-overflows-and-wildcards).
    func kind(_ id: RowVisitor.Item) -> EventKind {
      kindOfEvent != .overflow && arena.bytes(id).last == UInt8(ascii: "*")
        ? .wildcard : kindOfEvent
    }
    let kindOfEvent = event.kind
    for (index, id) in ids.enumerated() {
      let bytes = arena.bytes(id)
      guard EventLimits.isRecordID(bytes) else {
        throw self.error(
          .payload,
          "no record ID: \(EventLimits.maxRecordIDByteCount) bytes at most, without "
            + "U+0000", path: "\(EventLayout.headerName).recordIds[\(index)]")
      }
      // A pattern, because `==` of another module's enum is a call.
      if case .wildcard = kind(id) { event.kind = .wildcard }
    }
    // Decoding has put the header's presence here (see `EventLayout`).
    row.presence[MetadataSlot.recordID] = RecordBatch.Presence.absent
    guard self.options.recordIDs == .rows, let first = ids.first else {
      row.set(MetadataSlot.kind, to: UInt64(event.kind.rawValue))
      if self.options.recordIDs == .array {
        row.set(MetadataSlot.recordIDs, to: self.appendList(ids, arena, batch))
      }
      return
    }
    try self.checkSize(ofRows: ids.count, of: event, in: batch)
    row.set(MetadataSlot.recordID, to: first)
    row.set(MetadataSlot.kind, to: UInt64(kind(first).rawValue))
    guard ids.count > 1 else { return }
    _ = batch.addCopies(ofRow: event.firstRow, count: ids.count - 1)
    event.rowCount = ids.count
    for (index, id) in ids.enumerated().dropFirst() {
      let row = batch.row(event.firstRow + index)
      row.set(MetadataSlot.recordID, to: id)
      row.set(MetadataSlot.kind, to: UInt64(kind(id).rawValue))
    }
  }

  /// Called before rows are created.
  private func checkSize(
    ofRows count: Int, of event: RecordBatch.Event, in batch: RecordBatch
  ) throws(EventDecodingError) {
    guard count > 1 else { return }
    func check(_ size: Int, _ limit: Int, _ what: String) throws(EventDecodingError) {
      guard size.multipliedReportingOverflow(by: count).overflow || size * count > limit else {
        return
      }
      throw self.error(
        .limitExceeded,
        "\(count) records of \(size) bytes of \(what) each; the limit is \(limit)",
        path: "\(EventLayout.headerName).recordIds")
    }
    try check(batch.rowByteCount, self.options.maxRowByteCount, "columns")
    // The payload is the first of the event's bytes in the arena.
    try check(batch.arenaCount - self.arenaStart, self.options.maxOutputByteCount, "values")
  }

  private func appendList(
    _ items: [RowVisitor.Item], _ arena: ArenaWriter, _ batch: RecordBatch
  ) -> RecordBatch.Range {
    self.listText.removeAll()
    self.listText.append(UInt8(ascii: "["))
    for (index, item) in items.enumerated() {
      if index > 0 { self.listText.append(UInt8(ascii: ",")) }
      self.listText.appendJSONString(arena.bytes(item))
    }
    self.listText.append(UInt8(ascii: "]"))
    return batch.append(self.listText.bytes)
  }

  // MARK: Errors

  private func error(
    _ code: EventDecodingError.Code, _ reason: String, path: String = ""
  ) -> EventDecodingError {
    EventDecodingError(
      code: code, reason: path.isEmpty ? reason : "\(path): \(reason)", path: path,
      topic: self.layout.topic, schemaID: self.schemaID)
  }

  private func bitmapError(
    _ fault: ChangedFieldBitmap.Fault, _ list: String, _ index: Int
  ) -> EventDecodingError {
    let reason =
      switch fault {
      case .malformed: "not a bitmap"
      case .index(let index, let fieldCount):
        "names field \(index), but there are \(fieldCount) fields: is this the event's schema?"
      case .parent(let parent):
        "field \(parent) is not a compound field: is this the event's schema?"
      }
    return self.error(.bitmap, reason, path: "\(list)[\(index)]")
  }
}
