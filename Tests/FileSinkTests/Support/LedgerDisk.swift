import JSON

@testable import FileSink

/// One directory, its manifest and the checkpoint, with what a power cut would leave of them.
struct LedgerDisk: Hashable {
  struct File: Hashable {
    var content: [UInt8] = []
    var durable: [UInt8] = []
  }

  struct Checkpoint: Hashable {
    var position = 0
    /// Names, length and hash of each record; the manifest line is made from the name.
    var files: [Stored] = []
  }

  struct Stored: Hashable {
    var part: String
    var name: String
    var byteCount: Int
    var sha256: String
    var isClosing: Bool
    /// nil if no run may continue the file.
    var frameCount: Int?

    var record: SegmentRecord {
      SegmentRecord(
        part: self.part, name: self.name, byteCount: self.byteCount, sha256: self.sha256,
        manifest: ["name": .string(self.name)], isClosing: self.isClosing,
        continuation: self.frameCount.map {
          .init(openedAt: 0, day: 0, isExportDate: false, form: "", frameCount: $0)
        })
    }
  }

  var files: [Int: File] = [:]
  var names: [String: Int] = [:]
  var durableNames: [String: Int] = [:]
  /// Changes of names that no synchronisation of the directory has followed.
  var pendingNames: [[String: Int?]] = []
  var manifest: [String] = []
  var durableManifest: [String] = []
  var checkpoint = Checkpoint()
  var nextFile = 0
  /// Content of every finished file ever visible.
  var seen: [String: [UInt8]] = [:]

  func observation(of record: SegmentRecord) -> SegmentLedger.Observation {
    SegmentLedger.Observation(
      partByteCount: self.names[record.part].flatMap { self.files[$0]?.content.count },
      finishedByteCount: self.names[record.name].flatMap { self.files[$0]?.content.count },
      isOneFile: self.names[record.part] != nil
        && self.names[record.part] == self.names[record.name],
      isInManifest: self.manifest.contains(record.name))
  }

  mutating func change(_ names: [String: Int?]) {
    self.pendingNames.append(names)
    for (name, file) in names { self.names[name] = file }
    for (name, file) in self.names where !name.hasPrefix(".") && self.seen[name] == nil {
      self.seen[name] = self.files[file]?.content
    }
  }

  mutating func edit(_ file: Int, _ body: (inout File) -> Void) {
    guard var content = self.files[file] else { return }
    body(&content)
    self.files[file] = content
  }

  mutating func synchronizeNames() {
    self.durableNames = self.names
    self.pendingNames = []
  }

  /// Every state of the disk that a power cut may leave.
  func afterPowerCut() -> Set<LedgerDisk> {
    let dirty = self.files.keys.filter { self.files[$0]?.content != self.files[$0]?.durable }
      .sorted()
    let isManifestDirty = self.manifest != self.durableManifest
    let choices = self.pendingNames.count + dirty.count + (isManifestDirty ? 1 : 0)
    var outcomes: Set<LedgerDisk> = []
    for mask in 0..<(1 << choices) {
      var disk = self
      var bit = 0
      func survives() -> Bool {
        defer { bit += 1 }
        return mask & (1 << bit) != 0
      }
      disk.names = self.durableNames
      for change in self.pendingNames where survives() {
        for (name, file) in change { disk.names[name] = file }
      }
      disk.synchronizeNames()
      for file in dirty {
        let survived = survives()
        disk.edit(file) { if survived { $0.durable = $0.content } else { $0.content = $0.durable } }
      }
      if isManifestDirty, !survives() { disk.manifest = self.durableManifest }
      disk.durableManifest = disk.manifest
      outcomes.insert(disk)
    }
    return outcomes
  }

  /// What breaks a promise right after a recovery: every event before the position is in
  /// exactly one finished file, whole, as it was first seen.
  var faults: [String] {
    var faults: [String] = []
    var events: [UInt8] = []
    for (name, file) in self.names.sorted(by: { $0.key < $1.key }) {
      guard !name.hasPrefix(".") else {
        faults.append("\(name) is left")
        continue
      }
      let content = self.files[file]?.content ?? []
      if content.suffix(3) != [1, 0, 0] { faults.append("\(name) has no end") }
      if self.files[file]?.durable != content { faults.append("\(name) is not durable") }
      if self.seen[name] != content { faults.append("\(name) was changed") }
      if !self.manifest.contains(name) { faults.append("\(name) is not in the manifest") }
      events += content.dropLast(3)
    }
    if Set(self.manifest).count != self.manifest.count { faults.append("a line is listed twice") }
    let expected = (0..<self.checkpoint.position).map(LedgerExplorer.byte)
    if events.sorted() != expected { faults.append("events \(events), not \(expected)") }
    return faults
  }
}
