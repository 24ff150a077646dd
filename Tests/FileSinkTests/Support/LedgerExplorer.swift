import DurableFiles
import JSON

@testable import FileSink

/// Performs the ledger's steps on a `LedgerDisk`, in all orders of operations, and crashes at each.
struct LedgerExplorer {
  enum Operation: CaseIterable {
    case appendA, appendB, sealA, commit, commitClosingA, finish
    /// Another thread writes the next bytes that are on their way.
    case write
    /// The run is killed, and the next one continues the files of the checkpoint.
    case restart
  }

  /// Steps to leave out.
  enum Sabotage: CaseIterable {
    case synchronizeData, synchronizeDirectory, endFrameCut, manifest, checkpointBeforeFinish
    /// Not to wait for the other thread.
    case writeLines
    /// To continue a file without truncating it.
    case resumeCut
    /// To finish a file of several frames.
    case join
  }

  /// A run: the ledger and what its writers know.
  private struct Run {
    var ledger = SegmentLedger()
    var open: [String: SegmentLedger.ID] = [:]
    /// Left open by earlier runs.
    var kept: [String: SegmentLedger.ID] = [:]
    var parts: [SegmentLedger.ID: (name: String, file: Int)] = [:]
    var position: Int
    /// The number of frames of each file that this run has continued.
    var frameCounts: [SegmentLedger.ID: Int] = [:]
    /// On their way to the other thread.
    var queue: [(file: Int, byte: UInt8)] = []
  }

  /// Bytes go through another thread, as with `WriterThread`.
  var writesAside = false
  /// Files are continued by later runs.
  var keepsFiles = false
  var operations = Operation.allCases
  var sabotage: Sabotage?
  /// The file system has no RENAME_NOREPLACE: files get their names by link and unlink.
  var renamesByLink = false
  private(set) var faults: Set<String> = []
  private(set) var operationCount = 0
  private(set) var crashCount = 0
  private(set) var recoveryCount = 0
  /// States of the disk after crashes: all that were met, and those still to be recovered from.
  private var met: Set<LedgerDisk> = []
  private var crashed: [(disk: LedgerDisk, recoveries: Int)] = []
  /// How many recoveries the current crashes interrupt.
  private var recoveries = 0
  /// A recovery that joins files leaves names that are not durable, and so a new state each time.
  private static let maxInterruptedRecoveries = 1

  /// An event's bytes in a file; never those of an end of frame.
  static func byte(_ event: Int) -> UInt8 { UInt8(event) + 10 }

  static func record(
    part: String, name: String, content: [UInt8], frameCount: Int? = nil
  ) -> SegmentRecord {
    SegmentRecord(
      part: part, name: name, byteCount: content.count + 3, sha256: "\(content + [1, 0, 0])",
      manifest: ["name": .string(name)], isClosing: false,
      continuation: frameCount.map {
        .init(openedAt: 0, day: 0, isExportDate: false, form: "", frameCount: $0)
      })
  }

  mutating func explore(depth: Int) {
    self.explore(Run(position: 0), LedgerDisk(), depth: depth)
    while let (disk, recoveries) = self.crashed.popLast(), self.faults.count < 20 {
      self.recoveries = recoveries + 1
      self.recover(disk)
    }
  }

  private mutating func explore(_ run: Run, _ disk: LedgerDisk, depth: Int) {
    guard depth > 0, self.faults.count < 20 else { return }
    for operation in self.operations {
      var run = run
      var disk = disk
      if operation == .sealA, run.open["a"] == nil { continue }
      if operation == .write, run.queue.isEmpty { continue }
      if operation == .restart, !self.keepsFiles { continue }
      self.operationCount += 1
      self.perform(operation, &run, &disk)
      self.explore(run, disk, depth: depth - 1)
    }
  }

  private mutating func perform(
    _ operation: Operation, _ run: inout Run, _ disk: inout LedgerDisk
  ) {
    switch operation {
    case .appendA: self.append("a", &run, &disk)
    case .appendB: self.append("b", &run, &disk)
    case .sealA:
      guard let id = run.open.removeValue(forKey: "a") else { return }
      self.writeLines(&run, &disk)
      self.perform(run.ledger.seal(id), &run, &disk)
    case .commit: self.commit(closing: [], &run, &disk)
    case .commitClosingA: self.commit(closing: ["a"], &run, &disk)
    case .finish: self.commit(closing: ["a", "b"], &run, &disk)
    case .write: self.writeNext(&run, &disk)
    case .restart:
      guard let next = self.begin(&disk) else { return }
      run = next
    }
  }

  /// The next run, after its recovery; nil if that fails.
  private mutating func begin(_ disk: inout LedgerDisk) -> Run? {
    var run = Run(position: disk.checkpoint.position)
    for stored in disk.checkpoint.files {
      let record = stored.record
      do {
        let observed = disk.observation(of: record)
        let steps = try SegmentLedger.recovery(of: record, observed: observed)
        if record.continuation != nil, !record.isClosing, observed.isInProgress {
          let id = run.ledger.keep(record)
          run.kept[String(record.name.prefix(1))] = id
          run.parts[id] = (record.name, disk.names[record.part] ?? -1)
          continue
        }
        for step in steps {
          self.finish(step, &disk)
          self.crash(disk)
        }
      } catch {
        self.faults.insert("\(error)")
        return nil
      }
    }
    let known = Set(disk.checkpoint.files.map(\.name) + disk.manifest)
    let parts = Set(disk.checkpoint.files.map(\.part))
    for name in disk.names.keys.sorted() {
      if name.hasPrefix("."), !parts.contains(name) {
        disk.change([name: nil])
        self.crash(disk)
      } else if !name.hasPrefix("."), !known.contains(name) {
        self.faults.insert("\(name) is unknown")
      }
    }
    return run
  }

  /// Waits for the other thread.
  private mutating func writeLines(_ run: inout Run, _ disk: inout LedgerDisk) {
    guard self.sabotage != .writeLines else { return }
    while !run.queue.isEmpty { self.writeNext(&run, &disk) }
  }

  private mutating func writeNext(_ run: inout Run, _ disk: inout LedgerDisk) {
    let (file, byte) = run.queue.removeFirst()
    disk.files[file]?.content.append(byte)
    self.crash(disk)
  }

  private mutating func append(_ key: String, _ run: inout Run, _ disk: inout LedgerDisk) {
    let id: SegmentLedger.ID
    if let known = run.open[key] {
      id = known
      run.ledger.appended(to: id)
    } else if let kept = run.kept.removeValue(forKey: key) {
      id = kept
      run.open[key] = id
      self.perform(run.ledger.resume(id), &run, &disk)
    } else {
      let (new, steps) = run.ledger.open(directory: "")
      id = new
      run.open[key] = id
      run.parts[id] = ("\(key)\(run.position)", disk.nextFile)
      self.perform(steps, &run, &disk)
    }
    // A compressor may write at once what it gets: it does here.
    guard let file = run.parts[id]?.file else { return }
    run.queue.append((file, Self.byte(run.position)))
    run.position += 1
    if !self.writesAside { self.writeNext(&run, &disk) }
  }

  private mutating func commit(
    closing keys: [String], _ run: inout Run, _ disk: inout LedgerDisk
  ) {
    self.writeLines(&run, &disk)
    let ids = keys.compactMap {
      run.open.removeValue(forKey: $0) ?? run.kept.removeValue(forKey: $0)
    }
    self.perform(run.ledger.flush { ids.contains($0) }, &run, &disk)
    if self.sabotage == .checkpointBeforeFinish {
      // The intent is not stored before it is carried out.
      self.perform(run.ledger.commit(), &run, &disk)
    }
    disk.checkpoint = LedgerDisk.Checkpoint(
      position: run.position,
      files: run.ledger.unfinished.map {
        LedgerDisk.Stored(
          part: $0.part, name: $0.name, byteCount: $0.byteCount, sha256: $0.sha256,
          isClosing: $0.isClosing, frameCount: $0.continuation?.frameCount)
      })
    self.crash(disk)
    self.perform(run.ledger.commit(), &run, &disk)
  }

  private mutating func perform(
    _ steps: [SegmentLedger.Step], _ run: inout Run, _ disk: inout LedgerDisk
  ) {
    for step in steps {
      self.perform(step, &run, &disk)
      self.crash(disk)
    }
  }

  private mutating func perform(
    _ step: SegmentLedger.Step, _ run: inout Run, _ disk: inout LedgerDisk
  ) {
    switch step {
    case .create(let id):
      guard let part = run.parts[id] else { return }
      disk.files[part.file] = LedgerDisk.File()
      disk.nextFile += 1
      disk.change([".\(part.name).part": part.file])
    case .flush(let id):
      guard let part = run.parts[id], let file = disk.files[part.file] else { return }
      run.ledger.flushed(
        id,
        Self.record(
          part: ".\(part.name).part", name: part.name, content: file.content,
          frameCount: self.keepsFiles ? run.frameCounts[id, default: 1] : nil))
    case .resume(let id):
      let record = run.ledger.record(of: id)
      self.finish(.verify(record, isFinished: false), &disk)
      guard let part = run.parts[id] else { return }
      if self.sabotage != .resumeCut {
        disk.edit(part.file) { $0.content = Array($0.content.prefix(record.committedByteCount)) }
        self.crash(disk)
      }
      disk.edit(part.file) { $0.content += [1, 0, 0] }
      run.frameCounts[id] = (record.continuation?.frameCount ?? 1) + 1
    case .join(let id):
      let record = run.ledger.record(of: id)
      guard self.sabotage != .join, let file = disk.names[record.part] else { return }
      self.finish(.verify(record, isFinished: false), &disk)
      let committed = disk.files[file]?.content.prefix(record.committedByteCount) ?? []
      let joined = SegmentName.joinedPath(forFinal: record.name)
      let new = disk.nextFile
      disk.nextFile += 1
      disk.files[new] = LedgerDisk.File()
      disk.change([joined: new])
      self.crash(disk)
      let content = committed.filter { $0 >= Self.byte(0) }
      disk.edit(new) { $0.content = content }
      self.crash(disk)
      disk.edit(new) { $0.durable = $0.content }
      run.ledger.flushed(
        id, Self.record(part: joined, name: record.name, content: Array(content)))
    case .synchronizeData(let id):
      guard let part = run.parts[id], self.sabotage != .synchronizeData else { return }
      disk.edit(part.file) { $0.durable = $0.content }
    case .release(let id):
      run.parts[id] = nil
    default:
      self.finish(step, &disk)
    }
  }

  /// The steps that recovery has as well.
  private mutating func finish(_ step: SegmentLedger.Step, _ disk: inout LedgerDisk) {
    switch step {
    case .synchronizeDirectory, .synchronizeFinished:
      if self.sabotage != .synchronizeDirectory { disk.synchronizeNames() }
    case .verify(let record, let isFinished):
      let content = disk.names[isFinished ? record.name : record.part].flatMap { disk.files[$0] }
      let committed = content?.content.prefix(record.committedByteCount) ?? []
      if "\(committed + [1, 0, 0])" != record.sha256 { self.faults.insert("\(record.name): hash") }
    case .endFrame(let record):
      guard let file = disk.names[record.part] else {
        self.faults.insert("\(record.part) is gone")
        return
      }
      if self.sabotage != .endFrameCut {
        disk.edit(file) { $0.content = Array($0.content.prefix(record.committedByteCount)) }
        self.crash(disk)
      }
      disk.files[file]?.content += [1, 0]
      self.crash(disk)
      disk.files[file]?.content += [0]
      self.crash(disk)
      disk.edit(file) { $0.durable = $0.content }
    case .rename(let record):
      guard let file = disk.names[record.part], disk.names[record.name] == nil else {
        self.faults.insert("\(record.part) cannot be renamed")
        return
      }
      guard self.renamesByLink else {
        disk.change([record.part: nil, record.name: file])
        return
      }
      disk.change([record.name: file])
      self.crash(disk)
      disk.synchronizeNames()
      self.crash(disk)
      disk.change([record.part: nil])
    case .removePart(let record):
      disk.change([record.part: nil])
    case .removeFrames(let record):
      disk.change([SegmentName.partPath(forFinal: record.name): nil])
    case .appendToManifest(let record):
      guard self.sabotage != .manifest else { return }
      disk.manifest.append(record.name)
      self.crash(disk)
      disk.durableManifest = disk.manifest
    case .create, .resume, .flush, .synchronizeData, .release, .join:
      preconditionFailure("\(step) in a recovery")
    }
  }

  // MARK: Crashes

  private mutating func crash(_ disk: LedgerDisk) {
    self.crashCount += 1
    guard !self.keepsFiles || self.recoveries <= Self.maxInterruptedRecoveries else { return }
    for outcome in [disk] + disk.afterPowerCut() where self.met.insert(outcome).inserted {
      self.crashed.append((outcome, self.recoveries))
    }
  }

  /// Recovers, crashing in turn at every step; each state of the disk once.
  private mutating func recover(_ before: LedgerDisk) {
    self.recoveryCount += 1
    var disk = before
    disk.durableManifest = disk.manifest
    guard var run = self.begin(&disk) else { return }
    if !run.kept.isEmpty { self.commit(closing: Array(run.kept.keys), &run, &disk) }
    self.faults.formUnion(disk.faults)
  }
}
