/// The beginning of a change event: the object and the IDs of its records.
///
/// The header is the first field of every change event, and these are its first two members (cdc.md).
/// So an event can be attributed without its schema, and if a later part is damaged.
struct ChangeEventHead {
  private(set) var entity = ""
  private(set) var recordIDs: [String] = []
  /// Where the rest begins, in bytes.
  private let end: Int

  /// Nil if the bytes do not begin so.
  ///
  /// - Parameter payload: Avro binary encoding. Not trusted.
  init?(_ payload: [UInt8]) {
    var reader = Reader(payload)
    guard let entity = reader.text(), !entity.isEmpty,
      entity.utf8.allSatisfy({ RecordID.isPart($0) || $0 == UInt8(ascii: "_") })
    else { return nil }
    var ids: [String] = []
    while true {
      guard var count = reader.number() else { return nil }
      if count == 0 { break }
      if count < 0 {
        // The size of the block in bytes follows.
        guard count > Int64.min, reader.number() != nil else { return nil }
        count = -count
      }
      guard count <= payload.count else { return nil }
      for _ in 0..<count {
        guard let id = reader.text() else { return nil }
        ids.append(id)
      }
    }
    (self.entity, self.recordIDs, self.end) = (entity, ids, reader.place)
  }

  /// The event, about these of its records.
  func payload(naming recordIDs: [String], of payload: [UInt8]) -> [UInt8] {
    var bytes = Self.encoded(self.entity)
    if !recordIDs.isEmpty { bytes += Self.encoded(recordIDs.count) }
    for id in recordIDs { bytes += Self.encoded(id) }
    return bytes + [0] + payload[self.end...]
  }

  private static func encoded(_ text: String) -> [UInt8] {
    Self.encoded(text.utf8.count) + Array(text.utf8)
  }

  /// - Parameter count: not negative.
  private static func encoded(_ count: Int) -> [UInt8] {
    var rest = UInt64(count) << 1
    var bytes: [UInt8] = []
    while rest >= 0x80 {
      bytes.append(UInt8(rest & 0x7F | 0x80))
      rest >>= 7
    }
    return bytes + [UInt8(rest)]
  }

  private struct Reader {
    private let bytes: [UInt8]
    private(set) var place = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Zigzag, at most 10 bytes.
    mutating func number() -> Int64? {
      var value: UInt64 = 0
      for shift in stride(from: 0, to: 70, by: 7) {
        guard self.place < self.bytes.count else { return nil }
        let byte = self.bytes[self.place]
        self.place += 1
        guard shift < 63 || byte <= 1 else { return nil }
        value |= UInt64(byte & 0x7F) << UInt64(shift)
        if byte < 0x80 { return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1) }
      }
      return nil
    }

    mutating func text() -> String? {
      guard let count = self.number(), count >= 0, count <= self.bytes.count - self.place else {
        return nil
      }
      let part = self.bytes[self.place..<self.place + Int(count)]
      self.place += Int(count)
      return String(validating: part, as: UTF8.self)
    }
  }
}
