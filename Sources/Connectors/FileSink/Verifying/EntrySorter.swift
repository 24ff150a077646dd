internal import DurableFiles
internal import Glibc

/// Sorts entries by key in bounded memory: sorted runs in scratch files, a bounded number of which
/// is merged at a time. Keys are compared byte by byte and are unique.
struct EntrySorter {
  struct Limits {
    /// The size of the entries that are sorted in memory.
    var byteCount = 12 << 20
    /// Runs that are merged at a time; each takes a third of a MiB.
    var fanIn = 32
  }

  private let scratch: ScratchFiles
  private let limits: Limits
  private var bytes: [UInt8] = []
  private var entries: [(offset: Int, keyCount: UInt32, valueCount: UInt32)] = []
  /// The runs, by how often their entries have been merged.
  private var levels: [[EntryFile]] = [[]]

  private static let entryByteCount = 16

  init(_ scratch: ScratchFiles, limits: Limits = Limits()) {
    precondition(limits.fanIn >= 2, "one run cannot be merged")
    self.scratch = scratch
    self.limits = limits
  }

  mutating func append(key: [UInt8], value: [UInt8]) throws(FileSystemError) {
    // Reserved at once, because growing in steps would hold the bytes twice.
    if self.entries.isEmpty { self.bytes.reserveCapacity(self.limits.byteCount) }
    self.entries.append((self.bytes.count, UInt32(key.count), UInt32(value.count)))
    self.bytes.append(contentsOf: key)
    self.bytes.append(contentsOf: value)
    let used = self.bytes.count + self.entries.count * Self.entryByteCount
    if used >= self.limits.byteCount { try self.spill() }
  }

  /// Returns all entries in order and releases the memory.
  mutating func finish() throws(FileSystemError) -> SortedEntries {
    try self.spill()
    self.bytes = []
    self.entries = []
    var runs = self.levels.flatMap { $0 }
    self.levels = [[]]
    // Merges the smallest runs first: those of the lowest level.
    while runs.count > self.limits.fanIn {
      let count = min(self.limits.fanIn, runs.count - self.limits.fanIn + 1)
      let merged = try self.merge(Array(runs[..<count]))
      runs.removeFirst(count)
      runs.append(merged)
    }
    return SortedEntries(runs: runs)
  }

  private mutating func spill() throws(FileSystemError) {
    guard !self.entries.isEmpty else { return }
    let writer = try EntryWriter(self.scratch)
    var entries = self.entries
    self.entries.removeAll(keepingCapacity: true)
    var failure: FileSystemError?
    self.bytes.withUnsafeBufferPointer { bytes in
      func key(
        _ entry: (offset: Int, keyCount: UInt32, valueCount: UInt32)
      )
        -> UnsafeBufferPointer<UInt8>
      {
        UnsafeBufferPointer(rebasing: bytes[entry.offset..<entry.offset + Int(entry.keyCount)])
      }
      entries.sort { key($0).precedes(key($1)) }
      do throws(FileSystemError) {
        for entry in entries {
          let start = entry.offset + Int(entry.keyCount)
          try writer.append(
            key: key(entry),
            value: UnsafeBufferPointer(rebasing: bytes[start..<start + Int(entry.valueCount)]))
        }
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    self.bytes.removeAll(keepingCapacity: true)
    self.levels[0].append(try writer.finish())
    var level = 0
    while self.levels[level].count >= self.limits.fanIn {
      let merged = try self.merge(self.levels[level])
      self.levels[level] = []
      if level + 1 == self.levels.count { self.levels.append([]) }
      self.levels[level + 1].append(merged)
      level += 1
    }
  }

  private func merge(_ runs: [EntryFile]) throws(FileSystemError) -> EntryFile {
    let reader = try SortedEntries(runs: runs).reader()
    let writer = try EntryWriter(self.scratch)
    while try reader.next() { try writer.append(key: reader.key, value: reader.value) }
    return try writer.finish()
  }
}

/// Entries in the order of their keys. May be read several times.
struct SortedEntries {
  fileprivate let runs: [EntryFile]

  fileprivate init(runs: [EntryFile]) { self.runs = runs }

  var count: Int { self.runs.reduce(0) { $0 + $1.count } }

  func reader() throws(FileSystemError) -> MergeReader { try MergeReader(self.runs) }
}

/// Merges sorted runs with a heap whose top is the run with the next key.
final class MergeReader {
  private var heap: [EntryReader] = []
  private var hasBegun = false

  fileprivate init(_ runs: [EntryFile]) throws(FileSystemError) {
    for run in runs {
      let reader = EntryReader(run)
      if try reader.next() { self.heap.append(reader) }
    }
    for index in self.heap.indices.reversed() { self.siftDown(index) }
  }

  /// The current entry; valid after `next` has returned true.
  var key: [UInt8] { self.heap[0].key }
  var value: [UInt8] { self.heap[0].value }

  /// False at the end.
  func next() throws(FileSystemError) -> Bool {
    guard self.hasBegun else {
      self.hasBegun = true
      return !self.heap.isEmpty
    }
    guard let top = self.heap.first else { return false }
    if try !top.next() {
      let last = self.heap.removeLast()
      if self.heap.isEmpty { return false }
      self.heap[0] = last
    }
    self.siftDown(0)
    return true
  }

  private func siftDown(_ start: Int) {
    var parent = start
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < self.heap.count {
        if self.heap[child].key.precedes(self.heap[least].key) { least = child }
      }
      if least == parent { return }
      self.heap.swapAt(least, parent)
      parent = least
    }
  }
}

extension UnsafeBufferPointer<UInt8> {
  /// Whether the bytes come first in byte order.
  func precedes(_ other: Self) -> Bool {
    guard let left = self.baseAddress, let right = other.baseAddress else {
      return self.count < other.count
    }
    let order = memcmp(left, right, Swift.min(self.count, other.count))
    return order == 0 ? self.count < other.count : order < 0
  }
}

extension [UInt8] {
  func precedes(_ other: Self) -> Bool {
    self.withUnsafeBufferPointer { left in
      other.withUnsafeBufferPointer { left.precedes($0) }
    }
  }
}
