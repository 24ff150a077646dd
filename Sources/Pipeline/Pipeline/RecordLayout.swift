/// One column of a layout: where its values are, and their output name.
package struct Column: Sendable, Equatable {
  package enum Content: Sendable, Equatable {
    /// The same text in every row of the layout.
    case constant(String)
    /// A cell of the row.
    case slot(Int, ColumnType)
    /// A record. The presence of the field, whichever branch it has, is in `slot` (its cell is
    /// unused); `scalar` is the cell of the scalar branch of a union of a scalar and a record
    /// (Account.Name), which is written under the record's name. If not flattened, it is written as
    /// a JSON object of its present children, or as the scalar.
    case record(slot: Int, scalar: ScalarBranch?, children: [Column])
  }

  package struct ScalarBranch: Sendable, Equatable {
    package var slot: Int
    package var type: ColumnType
    package init(slot: Int, type: ColumnType) {
      self.slot = slot
      self.type = type
    }
  }

  /// The key of the line, before escaping.
  package var name: String
  /// The path in the schema: `["BillingAddress", "City"]`; only the name for metadata.
  package var path: [String]
  package var content: Content
  /// `Data:Currency` and the like, from the schema's `doc`, without the custom field's ID.
  package var salesforceType: String?
  /// The ID of a custom field, which stays when the field gets another name; for a part of a record,
  /// followed by its name in it.
  package var fieldID: String?
  /// Whether this is one of the columns that every line has and whose names begin with `_`.
  package var isMetadata: Bool
  /// The stage `set` computed the column, so the schema does not have it.
  package var isComputed = false
  /// No event has the field, so only records that are read bring its values.
  package var isOnlyRead = false
  /// The stage `mask` has replaced its values.
  var isMasked = false

  package init(
    name: String, path: [String], content: Content, salesforceType: String? = nil,
    isMetadata: Bool = false
  ) {
    self.name = name
    self.path = path
    self.content = content
    self.salesforceType = salesforceType
    self.isMetadata = isMetadata
  }
}

/// The columns of the rows of one schema on one topic.
///
/// Created when a schema ID is first seen; stages derive new layouts from it. Slots belong to the
/// batch and keep their places; columns refer to them, so selecting, renaming and flattening cost
/// nothing per row. Sinks keep what they compile per layout in a `LayoutCache`.
@usableFromInline package final class RecordLayout: Sendable {
  package enum Family: Sendable, Hashable {
    case changeEvent
    case platformEvent
  }

  package let topic: String
  package let schemaID: String
  /// API name of the object or event: `Opportunity`, `Order_Event__e`.
  package let entity: String
  package let family: Family
  /// The number of cells in a row, including the metadata slots. Slots that stages have added come
  /// last.
  package let slotCount: Int
  /// Slots that hold fields of the schema in the order in which names are listed in
  /// `_changed_fields`: top level first, then the children of records.
  package let fieldOrder: [Int]
  package let columns: [Column]
  /// The records among the fields of the schema, each before those nested in it. Stages may flatten
  /// them, but do not remove them from this list.
  package let compounds: [Compound]

  /// A field that is a record.
  package struct Compound: Sendable, Equatable {
    /// The slot of its presence. In a set of fields, its bit says that the event names the field as
    /// a whole, in addition to the bits of its parts.
    package var slot: Int
    package var path: [String]

    package init(slot: Int, path: [String]) {
      self.slot = slot
      self.path = path
    }
  }

  /// The slot in which the stage `route` notes the sinks of a row.
  let routeSlot: Int?

  package init(
    topic: String, schemaID: String, entity: String, family: Family, slotCount: Int,
    fieldOrder: [Int], columns: [Column], compounds: [Compound] = []
  ) {
    self.topic = topic
    self.schemaID = schemaID
    self.entity = entity
    self.family = family
    self.slotCount = slotCount
    self.fieldOrder = fieldOrder
    self.columns = columns
    self.compounds = compounds
    self.routeSlot = nil
  }

  private init(
    _ other: RecordLayout, slotCount: Int, fieldOrder: [Int], columns: [Column], routeSlot: Int?
  ) {
    self.topic = other.topic
    self.schemaID = other.schemaID
    self.entity = other.entity
    self.family = other.family
    self.slotCount = slotCount
    self.fieldOrder = fieldOrder
    self.columns = columns
    self.compounds = other.compounds
    self.routeSlot = routeSlot
  }

  /// The same rows with additional slots at the end, for columns that a stage is about to add. They
  /// count as fields, so `_changed_fields` lists their names.
  package func adding(slots count: Int) -> RecordLayout {
    RecordLayout(
      self, slotCount: self.slotCount + count,
      fieldOrder: self.fieldOrder + (self.slotCount..<self.slotCount + count),
      columns: self.columns, routeSlot: self.routeSlot)
  }

  /// The same rows with an additional slot for their sinks.
  func addingRouteSlot() -> RecordLayout {
    RecordLayout(
      self, slotCount: self.slotCount + 1, fieldOrder: self.fieldOrder, columns: self.columns,
      routeSlot: self.slotCount)
  }

  /// The same rows with the fields of another layout, which only records that are read bring.
  ///
  /// - Parameter other: a layout of which each field is a single value.
  package func adding(onlyRead other: RecordLayout) -> RecordLayout {
    let added = other.columns.filter { !$0.isMetadata }.enumerated().compactMap { index, column in
      guard case .slot(_, let type) = column.content else { return nil as Column? }
      var column = column
      column.content = .slot(self.slotCount + index, type)
      column.isOnlyRead = true
      return column
    }
    return self.adding(slots: added.count).with(columns: self.columns + added)
  }

  /// The same rows with other columns.
  package func with(columns: [Column]) -> RecordLayout {
    RecordLayout(
      self, slotCount: self.slotCount, fieldOrder: self.fieldOrder, columns: columns,
      routeSlot: self.routeSlot)
  }
}

/// Slots that every layout has, whatever its schema.
@usableFromInline package enum MetadataSlot {
  // Inlined into the decoder's loop, where a stored constant of another module is a call.

  /// A string: the ID's bytes in hexadecimal.
  @inlinable package static var replayID: Int { 0 }
  /// A string.
  @inlinable package static var eventID: Int { 1 }
  /// An enumeration, `EventKind`.
  @inlinable package static var kind: Int { 2 }
  /// A string.
  @inlinable package static var entity: Int { 3 }
  /// A string: the symbol of the writer schema.
  @inlinable package static var changeType: Int { 4 }
  /// A string.
  @inlinable package static var recordID: Int { 5 }
  /// A list of strings, with "record_ids": "array" only.
  @inlinable package static var recordIDs: Int { 6 }
  /// A timestamp in milliseconds.
  @inlinable package static var commitTimestamp: Int { 7 }
  /// A string of decimal digits.
  @inlinable package static var commitNumber: Int { 8 }
  /// A string.
  @inlinable package static var commitUser: Int { 9 }
  /// A string.
  @inlinable package static var transactionKey: Int { 10 }
  /// A 32-bit integer.
  @inlinable package static var sequenceNumber: Int { 11 }
  /// A string.
  @inlinable package static var changeOrigin: Int { 12 }
  /// A set of fields.
  @inlinable package static var changedFields: Int { 13 }
  /// A set of fields.
  @inlinable package static var nulledFields: Int { 14 }
  /// A set of fields.
  @inlinable package static var diffFields: Int { 15 }
  /// The first slot of the schema's own fields.
  @inlinable package static var count: Int { 16 }
}

/// The column `_kind` (LinesAndColumns.md#a-line).
package enum EventKind: UInt8, Sendable, CaseIterable {
  case change, gap, overflow, wildcard, event
  /// A record that was read, not changed.
  case snapshot

  package var name: String {
    switch self {
    case .change: "change"
    case .gap: "gap"
    case .overflow: "overflow"
    case .wildcard: "wildcard"
    case .event: "event"
    case .snapshot: "snapshot"
    }
  }
}
