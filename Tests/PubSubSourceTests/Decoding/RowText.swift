import Pipeline

@testable import PubSubSource

/// Rows as text, for tests: `name: value`, `name: null`, nothing for absent cells; children of
/// records by path.
extension RecordBatch {
  func texts(row: Int) -> [String: String] {
    var result: [String: String] = [:]
    self.add(self.layout.columns, row: row, prefix: "", to: &result)
    return result
  }

  private func add(
    _ columns: [Column], row: Int, prefix: String, to result: inout [String: String]
  ) {
    for column in columns {
      let name = prefix + column.name
      switch column.content {
      case .constant(let text):
        result[name] = text
      case .slot(let slot, let type):
        result[name] = self.text(slot, type, row: row)
      case .record(let slot, let scalar, let children):
        result[name + "{}"] = [nil, "null", "value"][Int(self.row(row).presence[slot])]
        if let scalar { result[name] = self.text(scalar.slot, scalar.type, row: row) }
        self.add(children, row: row, prefix: name + ".", to: &result)
      }
    }
  }

  private func text(_ slot: Int, _ type: ColumnType, row: Int) -> String? {
    switch self.row(row).presence[slot] {
    case Presence.absent: return nil
    case Presence.null: return "null"
    default: break
    }
    let cell = self.row(row).cells[slot]
    switch type {
    case .boolean: return cell == 1 ? "true" : "false"
    case .double: return "\(Double(bitPattern: cell))"
    case .float: return "\(Float(bitPattern: UInt32(truncatingIfNeeded: cell)))"
    case .int32, .int64, .date, .time, .timestamp: return "\(Int64(bitPattern: cell))"
    case .enumeration(let symbols): return symbols[Int(cell)]
    case .fieldSet: return self.names(self.bytes(Range(cell: cell)))
    default: return String(decoding: self.bytes(Range(cell: cell)), as: UTF8.self)
    }
  }

  /// Names of the set slots, in the order in which they are listed.
  private func names(_ set: UnsafeBufferPointer<UInt8>) -> String {
    var bySlot: [Int: String] = [:]
    func collect(_ columns: [Column]) {
      for column in columns {
        switch column.content {
        case .constant: break
        case .slot(let slot, _): bySlot[slot] = column.path.joined(separator: ".")
        case .record(let slot, let scalar, let children):
          bySlot[slot] = column.name + "{}"
          if let scalar { bySlot[scalar.slot] = column.name }
          collect(children)
        }
      }
    }
    collect(self.layout.columns)
    let isSet = { (slot: Int) in set[slot / 8] & 1 << (slot % 8) != 0 }
    let inOrder = self.layout.fieldOrder.filter(isSet)
    let all = (0..<set.count * 8).filter(isSet)
    let others = Set(all).subtracting(inOrder)
    precondition(
      others.isSubset(of: self.layout.compounds.map(\.slot)),
      "a bit is set for a slot that is no field")
    return inOrder.map { bySlot[$0] ?? "?" }.joined(separator: " ")
  }
}

extension AvroEventDecoder {
  /// Decodes with made-up IDs.
  @discardableResult
  func decode(_ payload: [UInt8], into batch: RecordBatch) throws(EventDecodingError) -> Int {
    let eventID = Array("e1b0c0de-0000-4000-8000-000000000001".utf8)
    let replayID: [UInt8] = [0, 0, 0, 0, 0, 0x5A, 0x94, 0xF0, 0, 0]
    let result = eventID.withUnsafeBufferPointer { eventID in
      replayID.withUnsafeBufferPointer { replayID in
        payload.withUnsafeBufferPointer { payload in
          Result<Int, EventDecodingError> { () throws(EventDecodingError) in
            try self.decode(eventID: eventID, replayID: replayID, payload: payload, into: batch)
          }
        }
      }
    }
    return try result.get()
  }
}
