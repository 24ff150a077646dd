internal import DurableFiles
internal import Glibc
internal import JSON
internal import Pipeline

/// The changed records of an object of which the files have only a part (`source.subset`), until they have
/// been read: only then it is known whether they belong to it. In the order of their events.
///
/// They are in a file of entries of one size, so memory does not depend on their number. What counts is
/// the part that the sink's state names. What a run has appended after its last commit is cut off.
final class ChangedRecords {
  /// Records that are read together.
  struct Slice {
    var ids: [String] = []
    /// The end of their entries.
    fileprivate var end: Int
    /// The place before which every event is older than `visibilityWait`, so that the read contains
    /// it.
    var epoch = 0
    var nextOrdinal: Int64 = 0
  }

  /// After a pass over all records that belong to the copy: those that the files have and that the pass
  /// has not returned are read, too.
  struct Review: Equatable {
    /// Milliseconds since 1970; records that were read later were returned by the pass.
    var requestedAt: Int64
    /// The place in the stream before which the pass belongs.
    var epoch: Int
    var nextOrdinal: Int64
  }

  private struct Entry {
    var id: [UInt8] = []
    /// Milliseconds since 1970.
    var notedAt: Int64
    /// The commit time of the oldest event in the same commit.
    var changedAt: Int64
    var epoch: Int
    /// That of the first event after the commit.
    var nextOrdinal: Int64

    static let idByteCount = 24
    static let byteCount = Self.idByteCount + 4 * 8

    init(notedAt: Int64, changedAt: Int64, epoch: Int, nextOrdinal: Int64) {
      self.notedAt = notedAt
      self.changedAt = changedAt
      self.epoch = epoch
      self.nextOrdinal = nextOrdinal
    }

    init(_ bytes: [UInt8], at offset: Int) {
      self.id = Array(bytes[offset..<offset + Self.idByteCount].prefix { $0 != 0 })
      func number(_ index: Int) -> Int64 {
        bytes.number(at: offset + Self.idByteCount + index * 8, Int64.self)
      }
      self.notedAt = number(0)
      self.changedAt = number(1)
      self.epoch = Int(number(2))
      self.nextOrdinal = number(3)
    }

    func append(_ id: [UInt8], to bytes: inout [UInt8]) {
      bytes += id
      bytes += repeatElement(0, count: Self.idByteCount - id.count)
      for number in [self.notedAt, self.changedAt, Int64(self.epoch), self.nextOrdinal] {
        bytes.appendNumber(number)
      }
    }
  }

  private static let maxSliceEntries = 100_000
  private static let pieceEntries = 2000
  /// The size from which entries that are done are removed from the file.
  private static let maxDoneByteCount = 1 << 20
  /// The largest rest that is copied for that.
  private static let maxRestByteCount = 16 << 20

  private let path: String
  private let fileSystem: any FileSystem
  /// Counts the files, each with the rest of the one before.
  private var number = 1
  private var start = 0
  private var length = 0
  /// The place of the first event after those written so far.
  private var place = (epoch: 0, nextOrdinal: Int64(0))
  /// The records of the open commit.
  private var open: Set<[UInt8]> = []
  private var openedAt = Int64.max
  private(set) var review: Review?
  /// What is being read.
  private(set) var asked: Slice?
  /// A file that is not needed once the state is durable.
  private var former: Int?

  /// - Parameters:
  ///   - path: the beginning of the absolute paths of its files.
  ///   - state: what `json` returned for the last checkpoint; nil if there was none.
  init(
    path: String, _ state: JSONValue?, on fileSystem: any FileSystem
  ) throws(FileSinkError) {
    self.path = path
    self.fileSystem = fileSystem
    guard let state else { return }
    func count(_ key: String) throws(FileSinkError) -> Int {
      guard let number = state[key]?.integer, ExportedFile.counts.contains(number) else {
        throw SegmentRecord.damaged
      }
      return Int(number)
    }
    self.number = try count("number")
    self.start = try count("start")
    self.length = try count("length")
    guard self.start <= self.length, self.start % Entry.byteCount == 0,
      self.length % Entry.byteCount == 0
    else { throw SegmentRecord.damaged }
    if let review = state["review"], review != nil {
      guard let requestedAt = review["requested_at_ms"]?.calendarTime,
        let epoch = review["epoch"]?.integer, ExportedFile.counts.contains(epoch),
        let ordinal = review["next_ordinal"]?.integer, ExportedFile.counts.contains(ordinal)
      else { throw SegmentRecord.damaged }
      self.review = Review(requestedAt: requestedAt, epoch: Int(epoch), nextOrdinal: ordinal)
    }
  }

  var json: JSONValue {
    [
      "number": .integer(self.number), "start": .integer(self.start),
      "length": .integer(self.length),
      "review": self.review.map {
        [
          "requested_at_ms": .integer($0.requestedAt), "epoch": .integer($0.epoch),
          "next_ordinal": .integer($0.nextOrdinal),
        ]
      } ?? nil,
    ]
  }

  /// The number of entries that have not been read.
  var count: Int { (self.length - self.start) / Entry.byteCount }

  private func file(_ number: Int) -> String { "\(self.path)-\(number)" }

  /// Prepares the file for a run.
  ///
  /// - Parameter acceptsMissing: if the file is lost, its records are not read.
  func recover(acceptsMissing: Bool) throws {
    for other in [self.number - 1, self.number + 1]
    where try self.fileSystem.size(of: self.file(other)) != nil {
      try self.fileSystem.remove(self.file(other))
    }
    guard self.length > 0 else { return }
    let size = try self.fileSystem.size(of: self.file(self.number)) ?? 0
    guard size >= self.length else {
      guard acceptsMissing else {
        throw FileSinkError(
          .lostOutput,
          "\(self.file(self.number)) is missing or has been shortened, so it is not known which "
            + "changed records have not been read; put it back, or run 'pubsub-etl snapshot "
            + "--accept-missing', which reads all records again")
      }
      (self.number, self.start, self.length) = (self.number + 1, 0, 0)
      return
    }
    if size > self.length {
      try OpenFile(self.file(self.number), [.write], on: self.fileSystem)
        .truncate(to: self.length)
    }
  }

  // MARK: Changes

  /// - Parameter commitTime: milliseconds since 1970; nil if unknown.
  func note(_ id: UnsafeBufferPointer<UInt8>, commitTime: Int64?) {
    guard (1...Entry.idByteCount).contains(id.count) else { return }
    self.open.insert(Array(id))
    self.openedAt = min(self.openedAt, commitTime ?? Int64.max)
  }

  /// Notes that all events before a place have been written.
  func advance(toEpoch epoch: Int, nextOrdinal: Int64) { self.place = (epoch, nextOrdinal) }

  /// Makes the records of the commit durable.
  ///
  /// - Parameter now: milliseconds since 1970.
  func flush(at now: Int64) throws(FileSystemError) {
    if !self.open.isEmpty {
      let entry = Entry(
        notedAt: now, changedAt: min(self.openedAt, now), epoch: self.place.epoch,
        nextOrdinal: self.place.nextOrdinal)
      try self.append(entry, self.open.sorted { $0.precedes($1) })
      self.open.removeAll(keepingCapacity: true)
      self.openedAt = Int64.max
    }
    let rest = self.length - self.start
    if self.start > max(Self.maxDoneByteCount, rest), rest <= Self.maxRestByteCount {
      try self.shorten()
    }
  }

  private func append(_ entry: Entry, _ ids: [[UInt8]]) throws(FileSystemError) {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(ids.count * Entry.byteCount)
    for id in ids { entry.append(id, to: &bytes) }
    try self.append(bytes)
  }

  private func append(_ bytes: [UInt8]) throws(FileSystemError) {
    let isNew = self.length == 0
    let path = self.file(self.number)
    let flags: OpenFlags = isNew ? [.write, .create, .truncate] : [.write, .append]
    let file = try OpenFile(path, flags, on: self.fileSystem)
    try file.write(bytes)
    try file.synchronize()
    if isNew { try self.fileSystem.synchronizeDirectory(self.fileSystem.parent(of: path)) }
    self.length += bytes.count
  }

  /// Copies what has not been read to a new file.
  private func shorten() throws(FileSystemError) {
    let rest = try self.content(self.start, self.length - self.start)
    self.former = self.number
    let done = self.start
    (self.number, self.start, self.length) = (self.number + 1, 0, 0)
    try self.append(rest)
    self.asked?.end -= done
  }

  /// The state of the last `flush` is durable.
  func committed() throws(FileSystemError) {
    guard let former else { return }
    self.former = nil
    try self.fileSystem.remove(self.file(former))
  }

  private func content(
    _ offset: Int, _ byteCount: Int
  ) throws(FileSystemError) -> [UInt8] {
    guard byteCount > 0 else { return [] }
    let bytes = try OpenFile(self.file(self.number), [], on: self.fileSystem)
      .content(from: offset, byteCount: byteCount)
    guard bytes.count == byteCount else {
      throw FileSystemError("read", self.file(self.number), code: EIO)
    }
    return bytes
  }

  // MARK: Reading

  /// Chooses records whose events any reader of the org can see by now.
  ///
  /// - Parameters:
  ///   - now: milliseconds since 1970.
  ///   - wait: milliseconds until every reader sees a commit.
  func ask(
    at now: Int64, wait: Int64, limit: Int
  ) throws(FileSystemError) -> [String] {
    self.asked = nil
    guard limit > 0, self.count > 0 else { return [] }
    var slice = Slice(end: self.start)
    var known: Set<[UInt8]> = []
    let last = min(self.length, self.start + Self.maxSliceEntries * Entry.byteCount)
    search: while slice.end < last {
      let piece = try self.content(
        slice.end, min(Self.pieceEntries * Entry.byteCount, last - slice.end))
      for offset in stride(from: 0, to: piece.count, by: Entry.byteCount) {
        let entry = Entry(piece, at: offset)
        guard entry.notedAt <= now - wait, known.count < limit || known.contains(entry.id) else {
          break search
        }
        if known.insert(entry.id).inserted {
          slice.ids.append(String(decoding: entry.id, as: UTF8.self))
        }
        slice.end += Entry.byteCount
        if (slice.epoch, slice.nextOrdinal) < (entry.epoch, entry.nextOrdinal) {
          (slice.epoch, slice.nextOrdinal) = (entry.epoch, entry.nextOrdinal)
        }
      }
    }
    guard !slice.ids.isEmpty else { return [] }
    self.asked = slice
    return slice.ids
  }

  /// The records that were asked for have been read.
  func settle() {
    guard let asked else { return }
    self.start = asked.end
    self.asked = nil
  }

  /// The commit time of the oldest change that has not been read, or an earlier time; nil if none
  /// waits, and the smallest number if records wait that have not changed.
  func oldestChange() throws(FileSystemError) -> Int64? {
    if self.review != nil { return Int64.min }
    guard self.count > 0 else { return nil }
    let entry = Entry(try self.content(self.start, Entry.byteCount), at: 0)
    return entry.notedAt == 0 ? Int64.min : entry.changedAt
  }

  // MARK: Review

  func noteReview(_ review: Review) { self.review = review }

  /// Adds records that a review has found; durable with the next flush.
  func add(_ ids: [[UInt8]], of review: Review) throws(FileSystemError) {
    let entry = Entry(
      notedAt: 0, changedAt: review.requestedAt, epoch: review.epoch,
      nextOrdinal: review.nextOrdinal)
    if !ids.isEmpty { try self.append(entry, ids) }
  }

  func endReview() { self.review = nil }
}
