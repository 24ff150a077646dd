internal import Bytes
internal import Pipeline

// Records that were read in addition to the stream: full images, except for fields that the user
// may not see.
extension NDJSONEncoder {
  func appendRead(_ keys: NDJSONPlan.ReadKeys, to output: inout ByteBuffer) {
    guard let read = self.read else { return self.appendPlace(keys, to: &output) }
    if let key = keys.stamp {
      self.append(key, to: &output)
      Self.quoted(&output) { $0.appendTimestamp(read.stamp, .milliseconds) }
    }
    if let key = keys.readAt {
      self.append(key, to: &output)
      Self.quoted(&output) { $0.appendTimestamp(read.readAt, .milliseconds) }
    }
    if let key = keys.epoch {
      self.append(key, to: &output)
      output.append(Int64(read.epoch))
    }
    if let key = keys.ordinal, read.lastOrdinal >= 0 {
      self.append(key, to: &output)
      output.append(read.lastOrdinal)
    }
  }

  private func appendPlace(_ keys: NDJSONPlan.ReadKeys, to output: inout ByteBuffer) {
    guard let place = self.place else { return }
    if let key = keys.epoch {
      self.append(key, to: &output)
      output.append(Int64(place.epoch))
    }
    if let key = keys.ordinal {
      self.append(key, to: &output)
      output.append(place.ordinal)
    }
  }

  /// Appends the names of the columns that were read, unless all were.
  func appendFieldsRead(
    _ key: NDJSONPlan.Text, _ masks: UnsafeMutableBufferPointer<UInt64>, _ row: RecordBatch.Row,
    to output: inout ByteBuffer
  ) {
    let presence = UnsafeRawPointer(row.presence)
    var isWhole = true
    for index in masks.indices {
      let word = UInt64(
        littleEndian: presence.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self))
      // Presence is in the lowest two bits of a byte.
      if (word | word >> 1) & masks[index] != masks[index] { isWhole = false }
    }
    if isWhole { return }
    var bits = [UInt8](repeating: 0, count: masks.count)
    for index in masks.indices {
      for slot in 0..<8
      where masks[index] >> UInt64(slot * 8) & 1 != 0
        && row.presence[index * 8 + slot] != RecordBatch.Presence.absent
      {
        bits[index] |= 1 << UInt8(slot)
      }
    }
    self.append(key, to: &output)
    bits.withUnsafeBufferPointer { self.appendNames($0, to: &output) }
  }
}
