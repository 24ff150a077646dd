/// One value in memory. Text is a range of the image's arena.
package enum Cell: Sendable {
  case null
  case boolean(Bool)
  case int(Int32)
  case long(Int64)
  case double(Double)
  case text(start: Int32, count: Int32)
  /// A compound field that is present; its children follow in their own slots.
  case record

  var isNull: Bool {
    if case .null = self { true } else { false }
  }
}

enum ChangeType: Int, Sendable, CaseIterable {
  case create, update, delete, undelete, gapCreate, gapUpdate, gapDelete, gapUndelete, gapOverflow
  case snapshot

  static let symbols = [
    "CREATE", "UPDATE", "DELETE", "UNDELETE", "GAP_CREATE", "GAP_UPDATE", "GAP_DELETE",
    "GAP_UNDELETE", "GAP_OVERFLOW", "SNAPSHOT",
  ]

  var symbol: String { Self.symbols[self.rawValue] }
}

/// What the exporter's lines call an event.
enum EventKind: String, Sendable {
  case change, gap, overflow, wildcard, event
}

/// The values of one event before they are encoded. Reused from event to event.
package struct EventImage: Sendable {
  struct Header: Sendable {
    var recordIDs: [[UInt8]] = []
    var changeType = ChangeType.create
    var changeOrigin: [UInt8] = []
    var transactionKey: [UInt8] = []
    var sequenceNumber: Int32 = 1
    var commitTimestamp: Int64 = 0
    var commitNumber: Int64 = 0
    var commitUser: [UInt8] = []
    /// Slots.
    var nulled: [Int] = []
    var diff: [Int] = []
    var changed: [Int] = []
  }

  var entity: EntityModel
  var schema: EventSchema
  var kind = EventKind.change
  var header = Header()
  package var cells: [Cell]
  var arena: [UInt8] = []

  package init(entity: EntityModel, schema: EventSchema) {
    self.entity = entity
    self.schema = schema
    self.cells = [Cell](repeating: .null, count: entity.slots.count)
  }

  package mutating func reset(entity: EntityModel, schema: EventSchema) {
    self.entity = entity
    self.schema = schema
    self.kind = entity.category == .platformEvent ? .event : .change
    self.cells.removeAll(keepingCapacity: true)
    self.cells.append(contentsOf: repeatElement(.null, count: entity.slots.count))
    self.arena.removeAll(keepingCapacity: true)
    self.header.recordIDs.removeAll(keepingCapacity: true)
    self.header.nulled.removeAll(keepingCapacity: true)
    self.header.diff.removeAll(keepingCapacity: true)
    self.header.changed.removeAll(keepingCapacity: true)
  }

  package mutating func text(_ bytes: some Collection<UInt8>) -> Cell {
    let start = self.arena.count
    self.arena.append(contentsOf: bytes)
    return .text(start: Int32(start), count: Int32(self.arena.count - start))
  }
}

extension EventImage {
  /// Appends the Avro binary of the record.
  func encode(to bytes: inout [UInt8]) {
    if self.schema.category == .changeEvent { self.encodeHeader(to: &bytes) }
    for step in self.schema.steps {
      switch step {
      case .required(let slot, let type):
        self.encode(self.cells[slot], as: type, to: &bytes)
      case .nullable(let slot, let type):
        self.encodeNullable(self.cells[slot], as: type, to: &bytes)
      case .compound(let slot, let children):
        guard case .record = self.cells[slot] else {
          bytes.append(0)
          continue
        }
        bytes.append(2)
        self.encodeChildren(children, to: &bytes)
      case .switchableName(let slot, let children):
        switch self.cells[slot] {
        case .record:
          bytes.append(4)
          self.encodeChildren(children, to: &bytes)
        case let cell:
          self.encodeNullable(cell, as: .string, to: &bytes)
        }
      }
    }
  }

  private func encodeHeader(to bytes: inout [UInt8]) {
    AvroWriter.appendString(self.entity.entityBytes, to: &bytes)
    AvroWriter.appendStringArray(self.header.recordIDs, to: &bytes)
    AvroWriter.appendLong(Int64(self.header.changeType.rawValue), to: &bytes)
    AvroWriter.appendString(self.header.changeOrigin, to: &bytes)
    AvroWriter.appendString(self.header.transactionKey, to: &bytes)
    AvroWriter.appendLong(Int64(self.header.sequenceNumber), to: &bytes)
    AvroWriter.appendLong(self.header.commitTimestamp, to: &bytes)
    AvroWriter.appendLong(self.header.commitNumber, to: &bytes)
    AvroWriter.appendString(self.header.commitUser, to: &bytes)
    FieldBitmap.appendArray(of: self.header.nulled, in: self.schema, to: &bytes)
    FieldBitmap.appendArray(of: self.header.diff, in: self.schema, to: &bytes)
    FieldBitmap.appendArray(of: self.header.changed, in: self.schema, to: &bytes)
  }

  private func encodeChildren(_ children: [EventSchema.ChildStep], to bytes: inout [UInt8]) {
    for child in children {
      self.encodeNullable(self.cells[child.slot], as: child.type, to: &bytes)
    }
  }

  private func encodeNullable(_ cell: Cell, as type: ScalarType, to bytes: inout [UInt8]) {
    if case .null = cell {
      bytes.append(0)
    } else {
      bytes.append(2)
      self.encode(cell, as: type, to: &bytes)
    }
  }

  private func encode(_ cell: Cell, as type: ScalarType, to bytes: inout [UInt8]) {
    switch (cell, type) {
    case (.boolean(let value), .boolean): bytes.append(value ? 1 : 0)
    case (.int(let value), .int): AvroWriter.appendLong(Int64(value), to: &bytes)
    case (.long(let value), .long): AvroWriter.appendLong(value, to: &bytes)
    case (.double(let value), .double): AvroWriter.appendDouble(value, to: &bytes)
    case (.text(let start, let count), .string):
      AvroWriter.appendLong(Int64(count), to: &bytes)
      bytes.append(contentsOf: self.arena[Int(start)..<Int(start + count)])
    default:
      preconditionFailure("\(self.schema.recordName): a value does not have the type of its field")
    }
  }
}
