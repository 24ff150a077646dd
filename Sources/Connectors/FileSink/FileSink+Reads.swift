internal import Bytes
internal import JSON
package import Pipeline

/// Records that were read in addition to the stream go to separate files, by the same commit
/// protocol. The progress of the pass is part of the state, so each of its rows exists once after a
/// crash.
extension FileSink: RecordReceiver {
  package func takesReads(of layout: RecordLayout) -> Bool {
    self.readLayouts[layout.entity] = layout
    return true
  }

  package func pass(over key: String) -> ReadPass? {
    self.passes[key]?.pass(self.instants)
  }

  package func lastReads(of entity: String) -> PollSchedule.LastReads {
    func begun(_ key: String) -> ContinuousClock.Instant? {
      (self.passes[key]?.completion?.begunAt).map { self.instants.instant(of: $0) }
    }
    let full = begun(entity)
    let changes = begun(ReadPass.changesKey(of: entity))
    return PollSchedule.LastReads(full: full, any: [full, changes].compactMap { $0 }.max())
  }

  /// Only a request of the user is known: files have nothing that a pass repairs.
  package func needsPass(over entity: String, topic: String) -> Bool {
    self.awaited.contains(entity)
  }

  /// Files of earlier passes may exist that the checkpoint does not know. Their names have the
  /// number of the pass, so all passes over an object share their numbers.
  package func passNumber(over key: String) -> Int {
    let entity = ReadPass.entity(ofKey: key)
    return self.passes.values.lazy.filter { $0.entity == entity }.map(\.number)
      .reduce(self.history.passes[SegmentName.sanitized(entity)] ?? 0, max)
  }

  /// - Parameter pass: nil for changed records, because records are read by condition only for sinks
  ///   with tables.
  package func write(_ reads: RecordBatch, pass: ReadPass?) throws {
    guard let pass else { return try self.write(changedReads: reads) }
    var known: FilePass
    if let same = self.passes[pass.key], same.number == pass.number {
      // Another store is behind, and this one already has these rows.
      if pass.state == .reading, same.state == .complete { return }
      if pass.state == .reading, same.job == pass.job, same.rowCount >= pass.rowCount {
        if reads.events.isEmpty, same.rowCount == pass.rowCount {
          self.passes[pass.key]?.advance(to: pass, self.instants)
        }
        return
      }
      known = same
    } else {
      known = FilePass(
        beginning: pass, reads, at: self.clock.utcMilliseconds(),
        after: self.passes[pass.key]?.completion)
      if pass.part == nil {
        self.awaited.remove(pass.entity)
        self.gapEvents.beginSnapshot(of: pass.entity)
      }
      // Other fields than in earlier runs.
      if pass.isRefresh {
        self.passes = self.passes.filter { !$1.isRefresh || $1.entity != pass.entity }
      }
      // Readers have the views of the object while its records are being read.
      _ = try self.readEncoder(for: reads.layout)
      // This way, each file of the stream is entirely before or after the pass.
      try self.store.seal { key in
        key.pass == nil && key.topic == reads.layout.topic && key.entity == reads.layout.entity
      }
    }
    self.freshness.note(reads.layout)
    let (request, firstRow) = (known.request, known.rowCount)
    known.advance(to: pass, self.instants)
    if known.request != request { try self.sealReads(of: known.entity) }
    try self.append(reads, known, firstRow: firstRow)
    known.note(reads)
    if known.state == .complete {
      try self.sealReads(of: known.entity)
      if pass.part == nil {
        self.gapEvents.completeSnapshot(of: known.entity)
        self.noteReview(after: known)
      }
      let now = self.clock.utcMilliseconds()
      known.finish(reads.layout, at: now)
      if pass.isRefresh {
        self.passes[known.entity]?.note(refresh: known)
      } else {
        for encoder in self.encoders.values where encoder.layout.entity == known.entity {
          known.note(encoder.layout, at: now)
        }
      }
    }
    self.passes[pass.key] = known
  }

  package func noteLeftOut(_ changes: RecordBatch) {
    let entity = changes.layout.entity
    guard self.leftOut.insert(entity).inserted else { return }
    let isHeld =
      self.passes[entity].map { $0.rowCount > 0 } == true
      || self.history.folders[SegmentName.sanitized(entity)] != nil
      || self.store.ledger.unfinished.contains { $0.manifest["entity"]?.string == entity }
    if isHeld { self.gapEvents.noteLeftOut(entity) }
  }

  package func noteUnreadable(_ record: UnreadableRecord, of entity: String) {
    self.passes[entity]?.refusedCount += 1
  }

  private func sealReads(of entity: String) throws {
    try self.store.seal { $0.pass != nil && $0.entity == entity }
  }

  func append(_ reads: RecordBatch, _ pass: FilePass, firstRow: Int) throws {
    guard reads.rowCount > 0, let readAt = reads.readAt else { return }
    let encoder = try self.readEncoder(for: reads.layout)
    var read = RowOrigin.Read(
      readAt: self.instants.milliseconds(at: readAt), epoch: reads.epoch,
      lastOrdinal: reads.nextOrdinal - 1)
    let now = self.clock.monotonic()
    let key = SegmentKey(
      topic: reads.layout.topic, entity: reads.layout.entity,
      day: UTCTime.day(ofMilliseconds: pass.begunAt), isExportDate: false, pass: pass.place)
    var writer: SegmentWriter?
    for index in reads.events.indices {
      let event = reads.events[index]
      guard event.rowCount > 0 else { continue }
      let current: SegmentWriter
      if let writer {
        current = writer
      } else {
        current = try self.store.writer(
          for: key, epoch: pass.epoch, ordinal: pass.nextOrdinal, row: firstRow + index, now: now)
        current.summary.note(schemaID: reads.layout.schemaID)
        writer = current
      }
      read.stamp = event.commitTimestamp ?? 0
      try self.append(event, of: reads, by: encoder, from: .read(read), to: current)
      current.summary.count(
        lines: event.rowCount, ordinal: pass.nextOrdinal, commitTimestamp: event.commitTimestamp)
      if self.store.isFull(current) {
        try self.store.endLines(of: current)
        try self.store.seal(current)
        writer = nil
      }
    }
    if let writer { try self.store.endLines(of: writer) }
    self.readRowCount += Int64(reads.rowCount)
  }
}
