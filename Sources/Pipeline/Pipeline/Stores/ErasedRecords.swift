/// The records whose values a user has had erased, and of which no sink gets values again.
///
/// Their rows are left out before the first stage, whether they come from the stream, from reading
/// records or from dead letters. Without such records, this costs one comparison for each batch.
package struct ErasedRecords: Sendable, Equatable {
  /// The first 15 characters of an ID, which identify it.
  private struct Key: Hashable, Sendable {
    private var high: UInt64 = 0
    private var low: UInt64 = 0

    /// - Parameter bytes: at least 15.
    init(_ bytes: UnsafeBufferPointer<UInt8>) {
      for byte in bytes[..<8] { self.high = self.high << 8 | UInt64(byte) }
      for byte in bytes[8..<RecordID.shortByteCount] { self.low = self.low << 8 | UInt64(byte) }
    }
  }

  /// The object of each record.
  private var entities: [Key: String] = [:]

  package init() {}

  package var isEmpty: Bool { self.entities.isEmpty }
  package var count: Int { self.entities.count }

  package mutating func insert(_ record: RecordID, of entity: String) {
    Array(record.description.utf8).withUnsafeBufferPointer { self.entities[Key($0)] = entity }
  }

  package mutating func formUnion(_ other: Self) {
    self.entities.merge(other.entities) { own, _ in own }
  }

  /// - Parameter recordID: UTF-8.
  package func contains(_ recordID: UnsafeBufferPointer<UInt8>, of entity: String) -> Bool {
    recordID.count >= RecordID.shortByteCount && self.entities[Key(recordID)] == entity
  }

  package func contains(_ recordID: String, of entity: String) -> Bool {
    Array(recordID.utf8).withUnsafeBufferPointer { self.contains($0, of: entity) }
  }

  /// Removes the rows of these records from a batch.
  ///
  /// - Returns: the number of rows.
  func removeRows(from batch: RecordBatch) -> Int {
    guard batch.layout.family == .changeEvent else { return 0 }
    let count = batch.rowCount
    let entity = batch.layout.entity
    batch.keepRows { row, _ in !self.contains(row.text(MetadataSlot.recordID), of: entity) }
    return count - batch.rowCount
  }

  /// What is left of the event of a dead letter without these records.
  package enum Remainder: Equatable {
    /// The event is about other records only.
    case all
    /// The event is also about other records. Its payload without the IDs of these.
    case others([UInt8])
    case nothing
  }

  /// The event need not be decodable. If not even its header is, every ID in it counts.
  package func remainder(of payload: [UInt8], topic: String) -> Remainder {
    guard !self.isEmpty, TopicName.hasChanges(topic) else { return .all }
    let isChannel = TopicName.isChannel(topic)
    guard let head = ChangeEventHead(payload),
      isChannel || head.entity == TopicName.entity(topic)
    else { return self.areNamed(in: payload, topic: topic, isChannel: isChannel) ? .nothing : .all }
    let others = head.recordIDs.filter { !self.contains($0, of: head.entity) }
    if others.count == head.recordIDs.count { return .all }
    return others.isEmpty ? .nothing : .others(head.payload(naming: others, of: payload))
  }

  private func areNamed(in payload: [UInt8], topic: String, isChannel: Bool) -> Bool {
    let entity = TopicName.entity(topic)
    return payload.withUnsafeBufferPointer { payload in
      var length = 0
      for (index, byte) in payload.enumerated() {
        length = RecordID.isPart(byte) ? length + 1 : 0
        guard length >= RecordID.shortByteCount else { continue }
        let start = index + 1 - RecordID.shortByteCount
        guard let found = self.entities[Key(UnsafeBufferPointer(rebasing: payload[start...index]))]
        else { continue }
        if isChannel ? Self.names(found, payload[..<start]) : found == entity { return true }
      }
      return false
    }
  }

  /// Whether a part of an event has a text with its length, as Avro writes it.
  private static func names(_ entity: String, _ head: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
    // A zigzag number of one or two bytes.
    let length = UInt64(entity.utf8.count) << 1
    let pattern =
      (length < 0x80 ? [UInt8(length)] : [UInt8(length & 0x7F | 0x80), UInt8(length >> 7)])
      + Array(entity.utf8)
    guard head.count >= pattern.count else { return false }
    return (head.startIndex...head.endIndex - pattern.count).contains { start in
      head[start..<start + pattern.count].elementsEqual(pattern)
    }
  }
}
