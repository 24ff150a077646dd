internal import DurableFiles

/// Records that differed when they were last read. Stored on disk, because there may be as many as
/// records.
struct Candidates {
  struct Entry {
    var id: [UInt8] = []
    var outcome = RecordComparison.Outcome.missing
    /// The differing columns, for the outcome `differing`.
    var fields: [Int] = []

    init() {}

    init(id: [UInt8], _ outcome: RecordComparison.Outcome, _ fields: [Int]) {
      self.id = id
      self.outcome = outcome
      self.fields = fields
    }

    fileprivate init(key: [UInt8], value: [UInt8]) {
      guard let outcome = RecordComparison.Outcome(rawValue: value[0]) else {
        preconditionFailure("a candidate of kind \(value[0])")
      }
      self.init(
        id: key, outcome,
        stride(from: 1, to: value.count, by: 4).map { Int(value.number(at: $0, UInt32.self)) })
    }

    fileprivate var value: [UInt8] {
      var value = [self.outcome.rawValue]
      for field in self.fields { value.appendNumber(UInt32(field)) }
      return value
    }
  }

  private let scratch: ScratchFiles
  private var current: [EntryFile] = []
  private var writer: EntryWriter?
  private var reader: Reader?

  init(_ scratch: ScratchFiles) { self.scratch = scratch }

  mutating func append(_ entry: Entry) throws(FileSystemError) {
    let writer: EntryWriter
    if let open = self.writer {
      writer = open
    } else {
      writer = try EntryWriter(self.scratch)
      self.writer = writer
    }
    try writer.append(key: entry.id, value: entry.value)
  }

  mutating func removeAll() {
    self.current = []
    self.writer = nil
    self.reader = nil
  }

  /// Adds the appended candidates after the existing ones.
  mutating func close() throws(FileSystemError) {
    if let writer = self.writer { self.current.append(try writer.finish()) }
    self.writer = nil
  }

  /// Replaces the existing candidates by those appended since the round began.
  mutating func endRound() throws(FileSystemError) {
    self.current = []
    self.reader = nil
    try self.close()
  }

  /// The next candidates of the round, which begins with the first call.
  mutating func next(_ count: Int) throws(FileSystemError) -> [Entry] {
    let reader = self.reader ?? Reader(self.current)
    self.reader = reader
    var entries: [Entry] = []
    while entries.count < count, let entry = try reader.next() { entries.append(entry) }
    return entries
  }

  func entries() -> Reader { Reader(self.current) }

  /// Iterates over all candidates once.
  final class Reader {
    private var files: ArraySlice<EntryFile>
    private var reader: EntryReader?

    fileprivate init(_ files: [EntryFile]) { self.files = files[...] }

    func next() throws(FileSystemError) -> Entry? {
      while true {
        if let reader = self.reader, try reader.next() {
          return Entry(key: reader.key, value: reader.value)
        }
        guard let file = self.files.popFirst() else { return nil }
        self.reader = EntryReader(file)
      }
    }
  }
}
