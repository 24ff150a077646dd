@testable import PostgresSink

/// A record as it was read, in terms that both a row buffer and a plain dictionary can be made of.
struct SampleRead: Sendable {
  var recordID: String
  /// The place of the last event taken before it.
  var ordinal: Int64
  /// `SystemModstamp`, seconds since 1970.
  var stamp: Int64
  /// Seconds since 1970.
  var readAt: Int64
  var isDeletion = false
  /// Only some fields were read, for rows that lack them.
  var isOfFields = false
  /// By column name; a column that is missing was not read.
  var values: [String: SampleEvent.Value] = [:]

  var isWhole: Bool { self.values.count == SampleTables.columns.count }

  /// What a row keeps of it as its last event.
  var event: SampleEvent {
    SampleEvent(
      change: self.change, recordID: self.recordID, ordinal: self.ordinal, time: self.stamp)
  }

  fileprivate var change: RowBuffer.Change {
    self.isOfFields ? .readFields : self.isDeletion ? .readDeletion : .read
  }
}

extension RowBuffer {
  /// Appends the record as the sink's encoder does.
  mutating func append(_ read: SampleRead, columns: [TableColumn]) {
    func append(_ bytes: some Sequence<UInt8>) -> Range<Int> {
      let start = self.bytes.count
      self.bytes.append(contentsOf: bytes)
      return start..<self.bytes.count
    }
    let recordID = append(read.recordID.utf8)
    let eventID = append(read.event.eventID.utf8)
    let start = self.bytes.count
    func time(_ seconds: Int64) -> [UInt8] { Self.integer((seconds - 946_684_800) * 1_000_000) }
    let names = columns.map(\.name).filter { read.values[$0] != nil }
    let fields: [[UInt8]?] = [
      Self.integer(Int32(1)), Self.integer(read.ordinal), Array("/data/Thing".utf8), nil,
      Array(read.event.eventID.utf8), nil, Array("snapshot".utf8), Array("Thing".utf8),
      Array(read.event.changeType.utf8), Array(read.recordID.utf8), nil, nil, nil, nil, nil, nil,
      read.isWhole ? nil : Self.texts(names), nil, nil, time(read.stamp), time(read.readAt),
    ]
    for field in fields {
      _ = append(Self.integer(Int32(field?.count ?? -1)))
      _ = append(field ?? [])
    }
    let metadata = start..<self.bytes.count
    let firstCell = self.cells.count
    for (index, column) in columns.enumerated() {
      guard let value = read.values[column.name] else { continue }
      self.cells.append(
        value == .null
          ? Cell(nullOf: index) : Cell(column: index, append(Self.binary(value))))
    }
    self.rows.append(
      Row(
        change: read.change, epoch: 1, ordinal: read.ordinal,
        commitTimestamp: nil, recordID: recordID, eventID: eventID, metadata: metadata,
        metadataFieldCount: fields.count, cells: firstCell..<self.cells.count,
        read: Read(stamp: read.stamp * 1000, readAt: read.readAt * 1000, isWhole: read.isWhole)))
  }
}

extension SampleTables {
  /// ID, stamp and time of the last read of current rows, by ID.
  func reads() throws -> [String] {
    try self.rows(
      """
      SELECT id, extract(epoch FROM _system_modstamp)::bigint, extract(epoch FROM _read_at)::bigint \
      FROM \(self.current.qualifiedName) ORDER BY id
      """)
  }
}
