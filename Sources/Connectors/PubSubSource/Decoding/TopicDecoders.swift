internal import Glibc
internal import Pipeline

/// The decoders of one topic by schema ID, found without creating a string per event.
struct TopicDecoders {
  private var entries: [(id: [UInt8], decoder: Result<AvroEventDecoder, UndecodableEvent>)] = []
  /// The decoder found last, because the next event usually has the same schema.
  private var last = 0

  mutating func add(_ id: [UInt8], _ decoder: Result<AvroEventDecoder, UndecodableEvent>) {
    self.last = self.entries.count
    self.entries.append((id, decoder))
  }

  /// Replaces the decoder of a schema ID if there is one.
  mutating func replace(
    _ id: [UInt8], _ decoder: Result<AvroEventDecoder, UndecodableEvent>
  ) {
    guard let index = self.entries.firstIndex(where: { $0.id == id }) else { return }
    self.entries[index].decoder = decoder
  }

  mutating func find(
    _ bytes: [UInt8], _ range: Range<Int>
  ) -> Result<AvroEventDecoder, UndecodableEvent>? {
    bytes.withUnsafeBufferPointer { bytes in
      let id = UnsafeBufferPointer(rebasing: bytes[range])
      if self.last < self.entries.count, Self.isSame(self.entries[self.last].id, id) {
        return self.entries[self.last].decoder
      }
      guard let index = self.entries.firstIndex(where: { Self.isSame($0.id, id) }) else {
        return nil
      }
      self.last = index
      return self.entries[index].decoder
    }
  }

  /// Called three times per event. `elementsEqual`, which compares byte by byte, would take 4 % of
  /// an export to files.
  static func isSame(_ id: [UInt8], _ other: UnsafeBufferPointer<UInt8>) -> Bool {
    guard id.count == other.count, let start = other.baseAddress else {
      return id.isEmpty && other.isEmpty
    }
    return memcmp(id, start, id.count) == 0
  }
}
