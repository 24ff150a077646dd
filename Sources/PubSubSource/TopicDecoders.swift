internal import Pipeline

/// The decoders of one topic by schema ID, found without making a string per event.
struct TopicDecoders {
  private var entries: [(id: [UInt8], decoder: Result<AvroEventDecoder, UndecodableEvent>)] = []
  /// Mostly the next event has the schema of the last.
  private var last = 0

  mutating func add(_ id: [UInt8], _ decoder: Result<AvroEventDecoder, UndecodableEvent>) {
    self.last = self.entries.count
    self.entries.append((id, decoder))
  }

  mutating func find(
    _ bytes: [UInt8], _ range: Range<Int>
  ) -> Result<AvroEventDecoder, UndecodableEvent>? {
    bytes.withUnsafeBufferPointer { bytes in
      let id = UnsafeBufferPointer(rebasing: bytes[range])
      if self.last < self.entries.count, self.entries[self.last].id.elementsEqual(id) {
        return self.entries[self.last].decoder
      }
      guard let index = self.entries.firstIndex(where: { $0.id.elementsEqual(id) }) else {
        return nil
      }
      self.last = index
      return self.entries[index].decoder
    }
  }
}
