/// Compiled values of layouts, by identity.
///
/// Emptied when its layouts have too many slots together, because the number of schemas depends on
/// the service. Values that are needed again are recompiled. Used by one thread at a time.
@usableFromInline package struct LayoutCache<Value> {
  /// About 800 objects with 300 fields each.
  package static var maxSlotCount: Int { 1 << 18 }

  @usableFromInline struct Entry {
    /// Retains the layout, so that its identity is not reused.
    @usableFromInline var layout: RecordLayout
    @usableFromInline var value: Value
  }

  @usableFromInline var entries: [ObjectIdentifier: Entry] = [:]
  private var slotCount = 0

  package init() {}

  package var count: Int { self.entries.count }

  package var values: some Sequence<Value> { self.entries.values.lazy.map(\.value) }

  @inlinable package subscript(layout: RecordLayout) -> Value? {
    self.entries[ObjectIdentifier(layout)]?.value
  }

  package mutating func insert(_ value: Value, for layout: RecordLayout) {
    if self.slotCount + layout.slotCount > Self.maxSlotCount {
      self.entries.removeAll()
      self.slotCount = 0
    }
    let old = self.entries.updateValue(
      Entry(layout: layout, value: value), forKey: ObjectIdentifier(layout))
    if old == nil { self.slotCount += layout.slotCount }
  }

  package mutating func removeAll(where isRemoved: (Value) -> Bool) {
    self.entries = self.entries.filter { !isRemoved($0.value.value) }
    self.slotCount = self.entries.values.reduce(0) { $0 + $1.layout.slotCount }
  }
}
