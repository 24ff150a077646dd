internal import CEL

/// Reads field sets (`_changed_fields`) of one layout, for all expressions of a stage.
final class LayoutFields {
  private let layout: RecordLayout
  /// Keeps the names.
  private let arena = ByteArena()
  /// The name of each slot in a field set. Built on first use.
  private(set) lazy var listedNames: [BorrowedBytes?] = {
    var names = [BorrowedBytes?](repeating: nil, count: self.layout.slotCount)
    for column in self.layout.columns where !column.isMetadata {
      let name = self.arena.store(column.name)
      for slot in column.slots { names[slot] = name }
    }
    return names
  }()

  init(_ layout: RecordLayout) { self.layout = layout }

  var order: [Int] { self.layout.fieldOrder }
}
