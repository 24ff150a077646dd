import Bytes
import FileSink
import Pipeline

extension RecordBatch {
  /// The lines of all rows.
  func lines(_ options: NDJSONFormat = NDJSONFormat()) -> String {
    let encoder = NDJSONEncoder(layout: self.layout, format: options)
    var output = ByteBuffer(capacity: 16)
    for row in 0..<self.rowCount { encoder.append(row: row, of: self, to: &output) }
    return String(decoding: output.bytes, as: UTF8.self)
  }
}

extension Column {
  /// A field of the schema.
  init(_ name: String, _ slot: Int, _ type: ColumnType, salesforceType: String? = nil) {
    self.init(
      name: name, path: [name], content: .slot(slot, type), salesforceType: salesforceType)
  }

  /// A record with children in the given slots.
  init(
    _ name: String, _ slot: Int, scalar: ScalarBranch? = nil,
    children: [(name: String, slot: Int, type: ColumnType)]
  ) {
    self.init(
      name: name, path: [name],
      content: .record(
        slot: slot, scalar: scalar,
        children: children.map {
          Column(name: $0.name, path: [name, $0.name], content: .slot($0.slot, $0.type))
        }))
  }

  private static func metadata(_ name: String, _ content: Content) -> Column {
    Column(name: name, path: [name], content: content, isMetadata: true)
  }

  /// The columns that every line of a change event begins with.
  static func changeMetadata(topic: String, schemaID: String) -> [Column] {
    [
      .metadata("_topic", .constant(topic)),
      .metadata("_replay_id", .slot(MetadataSlot.replayID, .string)),
      .metadata("_event_id", .slot(MetadataSlot.eventID, .string)),
      .metadata("_schema_id", .constant(schemaID)),
      .metadata(
        "_kind", .slot(MetadataSlot.kind, .enumeration(EventKind.allCases.map(\.name)))),
      .metadata("_entity", .slot(MetadataSlot.entity, .string)),
      .metadata("_change_type", .slot(MetadataSlot.changeType, .string)),
      .metadata("_record_id", .slot(MetadataSlot.recordID, .string)),
      .metadata(
        "_commit_timestamp",
        .slot(MetadataSlot.commitTimestamp, .timestamp(.milliseconds, isLocal: false))),
      .metadata("_commit_number", .slot(MetadataSlot.commitNumber, .string)),
      .metadata("_commit_user", .slot(MetadataSlot.commitUser, .string)),
      .metadata("_transaction_key", .slot(MetadataSlot.transactionKey, .string)),
      .metadata("_sequence_number", .slot(MetadataSlot.sequenceNumber, .int32)),
      .metadata("_change_origin", .slot(MetadataSlot.changeOrigin, .string)),
      .metadata("_changed_fields", .slot(MetadataSlot.changedFields, .fieldSet)),
      .metadata("_nulled_fields", .slot(MetadataSlot.nulledFields, .fieldSet)),
      .metadata("_diff_fields", .slot(MetadataSlot.diffFields, .fieldSet)),
    ]
  }
}

extension RecordLayout {
  /// A layout of fields alone, in slots from 0.
  static func plain(
    _ columns: [Column], slotCount: Int, fieldOrder: [Int]? = nil,
    family: Family = .platformEvent
  ) -> RecordLayout {
    RecordLayout(
      topic: "/event/Order__e", schemaID: "s1", entity: "Order__e", family: family,
      slotCount: slotCount, fieldOrder: fieldOrder ?? Array(0..<slotCount), columns: columns)
  }
}
