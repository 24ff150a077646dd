/// Rereads records that are wrong in a store because an event did not say what changed, or was the
/// first one for the record. Many records are read at a time.
extension PipelineRunner {
  /// The number of records per request, as many as one call returns.
  private static var repairCount: Int { 2000 }
  /// The interval at which a run that follows checks again.
  private static var repairInterval: Duration { .seconds(60) }

  /// Whether everything that could be read again has been.
  var hasRepaired: Bool {
    self.repairs.allSatisfy { $0.hasEnded || self.isOutOfReach(self.reads[$0.read]) }
  }

  /// Requests records that a store waits for from the reader.
  func advanceRepairs(now: Instant) throws {
    guard !self.isStopping, self.inFlight == nil else { return }
    for index in self.repairs.indices {
      let repair = self.repairs[index]
      guard let time = repair.deadline, now >= time, self.reads[repair.read].hasEnded,
        self.repairing(repair.store).isIdle
      else { continue }
      let object = self.reads[repair.read].object
      let store = self.stores[repair.store]
      let layout = try self.stages.layout(for: object.layout)
      if !store.isReady(for: layout), case .unavailable = try store.makeReady(for: layout) {
        continue
      }
      guard store.takesReads(of: layout) else {
        self.repairs[index].phase = .ended
        continue
      }
      guard
        let ids = try self.repairing(repair.store).recordsToRepair(
          object.entity, after: repair.last, limit: Self.repairCount)
      else { continue }
      guard let last = ids.last else {
        self.endSweep(index, now: now)
        try self.beginAnew(ifNeededFor: index)
        continue
      }
      self.repairs[index].last = last
      self.repairs[index].phase = .asked
      self.reader?.read(object: repair.read, ids: ids, store: repair.store)
    }
  }

  /// In a run that follows, reads all records of an object again if necessary.
  private func beginAnew(ifNeededFor index: Int) throws {
    guard self.configuration.until == .forever else { return }
    let read = self.repairs[index].read
    let store = self.repairing(self.repairs[index].store)
    let object = self.reads[read].object
    guard try store.needsPass(over: object.entity, topic: object.topic) else { return }
    self.reads[read].object.anew = [store.name]
    self.reads[read].object.condition = nil
    self.reads[read].failure = nil
    self.reads[read].phase = .unknown
  }

  /// Only stores that repair have a `RepairRun`.
  func repairing(_ store: Int) -> any RepairingStore {
    guard let repairing = self.stores[store].repairing else {
      preconditionFailure("\(self.stores[store].name) repairs no records")
    }
    return repairing
  }

  private func endSweep(_ index: Int, now: Instant) {
    self.repairs[index].last = ""
    self.repairs[index].phase =
      self.configuration.until == .forever ? .idle(from: now + Self.repairInterval) : .ended
  }

  func take(
    found batch: RecordBatch, missing: [String], object: Int, store: Int, now: Instant
  ) throws {
    let entity = self.reads[object].object.entity
    self.statistics.reads.repaired += batch.events.count
    self.statistics.reads.unseen += missing.count
    try self.stages.apply(to: batch)
    _ = self.stages.takeLeftOutCount()
    let cursor = self.topics[self.reads[object].topic].cursors.stores[store]
    batch.epoch = cursor.epoch
    for event in batch.events.indices { batch.events[event].ordinal = cursor.ordinal - 1 }
    try self.stores[store].write(batch, pass: nil)
    self.noteUnreadable(self.stages.takeUnreadable(), of: entity, in: [store])
    self.noteUnreadable(self.stores[store].takeUnreadable(), of: entity, in: [store])
    if !missing.isEmpty {
      self.repairing(store).noteUnseen(
        missing, of: entity, epoch: cursor.epoch, ordinal: cursor.ordinal - 1)
    }
    self.commits.policy.took(events: max(1, batch.events.count), at: now)
    for index in self.repairs.indices
    where self.repairs[index].read == object && self.repairs[index].store == store {
      self.repairs[index].phase = .idle(from: now)
    }
  }

  func end(repairOf object: Int, store: Int, _ failure: SourceFailure, now: Instant) {
    self.onNote?(.notRepaired(entity: self.reads[object].object.entity, reason: "\(failure)"))
    self.statistics.reads.repairFailure = failure
    for index in self.repairs.indices
    where self.repairs[index].read == object && self.repairs[index].store == store {
      self.endSweep(index, now: now)
    }
  }
}
