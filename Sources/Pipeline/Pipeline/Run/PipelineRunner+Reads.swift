internal import Clocks

/// Reads records in addition to the stream (RESTAndBulk.md#records-and-events): stores the
/// position, waits, then reads while the stream continues.
extension PipelineRunner {
  var hasReadAll: Bool { self.reads.hasReadAll { self.topics[$0].hasEnded } }

  var hasRepaired: Bool { self.reads.hasRepaired { self.topics[$0].hasEnded } }

  private func moment(_ now: Instant) -> ReadRun.Moment {
    ReadRun.Moment(
      now: now, commits: self.statistics.commits, isCommitting: self.inFlight != nil,
      visibilityWait: self.configuration.visibilityWait)
  }

  /// Does the work that needs no signal.
  func advanceReads(now: Instant) throws {
    guard !self.isStopping else { return }
    for index in self.reads.runs.indices {
      let topic = self.reads.runs[index].topic
      let object = self.reads.runs[index].object
      let isBusy = object.refresh != nil && self.reads.isReading(object.entity)
      let step = self.reads.runs[index].advance(
        self.moment(now),
        mayBegin: topic.map { topic in
          self.topics[topic].hasPosition
            && (object.refresh == nil
              || self.topics[topic].caughtUp.rule != nil && !isBusy)
        } ?? true)
      if let step { try self.perform(step, index, now: now) }
    }
  }

  private func perform(_ step: ReadRun.Step, _ index: Int, now: Instant) throws {
    let pass = self.reads.runs[index].pass
    switch step {
    case .plan:
      if let candidates = try self.candidates(for: self.reads.runs[index].object) {
        let step = self.reads.runs[index].plan(
          candidates, limit: self.configuration.passLimit, self.moment(now))
        if let step { try self.perform(step, index, now: now) }
      }
    case .store: try self.store(self.numbered(index), of: index, now: now)
    case .wait(let until): self.onNote?(.waitsToRead(entity: pass.entity, until: until))
    case .read:
      if pass.job != nil { self.onNote?(.reading(pass)) }
      self.statistics.reads.note(pass)
      self.reader?.begin(object: index, pass)
    case .end: self.end(read: index, failure: nil, now: now)
    }
  }

  /// The stores that may need an object's records; nil if one of them is unavailable.
  private func candidates(for object: ReadObject) throws -> [ReadRun.Candidate]? {
    var candidates: [ReadRun.Candidate] = []
    guard try self.stages.bringsRows(of: object.layout) else { return candidates }
    let layout = try self.stages.layout(for: object.layout)
    for (number, store) in self.stores.enumerated()
    where object.initial.contains(store.name) || object.anew.contains(store.name) {
      // The stream may have shown a newer schema since the run began.
      let recent = self.recentSchemas[layout.entity] ?? []
      if recent.allSatisfy({ $0 == layout.schemaID }) { store.noteCurrent(layout) }
      if !store.isReady(for: layout), case .unavailable = try store.makeReady(for: layout) {
        return nil
      }
      guard store.takesReads(of: layout) else { continue }
      candidates.append(
        ReadRun.Candidate(
          store: number, pass: store.pass(over: object.passKey),
          lastNumber: store.passNumber(over: object.passKey),
          isAnew: object.anew.contains(store.name)))
      let last = candidates.count - 1
      if object.refresh != nil { candidates[last].whole = store.pass(over: object.entity) }
      guard object.poll != nil else { continue }
      let key = ReadPass.changesKey(of: object.entity)
      candidates[last].changes = store.pass(over: key)
      candidates[last].lastNumber = max(
        candidates[last].lastNumber, store.passNumber(over: key))
      candidates[last].lastReads = store.lastReads(of: object.entity)
    }
    return candidates
  }

  /// The place in the stream that reads come before. Without a stream it is the beginning, so that
  /// every event of a later subscription follows.
  func place(of index: Int, in store: Int) -> (epoch: Int, ordinal: Int64) {
    guard let topic = self.reads.runs[index].topic else { return (1, 0) }
    let cursor = self.topics[topic].cursors.stores[store]
    return (cursor.epoch, cursor.ordinal)
  }

  /// The pass to begin. Since it was planned, a read of changed records may have taken its number.
  private func numbered(_ index: Int) -> ReadPass {
    let run = self.reads.runs[index]
    guard run.object.condition == nil else { return run.pass }
    let numbers = run.recipients.map { self.stores[$0].passNumber(over: run.object.passKey) }
    self.reads.runs[index].pass.number = max(run.pass.number, (numbers.max() ?? 0) + 1)
    return self.reads.runs[index].pass
  }

  private func store(_ pass: ReadPass, of index: Int, now: Instant) throws {
    if self.reads.runs[index].object.condition == nil {
      // An empty batch, passed through the stages because sinks know only their output layouts.
      let batch = RecordBatch(layout: self.reads.runs[index].object.layout)
      try self.stages.apply(to: batch)
      for number in self.recipients(of: index, at: pass) {
        (batch.epoch, batch.nextOrdinal) = self.place(of: index, in: number)
        try self.measure(.write, of: number) { try $0.write(batch, pass: pass) }
      }
    }
    self.commits.policy.took(events: 0, at: now)
  }

  private func recipients(of index: Int, at pass: ReadPass) -> [Int] {
    self.reads.runs[index].recipients(at: pass) { self.stores[$0].pass(over: pass.key) }
  }

  /// Takes at most one batch from the reader.
  ///
  /// - Returns: false if there was nothing.
  func takeReads(now: Instant) throws -> Bool {
    guard !self.isStopping, try self.isReadyForReads(), let signal = self.reader?.next() else {
      return false
    }
    switch signal {
    case .progress(let index, let pass):
      if pass.job != nil, pass.job != self.reads.runs[index].pass.job {
        self.onNote?(.reading(pass))
      }
      self.progressed(to: pass, of: index)
      try self.store(pass, of: index, now: now)
      if pass.state == .complete { self.reads.runs[index].readAll(self.moment(now)) }
    case .records(let index, let batch, let pass):
      try self.take(batch, pass, of: index, now: now)
    case .found(let index, let store, let batch, let missing, let calls):
      self.repairing(store).noteRepairCalls(calls)
      try self.take(found: batch, missing: missing, object: index, store: store, now: now)
    case .notAsked(let index, let store, let failure, let calls):
      self.repairing(store).noteRepairCalls(calls)
      if calls > 0 { self.commits.policy.took(events: 1, at: now) }
      self.end(repairOf: index, store: store, failure, now: now)
    case .unreadable(let index, let store, let record):
      self.noteUnreadable(
        [record], of: self.reads.runs[index].object.entity,
        in: store.map { [$0] } ?? self.reads.runs[index].recipients)
      if store == nil { self.countUnwritten(1, read: index) }
      self.commits.policy.took(events: 1, at: now)
    case .retrying(let index, let failure, let delay):
      self.onRetry?(self.reads.runs[index].object.topic, failure, delay)
    case .waiting(let index, let what):
      self.onWaiting?(self.reads.runs[index].object.topic, what)
    case .underWay: break
    case .failed(let index, let failure): self.end(read: index, failure: failure, now: now)
    }
    return true
  }

  private func progressed(to pass: ReadPass, of index: Int) {
    self.reads.runs[index].pass = pass
    self.statistics.reads.note(pass)
  }

  /// Makes the stores ready again for the layouts of records that are being read: an event of
  /// another schema may have changed their tables meanwhile.
  private func isReadyForReads() throws -> Bool {
    for (read, store) in self.reads.expected {
      let layout = try self.stages.layout(for: self.reads.runs[read].object.layout)
      if self.stores[store].isReady(for: layout) { continue }
      guard self.inFlight == nil, case .done = try self.stores[store].makeReady(for: layout) else {
        return false
      }
    }
    return true
  }

  private func take(
    _ batch: RecordBatch, _ pass: ReadPass, of index: Int, now: Instant
  ) throws {
    self.progressed(to: pass, of: index)
    let count = batch.events.count
    try self.stages.apply(to: batch)
    _ = self.stages.takeLeftOutCount()
    let stored = self.reads.runs[index].object.condition == nil ? pass : nil
    for number in self.recipients(of: index, at: pass) {
      let place = self.place(of: index, in: number)
      (batch.epoch, batch.nextOrdinal) = place
      for event in batch.events.indices { batch.events[event].ordinal = place.ordinal - 1 }
      try self.measure(.write, of: number) { try $0.write(batch, pass: stored) }
      let refused = self.stores[number].takeUnreadable()
      self.noteUnreadable(refused, of: batch.layout.entity, in: [number])
      self.countUnwritten(refused.count, read: index)
    }
    let refused = self.stages.takeUnreadable()
    self.noteUnreadable(refused, of: batch.layout.entity, in: self.reads.runs[index].recipients)
    self.countUnwritten(refused.count, read: index)
    self.reader?.recycle(batch)
    self.statistics.reads.rows += count
    self.statistics.reads.progressedAt = now
    self.commits.policy.took(events: count, at: now)
    if self.commits.policy.isFull(pendingBytes: self.pendingByteCount) { try self.commit() }
  }

  /// Notes records that cannot become rows of some stores.
  func noteUnreadable(_ records: [UnreadableRecord], of entity: String, in stores: [Int]) {
    for record in records {
      self.statistics.reads.unreadable += 1
      for number in stores { self.stores[number].noteUnreadable(record, of: entity) }
      self.onNote?(
        .unreadable(entity: entity, recordID: record.recordID, reason: record.reason))
    }
  }

  /// Counts records of a pass that are not written, up to the limit.
  private func countUnwritten(_ count: Int, read index: Int) {
    guard count > 0 else { return }
    self.statistics.reads.unwritten += count
    self.checkDeadLetterCount(ofTopic: self.reads.runs[index].object.topic)
  }

  /// Counts records of passes that the stores themselves have refused with the last commit.
  func countRefusedReads() {
    for store in self.stores {
      for (entity, count) in store.repairing?.takeRefusedReads() ?? [:] {
        self.statistics.reads.unreadable += count
        guard let index = self.reads.runs.firstIndex(where: { $0.object.entity == entity }) else {
          continue
        }
        self.countUnwritten(count, read: index)
      }
    }
  }

  private func end(read index: Int, failure: SourceFailure?, now: Instant) {
    self.reads.runs[index].end(failure, at: now)
    let pass = self.reads.runs[index].pass
    if failure == nil { self.onNote?(.readAll(pass)) }
    // Reads without a stream say nothing about it.
    let hasReadUntilCaughtUp = self.reads.hasReadUntilCaughtUp { self.topics[$0].hasEnded }
    guard self.reads.runs[index].topic != nil, hasReadUntilCaughtUp else { return }
    // What the stream delivered while records were read does not show whether it is caught up now.
    for topic in self.topics.indices {
      self.topics[topic].caughtUp.beginAgain(at: now, time: self.serviceTime)
      self.statistics.topics[topic].caughtUpBy = nil
    }
  }
}
