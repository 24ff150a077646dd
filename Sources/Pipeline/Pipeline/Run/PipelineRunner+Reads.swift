internal import Clocks

/// Reads records in addition to the stream (RESTAndBulk.md#records-and-events): stores the
/// position, waits, then reads while the stream continues.
extension PipelineRunner {
  /// Whether every pass that this run has to make is durable or has failed.
  var hasReadAll: Bool { self.reads.allSatisfy { $0.hasEnded || self.isOutOfReach($0) } }

  /// Why records could not be read.
  var readFailure: SourceFailure? { self.reads.lazy.compactMap(\.failure).first }

  /// Does the work that needs no signal.
  func advanceReads(now: Instant) throws {
    guard !self.isStopping else { return }
    for index in self.reads.indices {
      switch self.reads[index].phase {
      case .unknown: try self.findRecipients(index)
      case .unbegun:
        if self.hasPlace(for: self.reads[index]) { try self.beginPass(index, now: now) }
      case .beginning(let commit):
        guard self.statistics.commits >= commit else { continue }
        self.waitToRead(index, from: now)
      case .waiting(let until):
        guard now >= until else { continue }
        self.startReading(index)
      case .ending(let commit):
        guard self.statistics.commits >= commit else { continue }
        self.end(read: index, failure: nil, now: now)
      case .reading, .ended: continue
      }
    }
  }

  private func findRecipients(_ index: Int) throws {
    guard self.inFlight == nil else { return }
    let read = self.reads[index]
    let layout = try self.stages.layout(for: read.object.layout)
    var recipients: [Int] = []
    var pass: ReadPass?
    for (number, store) in self.stores.enumerated()
    where read.object.initial.contains(store.name) || read.object.anew.contains(store.name) {
      store.noteCurrent(layout)
      if !store.isReady(for: layout), case .unavailable = try store.makeReady(for: layout) {
        return
      }
      guard store.takesReads(of: layout) else { continue }
      let known = store.pass(over: read.object.passKey)
      if known?.state == .complete, !read.object.anew.contains(store.name) { continue }
      recipients.append(number)
      guard read.object.condition == nil, let known, known.state != .complete else { continue }
      if let begun = known.begunAt, self.now - begun > self.configuration.passLimit {
        continue
      }
      // All stores continue from the one furthest behind.
      pass = pass.map { known.isAtLeast($0) ? $0 : known } ?? known
    }
    self.reads[index].recipients = recipients
    guard !recipients.isEmpty else {
      self.reads[index].phase = .ended
      return
    }
    if read.object.condition != nil {
      self.reads[index].pass = ReadPass(entity: read.object.entity, number: 0)
      self.reads[index].phase = .unbegun
      return
    }
    let numbers = recipients.map { self.stores[$0].passNumber(over: read.object.passKey) }
    let isShared = recipients.allSatisfy {
      let known = self.stores[$0].pass(over: read.object.passKey)
      return known?.number == pass?.number && known?.state != .complete
    }
    guard let pass, isShared else {
      self.reads[index].pass = ReadPass(
        entity: read.object.entity, part: read.object.part, number: (numbers.max() ?? 0) + 1)
      self.reads[index].phase = .unbegun
      return
    }
    self.reads[index].pass = pass
    if pass.state == .begun {
      // The positions have been durable since then, even while no run was active.
      self.waitToRead(index, from: min(pass.begunAt ?? self.now, self.now))
    } else {
      self.startReading(index)
    }
  }

  /// Whether the stream has a position, so that everything it does not deliver was committed
  /// before.
  private func hasPlace(for read: ReadRun) -> Bool {
    let topic = self.topics[read.topic]
    if topic.cursors.resume != nil { return true }
    return topic.openedAt != nil && topic.topic.start == .earliest
  }

  private func beginPass(_ index: Int, now: Instant) throws {
    try self.store(self.reads[index].pass, of: index, now: now)
    self.reads[index].phase = .beginning(commit: self.openCommitNumber)
  }

  private func waitToRead(_ index: Int, from now: Instant) {
    let until = now + self.configuration.visibilityWait
    self.reads[index].phase = .waiting(until: until)
    self.onNote?(.waitsToRead(entity: self.reads[index].pass.entity, until: until))
  }

  private func startReading(_ index: Int) {
    self.reads[index].phase = .reading
    if self.reads[index].pass.job != nil { self.onNote?(.reading(self.reads[index].pass)) }
    self.statistics.reads.note(self.reads[index].pass)
    self.reader?.begin(object: index, self.reads[index].pass)
  }

  /// The number of commits once the open one is durable.
  private var openCommitNumber: Int { self.statistics.commits + (self.inFlight == nil ? 1 : 2) }

  private func store(_ pass: ReadPass, of index: Int, now: Instant) throws {
    if self.reads[index].object.condition == nil {
      // An empty batch, passed through the stages because sinks know only their output layouts.
      let batch = RecordBatch(layout: self.reads[index].object.layout)
      try self.stages.apply(to: batch)
      for number in self.recipients(of: index, at: pass) {
        let cursor = self.topics[self.reads[index].topic].cursors.stores[number]
        (batch.epoch, batch.nextOrdinal) = (cursor.epoch, cursor.ordinal)
        try self.stores[number].write(batch, pass: pass)
      }
    }
    self.commits.policy.took(events: 0, at: now)
  }

  /// Stores that were further ahead when the run began take nothing until the reader has reached
  /// their place.
  private func recipients(of index: Int, at pass: ReadPass) -> [Int] {
    if self.reads[index].object.condition != nil { return self.reads[index].recipients }
    return self.reads[index].recipients.filter { number in
      guard let known = self.stores[number].pass(over: pass.key), known.number == pass.number
      else { return true }
      return pass.state != .reading || !known.isAtLeast(pass) || known == pass
    }
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
      if pass.job != nil, pass.job != self.reads[index].pass.job { self.onNote?(.reading(pass)) }
      self.reads[index].pass = pass
      try self.store(pass, of: index, now: now)
      if pass.state == .complete {
        self.reads[index].phase = .ending(commit: self.openCommitNumber)
      }
    case .records(let index, let batch, let pass):
      try self.take(batch, pass, of: index, now: now)
    case .found(let index, let store, let batch, let missing, let calls):
      self.repairing(store).noteRepairCalls(calls)
      try self.take(found: batch, missing: missing, object: index, store: store, now: now)
      return true
    case .notAsked(let index, let store, let failure, let calls):
      self.repairing(store).noteRepairCalls(calls)
      if calls > 0 { self.commits.policy.took(events: 1, at: now) }
      self.end(repairOf: index, store: store, failure, now: now)
      return true
    case .unreadable(let index, let store, let record):
      self.noteUnreadable(
        [record], of: self.reads[index].object.entity,
        in: store.map { [$0] } ?? self.reads[index].recipients)
      if store == nil { self.countUnwritten(1, read: index) }
      self.commits.policy.took(events: 1, at: now)
    case .retrying(let index, let failure, let delay):
      self.onRetry?(self.reads[index].object.topic, failure, delay)
    case .waiting(let index, let what):
      self.onWaiting?(self.reads[index].object.topic, what)
    case .underWay: return true
    case .failed(let index, let failure): self.end(read: index, failure: failure, now: now)
    }
    self.statistics.reads.note(self.reads[signal.object].pass)
    return true
  }

  /// Makes the stores ready again for the layouts of records that are being read: an event of
  /// another schema may have changed their tables meanwhile.
  private func isReadyForReads() throws -> Bool {
    for read in self.reads {
      if case .reading = read.phase, try !self.isReady(read.recipients, for: read.object) {
        return false
      }
    }
    for repair in self.repairs {
      if case .asked = repair.phase,
        try !self.isReady([repair.store], for: self.reads[repair.read].object)
      {
        return false
      }
    }
    return true
  }

  private func isReady(_ stores: [Int], for object: ReadObject) throws -> Bool {
    let layout = try self.stages.layout(for: object.layout)
    for number in stores where !self.stores[number].isReady(for: layout) {
      guard self.inFlight == nil, case .done = try self.stores[number].makeReady(for: layout) else {
        return false
      }
    }
    return true
  }

  private func take(
    _ batch: RecordBatch, _ pass: ReadPass, of index: Int, now: Instant
  ) throws {
    self.reads[index].pass = pass
    let count = batch.events.count
    try self.stages.apply(to: batch)
    _ = self.stages.takeLeftOutCount()
    let stored = self.reads[index].object.condition == nil ? pass : nil
    for number in self.recipients(of: index, at: pass) {
      let cursor = self.topics[self.reads[index].topic].cursors.stores[number]
      (batch.epoch, batch.nextOrdinal) = (cursor.epoch, cursor.ordinal)
      for event in batch.events.indices { batch.events[event].ordinal = cursor.ordinal - 1 }
      try self.stores[number].write(batch, pass: stored)
      let refused = self.stores[number].takeUnreadable()
      self.noteUnreadable(refused, of: batch.layout.entity, in: [number])
      self.countUnwritten(refused.count, read: index)
    }
    let refused = self.stages.takeUnreadable()
    self.noteUnreadable(refused, of: batch.layout.entity, in: self.reads[index].recipients)
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
    self.checkDeadLetterCount(topic: self.reads[index].topic)
  }

  /// Counts records of passes that the stores themselves have refused with the last commit.
  func countRefusedReads() {
    for store in self.stores {
      for (entity, count) in store.repairing?.takeRefusedReads() ?? [:] {
        self.statistics.reads.unreadable += count
        guard let index = self.reads.firstIndex(where: { $0.object.entity == entity }) else {
          continue
        }
        self.countUnwritten(count, read: index)
      }
    }
  }

  private func end(read index: Int, failure: SourceFailure?, now: Instant) {
    self.reads[index].phase = .ended
    self.reads[index].failure = failure
    let pass = self.reads[index].pass
    if failure == nil { self.onNote?(.readAll(entity: pass.entity, rows: pass.rowCount)) }
    guard self.hasReadAll else { return }
    // What the stream delivered while records were read does not show whether it is caught up now.
    for topic in self.topics.indices {
      self.topics[topic].caughtUp.beginAgain(at: now, time: self.serviceTime)
      self.statistics.topics[topic].caughtUpBy = nil
    }
  }
}

extension ReadSignal {
  fileprivate var object: Int {
    switch self {
    case .progress(let object, _), .records(let object, _, _), .retrying(let object, _, _),
      .waiting(let object, _), .failed(let object, _), .unreadable(let object, _, _),
      .found(let object, _, _, _, _),
      .notAsked(let object, _, _, _), .underWay(let object, _, _):
      object
    }
  }
}
