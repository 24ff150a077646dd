internal import Avro
internal import Pipeline

/// Which slots the bits of a header's bitmaps represent, by position in the writer schema.
struct FieldBitmapIndex: Sendable {
  /// A field of the schema.
  struct Node: Sendable {
    /// Slot of the value, or of a flattened record's presence; -1 for the header, which is not a
    /// field of a row.
    var slot: Int
    /// Slot of the scalar branch of a union of a scalar and a record; -1 without one.
    var scalarSlot = -1
    /// The index in `nodes` of a flattened record's first field; -1 for all other fields.
    var firstChild = -1
    /// The number of fields of a record, even if it is kept as JSON; -1 for all other fields.
    var childCount = -1
  }

  /// The fields of the root record, then those of nested records.
  private let nodes: [Node]
  private let fieldCount: Int
  /// The maximum number of entries in a list: one for the record, and one for each compound field.
  var maxEntryCount: Int { self.fieldCount + 1 }

  /// - Parameter fields: the fields of the root record, including the header.
  init(_ schema: Schema, fields: [DecodePlan.Field]) {
    guard case .record(let rootFields) = schema[schema.root].kind else {
      preconditionFailure("the schema of an event is a record")
    }
    var nodes: [Node] = []
    self.fieldCount = fields.count
    // Breadth first, so that the fields of a record are adjacent.
    var queue = Array(zip(fields, rootFields))[...]
    nodes.reserveCapacity(queue.count)
    var filled = 0
    nodes += queue.map { _ in Node(slot: -1) }
    while let (field, schemaField) = queue.popFirst() {
      let childFields = schema.recordFields(of: schemaField.type)
      var node = Node(slot: -1, childCount: childFields?.count ?? -1)
      switch field.content {
      case _ where field.path == [EventLayout.headerName], .list:
        break  // The header, and lists, which only the header has.
      case .value(let slot, _):
        node.slot = slot
      case .record(let slot, let scalar, let children):
        node.slot = slot
        node.scalarSlot = scalar?.slot ?? -1
        node.firstChild = nodes.count
        queue += zip(children, childFields ?? [])
        nodes += children.map { _ in Node(slot: -1) }
      }
      nodes[filled] = node
      filled += 1
    }
    self.nodes = nodes
  }

  /// Sets the bits of the slots that a bitmap names.
  ///
  /// - Parameters:
  ///   - set: a bitset over the slots; the least significant bit of the first byte is slot 0.
  ///   - presence: the row's presence, after its values have been decoded. It decides which slots
  ///     represent a compound field as a whole.
  ///   - marksNull: whether slots in the bitmap without a value become null.
  func apply(
    _ bitmap: ChangedFieldBitmap, to set: UnsafeMutablePointer<UInt8>,
    presence: UnsafeMutablePointer<UInt8>, marksNull: Bool
  ) throws(ChangedFieldBitmap.Fault) {
    guard let parentIndex = bitmap.parent else {
      try bitmap.forEachIndex(below: self.fieldCount) {
        self.mark($0, set, presence, marksNull: marksNull)
      }
      return
    }
    guard parentIndex < self.fieldCount, self.nodes[parentIndex].childCount >= 0 else {
      throw .parent(parentIndex)
    }
    let parent = self.nodes[parentIndex]
    try bitmap.forEachIndex(below: parent.childCount) { index in
      guard parent.firstChild >= 0 else {
        // A record kept as JSON has a single slot.
        self.mark(parentIndex, set, presence, marksNull: marksNull)
        return
      }
      self.mark(parent.firstChild + index, set, presence, marksNull: marksNull)
      // A null parent with nulled fields becomes an object with only these nulls.
      if marksNull, parent.slot >= 0, presence[parent.slot] == RecordBatch.Presence.absent,
        parent.scalarSlot < 0 || presence[parent.scalarSlot] != RecordBatch.Presence.value
      {
        presence[parent.slot] = RecordBatch.Presence.value
      }
    }
  }

  /// Marks a field as a whole: its slot and, if it is a record, the slots of the parts that the row
  /// holds, or all of them if it is null.
  private func mark(
    _ index: Int, _ set: UnsafeMutablePointer<UInt8>, _ presence: UnsafeMutablePointer<UInt8>,
    marksNull: Bool
  ) {
    let node = self.nodes[index]
    guard node.slot >= 0 else { return }
    guard node.firstChild >= 0 else {
      Self.markSlot(node.slot, set, presence, marksNull: marksNull)
      return
    }
    set[node.slot >> 3] |= 1 << (node.slot & 7)
    if node.scalarSlot >= 0 {
      let isScalar = presence[node.scalarSlot] == RecordBatch.Presence.value
      if isScalar || presence[node.slot] != RecordBatch.Presence.value {
        Self.markSlot(node.scalarSlot, set, presence, marksNull: marksNull)
      }
      if isScalar { return }
    }
    if marksNull, presence[node.slot] == RecordBatch.Presence.absent {
      presence[node.slot] = RecordBatch.Presence.null
    }
    for child in node.firstChild..<node.firstChild + node.childCount {
      self.mark(child, set, presence, marksNull: marksNull)
    }
  }

  @inline(__always)
  private static func markSlot(
    _ slot: Int, _ set: UnsafeMutablePointer<UInt8>, _ presence: UnsafeMutablePointer<UInt8>,
    marksNull: Bool
  ) {
    set[slot >> 3] |= 1 << (slot & 7)
    if marksNull, presence[slot] == RecordBatch.Presence.absent {
      presence[slot] = RecordBatch.Presence.null
    }
  }
}

extension Schema {
  /// Fields of a record, or of the only record of a union; nil for all other types.
  func recordFields(of type: TypeID) -> [Field]? {
    switch self[type].kind {
    case .record(let fields): return fields
    case .union(let branches):
      let records = branches.compactMap { branch -> [Field]? in
        if case .record(let fields) = self[branch].kind { fields } else { nil }
      }
      return records.count == 1 ? records[0] : nil
    default: return nil
    }
  }
}
