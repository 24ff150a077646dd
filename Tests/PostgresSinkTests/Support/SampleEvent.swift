@testable import PostgresSink

/// An event of one record, in terms that both a row buffer and a plain dictionary can be made of.
struct SampleEvent: Sendable {
  enum Value: Equatable, Sendable {
    case null
    case text(String)
    /// A long-text diff.
    case diff(String)
    case integer(Int32)
    case number(Double)
    case texts([String])
  }

  var change: RowBuffer.Change
  var recordID: String
  var epoch: Int32 = 1
  var ordinal: Int64
  /// Seconds since 1970.
  var time: Int64
  /// By column name.
  var values: [String: Value] = [:]

  var isRead: Bool { self.change == .read || self.change == .readDeletion }
  var eventID: String {
    self.isRead
      ? "snapshot:1:\(self.recordID):\(self.time)" : "event-\(self.epoch)-\(self.ordinal)"
  }
  var user: String { "user-\(self.ordinal % 3)" }

  var changeType: String {
    switch self.change {
    case .create: "CREATE"
    case .update, .wildcard: "UPDATE"
    case .delete: "DELETE"
    case .undelete: "UNDELETE"
    case .gapCreate: "GAP_CREATE"
    case .gapUpdate: "GAP_UPDATE"
    case .gapDelete: "GAP_DELETE"
    case .gapUndelete: "GAP_UNDELETE"
    case .overflow: "GAP_OVERFLOW"
    case .unknown: "SNAPSHOT"
    case .read: "SNAPSHOT"
    case .readDeletion: "SNAPSHOT_DELETE"
    case .readFields: "SNAPSHOT_FIELDS"
    case .event: ""
    }
  }

  var kind: String {
    switch self.change {
    case .gapCreate, .gapUpdate, .gapDelete, .gapUndelete: "gap"
    case .overflow: "overflow"
    case .wildcard: "wildcard"
    default: "change"
    }
  }
}

extension RowBuffer {
  /// Appends the event as the sink's encoder does.
  mutating func append(_ event: SampleEvent, columns: [TableColumn]) {
    func append(_ bytes: some Sequence<UInt8>) -> Range<Int> {
      let start = self.bytes.count
      self.bytes.append(contentsOf: bytes)
      return start..<self.bytes.count
    }
    let recordID = append(event.recordID.utf8)
    let eventID = append(event.eventID.utf8)
    let start = self.bytes.count
    let names = { (isIncluded: (SampleEvent.Value) -> Bool) in
      event.change == .update
        ? columns.map(\.name).filter { event.values[$0].map(isIncluded) ?? false } : []
    }
    let isDiff = { (value: SampleEvent.Value) in
      if case .diff = value { true } else { false }
    }
    let fields: [[UInt8]?] = [
      Self.integer(event.epoch), Self.integer(event.ordinal), Array("/data/Thing".utf8),
      Array("replay-\(event.ordinal)".utf8), Array(event.eventID.utf8), nil,
      Array(event.kind.utf8), Array("Thing".utf8), Array(event.changeType.utf8),
      Array(event.recordID.utf8), Self.integer((event.time - 946_684_800) * 1_000_000), nil,
      Array(event.user.utf8), nil, nil, nil, Self.texts(names { _ in true }),
      Self.texts(names { $0 == .null }), Self.texts(names(isDiff)),
    ]
    for field in fields {
      _ = append(Self.integer(Int32(field?.count ?? -1)))
      _ = append(field ?? [])
    }
    let metadata = start..<self.bytes.count
    let firstCell = self.cells.count
    for (index, column) in columns.enumerated() {
      guard let value = event.values[column.name] else { continue }
      self.cells.append(
        value == .null
          ? Cell(nullOf: index)
          : Cell(column: index, append(Self.binary(value)), isDiff: isDiff(value)))
    }
    self.rows.append(
      Row(
        change: event.change, epoch: event.epoch, ordinal: event.ordinal,
        commitTimestamp: event.time * 1000, recordID: recordID, eventID: eventID,
        metadata: metadata, metadataFieldCount: fields.count, cells: firstCell..<self.cells.count))
  }

  static func binary(_ value: SampleEvent.Value) -> [UInt8] {
    switch value {
    case .null: []
    case .text(let text), .diff(let text): Array(text.utf8)
    case .integer(let integer): Self.integer(integer)
    case .number(let number): Self.integer(number.bitPattern)
    case .texts(let texts): Self.texts(texts)
    }
  }

  static func integer(_ value: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: value.bigEndian) { Array($0) }
  }

  static func texts(_ texts: [String]) -> [UInt8] {
    guard !texts.isEmpty else { return [0, 0, 25].flatMap { Self.integer($0 as Int32) } }
    return [1, 0, 25, Int32(texts.count), 1].flatMap { Self.integer($0) }
      + texts.flatMap { Self.integer(Int32($0.utf8.count)) + Array($0.utf8) }
  }
}
