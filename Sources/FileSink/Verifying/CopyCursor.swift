/// Goes through the copy in the order of IDs.
final class CopyCursor {
  private let reader: EntryReader
  private var hasEntry = false
  private var hasEnded = false
  /// The entry at hand was asked for.
  private var wasFound = false
  private var target: [UInt8] = []

  init(_ copy: FileCopy) { self.reader = EntryReader(copy.records) }

  func canReach(_ id: [UInt8]) -> Bool { !id.precedes(self.target) }

  /// Goes on to the ID, or to where it would be; nil: to the end. `body` is called for what is passed
  /// over and was not asked for.
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

  /// What the copy has of the ID that was advanced to.
  func value(of id: [UInt8]) -> [UInt8]? {
    guard self.hasEntry, self.reader.key == id else { return nil }
    self.wasFound = true
    return self.reader.value
  }
}
