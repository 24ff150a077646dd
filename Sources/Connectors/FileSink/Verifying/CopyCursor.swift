/// Iterates over the copy in the order of IDs.
final class CopyCursor {
  private let reader: EntryReader
  private var hasEntry = false
  private var hasEnded = false
  /// Whether the current entry was requested.
  private var wasFound = false
  private var target: [UInt8] = []

  init(_ copy: FileCopy) { self.reader = EntryReader(copy.records) }

  func canReach(_ id: [UInt8]) -> Bool { !id.precedes(self.target) }

  /// Advances to the ID, or to its place if it is missing; nil advances to the end. Calls `body`
  /// for skipped entries that were not requested.
  func advance(
    to id: [UInt8]?, _ body: (_ id: [UInt8], _ value: [UInt8]) throws -> Void
  ) throws {
    if let id { self.target = id }
    while !self.hasEnded {
      if self.hasEntry {
        if let id, !self.reader.key.precedes(id) { return }
        if !self.wasFound { try body(self.reader.key, self.reader.value) }
      }
      self.wasFound = false
      self.hasEntry = try self.reader.next()
      self.hasEnded = !self.hasEntry
    }
  }

  /// The copy's entry for the current ID.
  func value(of id: [UInt8]) -> [UInt8]? {
    guard self.hasEntry, self.reader.key == id else { return nil }
    self.wasFound = true
    return self.reader.value
  }
}
