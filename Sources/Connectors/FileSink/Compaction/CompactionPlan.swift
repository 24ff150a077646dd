internal import JSON
internal import Pipeline

/// Chooses the finished files of one object that compaction joins, without I/O.
///
/// Files of events are joined if nothing has to come between their lines. The place of a line is that
/// of the first event of its file, and the number of the line in it (`StreamPlaces`), so the lines
/// of all but the first file get an earlier place. They may not pass:
///
/// - a snapshot, which contains every event of the files before it,
/// - another file of the object, for example of the day before,
/// - an event that is or was a dead letter, and comes later with its own place.
struct CompactionPlan {
  /// The stream of a topic in one epoch. Ordinals are comparable within it.
  struct Stream: Hashable {
    var org: String
    var topic: String
    var epoch: Int
  }

  /// A finished file of events.
  struct File {
    var exported: ExportedFile
    /// Its line in the manifest.
    var line: JSONValue
    /// How often its first events have been compacted.
    var compaction: Int64

    var stream: Stream { Stream(exported) }
    var folder: String {
      self.exported.name.utf8.lastIndex(of: UInt8(ascii: "/"))
        .map { String(self.exported.name[..<$0]) } ?? ""
    }
    /// Every event of its range is in it, so none of them was ever a dead letter.
    var hasAllEvents: Bool {
      self.exported.lastOrdinal - self.exported.firstOrdinal + 1 == self.exported.events
    }
  }

  /// Where the lines of another file may be.
  private struct Range {
    /// nil for lines that have their own places, whatever their file.
    var folder: String?
    var first: Int64
    var last: Int64

    func intersects(after low: Int64, before high: Int64) -> Bool {
      self.last > low && self.first < high
    }
  }

  let rotation: FileSinkConfiguration.Rotation
  /// Files of snapshots, which are not joined.
  var snapshotFileCount = 0
  /// By stream, in the order in which they were added.
  private(set) var files: [Stream: [File]] = [:]
  private var others: [Stream: [Range]] = [:]
  private var snapshots: [Stream: Set<Int64>] = [:]
  private var letters: [Stream: [Range]] = [:]

  init(_ rotation: FileSinkConfiguration.Rotation) { self.rotation = rotation }

  // MARK: What there is

  mutating func add(_ file: File) { self.files[file.stream, default: []].append(file) }

  /// A file of events from dead letters, whose lines have their own places; or a file in progress,
  /// which may get more events.
  mutating func add(other file: ExportedFile, isOpen: Bool) {
    self.others[Stream(file), default: []].append(
      Range(folder: nil, first: file.firstOrdinal, last: isOpen ? .max : file.lastOrdinal))
  }

  /// A snapshot, by one of its files or by the checkpoint.
  mutating func add(snapshotBefore ordinal: Int64, of stream: Stream) {
    self.snapshots[stream, default: []].insert(ordinal)
  }

  mutating func add(letters file: ExportedFile) {
    self.letters[Stream(file), default: []].append(
      Range(folder: nil, first: file.firstOrdinal, last: file.lastOrdinal))
  }

  /// A snapshot in the checkpoint does not name its topic.
  mutating func add(snapshotBefore ordinal: Int64, epoch: Int) {
    for stream in self.files.keys where stream.epoch == epoch {
      self.add(snapshotBefore: ordinal, of: stream)
    }
  }

  // MARK: What is joined

  /// The groups of at least two files that become one, by folder; each in the order of the stream.
  ///
  /// - Parameters:
  ///   - exists: whether a file is there; one that is missing is not passed.
  ///   - placesLines: whether lines of a file have their own places, as after a dead letter. Asked
  ///     only if the manifest does not say it.
  func groups(
    exists: (File) throws(FileSinkError) -> Bool,
    placesLines: (File) throws(FileSinkError) -> Bool
  ) throws(FileSinkError) -> [(folder: String, groups: [[File]])] {
    var groups: [String: [[File]]] = [:]
    for (stream, files) in self.files.sorted(by: { Self.precedes($0.key, $1.key) }) {
      let ranges = self.ranges(files) + (self.others[stream] ?? [])
      for (folder, files) in Dictionary(grouping: files, by: \.folder) {
        let sorted = files.sorted { $0.exported.firstOrdinal < $1.exported.firstOrdinal }
        let own = self.ranges(ranges, beside: folder, sorted)
        var group: [File] = []
        var (byteCount, eventCount): (Int64, Int64) = (0, 0)
        func end() {
          if group.count > 1 { groups[folder, default: []].append(group) }
          (group, byteCount, eventCount) = ([], 0, 0)
        }
        func add(_ file: File) {
          group.append(file)
          byteCount += file.exported.bytes
          eventCount += file.exported.events
        }
        for file in sorted {
          var isUsable = self.isSmall(file)
          if isUsable { isUsable = try exists(file) }
          guard isUsable else {
            end()
            continue
          }
          if let first = group.first, let last = group.last,
            group.count < Self.maxGroupCount,
            byteCount + file.exported.bytes <= self.rotation.maxByteCount,
            eventCount + file.exported.events <= self.rotation.maxEventCount,
            self.follows(file, first, last, in: stream, beside: own)
          {
            var hasPlaces = !last.hasAllEvents
            if hasPlaces { hasPlaces = try placesLines(last) }
            if !hasPlaces {
              add(file)
              continue
            }
          }
          end()
          // A compacted name sorts before that of a snapshot with the same place.
          if self.snapshots[stream]?.contains(file.exported.firstOrdinal) != true { add(file) }
        }
        end()
      }
    }
    return groups.sorted { $0.key < $1.key }.map { (folder: $0.key, groups: $0.value) }
  }

  private static func precedes(_ left: Stream, _ right: Stream) -> Bool {
    (left.topic, left.epoch, left.org) < (right.topic, right.epoch, right.org)
  }

  /// The files of each folder as one range, or each by itself where the ranges of folders touch, as
  /// around midnight.
  private func ranges(_ files: [File]) -> [Range] {
    let folders = Dictionary(grouping: files, by: \.folder).map { folder, files in
      Range(
        folder: folder, first: files.map(\.exported.firstOrdinal).min() ?? 0,
        last: files.map(\.exported.lastOrdinal).max() ?? 0)
    }.sorted { $0.first < $1.first }
    var isAlone = Array(repeating: true, count: folders.count)
    var (last, lastIndex) = (Int64.min, 0)
    for index in folders.indices {
      if folders[index].first <= last { (isAlone[index], isAlone[lastIndex]) = (false, false) }
      if folders[index].last > last { (last, lastIndex) = (folders[index].last, index) }
    }
    let crowded = Set(zip(folders, isAlone).compactMap { $1 ? nil : $0.folder })
    return folders.filter { !crowded.contains($0.folder ?? "") }
      + files.filter { crowded.contains($0.folder) }.map {
        Range(
          folder: $0.folder, first: $0.exported.firstOrdinal, last: $0.exported.lastOrdinal)
      }
  }

  /// Those of other folders that reach into a folder.
  private func ranges(_ all: [Range], beside folder: String, _ sorted: [File]) -> [Range] {
    let low = sorted.first?.exported.firstOrdinal ?? 0
    let high = sorted.last?.exported.firstOrdinal ?? 0
    return all.filter { $0.folder != folder && $0.intersects(after: low, before: high) }
  }

  /// Files of half the size and more are left alone, so that none is written again and again.
  private func isSmall(_ file: File) -> Bool {
    file.exported.sha256 != nil && file.exported.bytes * 2 < self.rotation.maxByteCount
      && file.exported.events * 2 <= self.rotation.maxEventCount
  }

  /// The line of the new file names them all, and readers of the manifest limit a line.
  private static let maxGroupCount = 10_000

  /// Whether the lines of a file may follow those of a group.
  private func follows(
    _ file: File, _ first: File, _ last: File, in stream: Stream, beside others: [Range]
  ) -> Bool {
    let (low, end) = (first.exported.firstOrdinal, last.exported.lastOrdinal)
    let high = file.exported.firstOrdinal
    guard end < high else { return false }
    if self.snapshots[stream]?.contains(where: { low < $0 && $0 <= high }) == true { return false }
    if others.contains(where: { $0.intersects(after: low, before: high) }) { return false }
    guard end + 1 < high else { return true }
    return self.letters[stream]?.contains { $0.intersects(after: end, before: high) } != true
  }
}

extension CompactionPlan.Stream {
  init(_ file: ExportedFile) {
    self.init(org: file.org, topic: file.topic, epoch: file.epoch)
  }
}
