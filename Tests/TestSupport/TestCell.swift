package import Pipeline

/// A value for a cell of a hand-made row.
package enum TestCell: Sendable {
  case null
  case integer(Int64)
  case double(Double)
  case float(Float)
  /// For strings, JSON text and everything else that is a range of bytes.
  case text(String)
  case bytes([UInt8])
  /// A bitset over the slots.
  case slots([Int])
  /// A record that is there.
  case record
}

extension RecordBatch {
  /// Adds a row of the given cells; all others are absent.
  @discardableResult
  package func addRow(_ cells: [Int: TestCell]) -> Int {
    let index = self.addRow()
    let row = self.row(index)
    for (slot, cell) in cells {
      switch cell {
      case .null: row.presence[slot] = Presence.null
      case .integer(let integer): row.set(slot, to: UInt64(bitPattern: integer))
      case .double(let double): row.set(slot, to: double.bitPattern)
      case .float(let float): row.set(slot, to: UInt64(float.bitPattern))
      case .text(let text): row.set(slot, to: self.append(Array(text.utf8)))
      case .bytes(let bytes): row.set(slot, to: self.append(bytes))
      case .slots(let slots):
        var bits = [UInt8](repeating: 0, count: (self.layout.slotCount + 7) / 8)
        for slot in slots { bits[slot / 8] |= 1 << (slot % 8) }
        row.set(slot, to: self.append(bits))
      case .record: row.set(slot, to: 0)
      }
    }
    return index
  }

  private func append(_ bytes: [UInt8]) -> Range {
    bytes.withUnsafeBufferPointer { self.append($0) }
  }
}
