public import Avro
internal import JSON
public import Pipeline

/// Decodes the events of one schema on one topic into the rows of a batch.
///
/// Made once per schema ID. An event allocates nothing once batch and decoder have grown to the
/// size of what they see. Used by one thread at a time.
public final class AvroEventDecoder {
  /// Columns and slots of the rows. A batch for this decoder is made or emptied with it.
  public var layout: RecordLayout { self.compiled.layout }
  public let schemaID: String
  private let compiled: EventLayout
  private let options: EventDecodingOptions
  private let scratch = DecodeScratch()
  private var visitor = RowVisitor()
  private var listText = ByteBuffer(capacity: 256)
  /// Bytes of a bitset over the slots.
  private let setByteCount: Int
  private let platformEntity: [UInt8]

  /// - Throws: code `schema` for a schema that no event has.
  public init(
    schema: Schema, schemaID: String, topic: String,
    options: EventDecodingOptions = EventDecodingOptions()
  ) throws(EventDecodingError) {
    self.compiled = try EventLayout(schema, schemaID: schemaID, topic: topic, options: options)
    self.schemaID = schemaID
    self.options = options
    self.setByteCount = (self.compiled.layout.slotCount + 7) / 8
    self.platformEntity = Array(self.compiled.layout.entity.utf8)
  }

  /// Appends the rows of one event, and its entry in `events`, to a batch.
  ///
  /// An event makes at least one row: without record IDs it has none in `_record_id`.
  ///
  /// - Parameters:
  ///   - eventID: `ProducerEvent.id`, valid UTF-8.
  ///   - replayID: raw bytes.
  ///   - payload: Avro binary of one record of the schema, without compression.
  ///   - batch: of a layout that comes from this decoder's. Left as it was when an error is thrown.
  /// - Returns: how many rows were added.
  /// - Throws: `EventDecodingError`; the event belongs into the dead letter.
  @discardableResult
  public func decode(
    eventID: UnsafeBufferPointer<UInt8>, replayID: UnsafeBufferPointer<UInt8>,
    payload: UnsafeBufferPointer<UInt8>, into batch: RecordBatch
  ) throws(EventDecodingError) -> Int {
    precondition(
      batch.layout.slotCount == self.layout.slotCount && batch.layout.schemaID == self.schemaID,
      "a batch of another schema")
    let mark = (rows: batch.rowCount, arena: batch.arenaCount)
    do throws(EventDecodingError) {
      return try self.append(eventID, replayID, payload, to: batch)
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
    _ payload: UnsafeBufferPointer<UInt8>, to batch: RecordBatch
  ) throws(EventDecodingError) -> Int {
    guard payload.count <= self.options.limits.byteCount else {
      throw self.error(
        .limitExceeded,
        "a payload of \(payload.count) bytes; the limit is \(self.options.limits.byteCount)")
    }
    let row = batch.addRow()
    self.visitor.begin(batch, row: row, payload: batch.append(payload))
    do throws(AvroError) {
      try self.compiled.plan.decode(payload, into: &self.visitor, scratch: self.scratch)
    } catch {
      throw EventDecodingError(
        code: error.code == .limitExceeded ? .limitExceeded : .payload, reason: error.description,
        path: error.path, byteOffset: error.byteOffset, topic: self.layout.topic,
        schemaID: self.schemaID, cause: error)
    }
    self.visitor.end()

    var event = RecordBatch.Event(
      firstRow: row, rowCount: 1, replayID: batch.append(replayID),
      eventID: batch.append(eventID), commitTimestamp: nil, kind: .event)
    let cells = batch.cells(ofRow: row)
    let presence = batch.presence(ofRow: row)
    Self.set(MetadataSlot.replayID, to: batch.appendHexadecimal(replayID), cells, presence)
    Self.set(MetadataSlot.eventID, to: event.eventID, cells, presence)
    if let header = self.compiled.header {
      try self.finish(header, &event, cells, presence, batch)
    } else {
      let entity = self.platformEntity.withUnsafeBufferPointer { batch.append($0) }
      Self.set(MetadataSlot.entity, to: entity, cells, presence)
      cells[MetadataSlot.kind] = UInt64(EventKind.event.rawValue)
      presence[MetadataSlot.kind] = RecordBatch.Presence.value
    }
    batch.events.append(event)
    return event.rowCount
  }

  // MARK: Change events

  /// Makes metadata of the header's raw values, applies the bitmaps and fans out.
  private func finish(
    _ header: EventLayout.Header, _ event: inout RecordBatch.Event,
    _ cells: UnsafeMutablePointer<UInt64>, _ presence: UnsafeMutablePointer<UInt8>,
    _ batch: RecordBatch
  ) throws(EventDecodingError) {
    var isFullImage = false
    event.kind = .change
    if presence[MetadataSlot.changeType] != RecordBatch.Presence.value {
      // A null one, which no known schema allows: a change of unknown type.
    } else if header.changeTypes.isEmpty {
      let name = batch.bytes(RecordBatch.Range(cell: cells[MetadataSlot.changeType]))
      let type = ChangeType(Array(name))
      (event.kind, isFullImage) = (type.kind, type.isFullImage)
    } else {
      // The plan has checked the index.
      let type = header.changeTypes[Int(cells[MetadataSlot.changeType])]
      let name = type.name.withUnsafeBufferPointer { batch.append($0) }
      cells[MetadataSlot.changeType] = name.cell
      (event.kind, isFullImage) = (type.kind, type.isFullImage)
    }
    if presence[MetadataSlot.commitNumber] == RecordBatch.Presence.value {
      let number = Int64(bitPattern: cells[MetadataSlot.commitNumber])
      cells[MetadataSlot.commitNumber] = batch.appendDecimal(number).cell
    }
    if presence[MetadataSlot.commitTimestamp] == RecordBatch.Presence.value {
      event.commitTimestamp = Int64(bitPattern: cells[MetadataSlot.commitTimestamp])
    }
    if presence[MetadataSlot.transactionKey] == RecordBatch.Presence.value {
      event.transactionKey = RecordBatch.Range(cell: cells[MetadataSlot.transactionKey])
    }
    try self.apply(
      self.visitor.changedFields, "changedFields", MetadataSlot.changedFields,
      marksNull: !isFullImage, header, cells, presence, batch)
    try self.apply(
      self.visitor.nulledFields, "nulledFields", MetadataSlot.nulledFields,
      marksNull: !isFullImage, header, cells, presence, batch)
    try self.apply(
      self.visitor.diffFields, "diffFields", MetadataSlot.diffFields,
      marksNull: false, header, cells, presence, batch)
    try self.addRecords(&event, cells, presence, batch)
  }

  private func apply(
    _ entries: [RowVisitor.Item], _ name: StaticString, _ slot: Int, marksNull: Bool,
    _ header: EventLayout.Header, _ cells: UnsafeMutablePointer<UInt64>,
    _ presence: UnsafeMutablePointer<UInt8>, _ batch: RecordBatch
  ) throws(EventDecodingError) {
    let set = batch.reserveArena(self.setByteCount)
    set.update(repeating: 0, count: self.setByteCount)
    Self.set(slot, to: batch.commitArena(self.setByteCount), cells, presence)
    for (index, entry) in entries.enumerated() {
      do throws(ChangedFieldBitmap.Fault) {
        try header.bitmaps.apply(
          ChangedFieldBitmap(batch.bytes(entry)), to: set, presence: presence,
          marksNull: marksNull)
      } catch {
        throw self.bitmapError(error, "\(EventLayout.headerName).\(name)", index)
      }
    }
  }

  private func addRecords(
    _ event: inout RecordBatch.Event, _ cells: UnsafeMutablePointer<UInt64>,
    _ presence: UnsafeMutablePointer<UInt8>, _ batch: RecordBatch
  ) throws(EventDecodingError) {
    let ids = self.visitor.recordIDs
    guard ids.count <= self.options.maxRecordsPerEvent else {
      throw self.error(
        .limitExceeded,
        "\(ids.count) record IDs; the limit is \(self.options.maxRecordsPerEvent)",
        path: "\(EventLayout.headerName).recordIds")
    }
    let kind = event.kind
    let hasWildcard = ids.contains { self.isWildcard($0, batch) }
    if hasWildcard, kind != .overflow { event.kind = .wildcard }
    // The header's presence was put here (see `EventLayout`).
    presence[MetadataSlot.recordID] = RecordBatch.Presence.absent
    presence[MetadataSlot.kind] = RecordBatch.Presence.value
    switch self.options.recordIDs {
    case .array:
      cells[MetadataSlot.kind] = UInt64(event.kind.rawValue)
      Self.set(MetadataSlot.recordIDs, to: self.appendList(ids, batch), cells, presence)
    case .rows:
      cells[MetadataSlot.kind] = UInt64(kind.rawValue)
      if ids.count > 1 {
        _ = batch.addCopies(ofRow: event.firstRow, count: ids.count - 1)
        event.rowCount = ids.count
      }
      for (index, id) in ids.enumerated() {
        let cells = batch.cells(ofRow: event.firstRow + index)
        let presence = batch.presence(ofRow: event.firstRow + index)
        Self.set(MetadataSlot.recordID, to: id, cells, presence)
        if hasWildcard, kind != .overflow, self.isWildcard(id, batch) {
          cells[MetadataSlot.kind] = UInt64(EventKind.wildcard.rawValue)
        }
      }
    }
  }

  /// `001*`: all records of an object, by key prefix (contract/cdc.md section 5).
  private func isWildcard(_ id: RowVisitor.Item, _ batch: RecordBatch) -> Bool {
    batch.bytes(id).last == UInt8(ascii: "*")
  }

  private func appendList(_ items: [RowVisitor.Item], _ batch: RecordBatch) -> RecordBatch.Range {
    self.listText.removeAll()
    self.listText.append(UInt8(ascii: "["))
    for (index, item) in items.enumerated() {
      if index > 0 { self.listText.append(UInt8(ascii: ",")) }
      self.listText.appendJSONString(batch.bytes(item))
    }
    self.listText.append(UInt8(ascii: "]"))
    return batch.append(self.listText.bytes)
  }

  @inline(__always)
  private static func set(
    _ slot: Int, to range: RecordBatch.Range, _ cells: UnsafeMutablePointer<UInt64>,
    _ presence: UnsafeMutablePointer<UInt8>
  ) {
    cells[slot] = range.cell
    presence[slot] = RecordBatch.Presence.value
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
        "field \(parent) is no compound field: is this the event's schema?"
      }
    return self.error(.bitmap, reason, path: "\(list)[\(index)]")
  }
}

extension RecordBatch {
  fileprivate func appendHexadecimal(_ bytes: UnsafeBufferPointer<UInt8>) -> Range {
    let digits: StaticString = "0123456789abcdef"
    var out = self.reserveArena(bytes.count * 2)
    for byte in bytes {
      out[0] = digits.utf8Start[Int(byte >> 4)]
      out[1] = digits.utf8Start[Int(byte & 15)]
      out += 2
    }
    return self.commitArena(bytes.count * 2)
  }

  fileprivate func appendDecimal(_ value: Int64) -> Range {
    let out = self.reserveArena(20)
    var first = 20
    var rest = value.magnitude
    repeat {
      first -= 1
      out[first] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
      rest /= 10
    } while rest != 0
    if value < 0 {
      first -= 1
      out[first] = UInt8(ascii: "-")
    }
    out.update(from: out + first, count: 20 - first)
    return self.commitArena(20 - first)
  }
}
