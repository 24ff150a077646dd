internal import Pipeline

/// The decoders of one topic by schema.
struct TopicDecoders {
  private var entries:
    [(schema: ResolvedSchema, decoder: Result<AvroEventDecoder, UndecodableEvent>)] = []
  /// The decoder found last, because the next event usually has the same schema.
  private var last = 0

  mutating func add(
    _ schema: ResolvedSchema, _ decoder: Result<AvroEventDecoder, UndecodableEvent>
  ) {
    self.last = self.entries.count
    self.entries.append((schema, decoder))
  }

  /// Replaces the decoder of a schema ID if there is one.
  mutating func replace(
    _ id: [UInt8], _ decoder: Result<AvroEventDecoder, UndecodableEvent>
  ) {
    guard let index = self.entries.firstIndex(where: { $0.schema.id == id }) else { return }
    self.entries[index].decoder = decoder
  }

  /// The decoder for the ID of a schema. The IDs are compared only when the schema is not that of
  /// the event before.
  mutating func find(_ schema: ResolvedSchema) -> Result<AvroEventDecoder, UndecodableEvent>? {
    if self.last < self.entries.count, self.entries[self.last].schema === schema {
      return self.entries[self.last].decoder
    }
    guard let index = self.entries.firstIndex(where: { $0.schema.id == schema.id }) else {
      return nil
    }
    // The same ID may have been resolved again in the meantime.
    self.entries[index].schema = schema
    self.last = index
    return self.entries[index].decoder
  }
}
