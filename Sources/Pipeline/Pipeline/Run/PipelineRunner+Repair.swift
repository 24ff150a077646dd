/// Rereads records that are wrong in a store because an event did not say what changed, or was the
/// first one for the record. Many records are read at a time.
extension PipelineRunner {
  /// The number of records per request, as many as one call returns.
  private static var repairCount: Int { 2000 }

  /// Requests records that a store waits for from the reader.
  func advanceRepairs(now: Instant) throws {
    guard !self.isStopping, self.inFlight == nil else { return }
    for index in self.reads.repairs.indices where self.reads.isDue(repair: index, at: now) {
      let repair = self.reads.repairs[index]
      let (store, repairing) = (self.stores[repair.store], self.repairing(repair.store))
      guard repairing.isIdle else { continue }
      let object = self.reads.runs[repair.read].object
      let layout = try self.stages.layout(for: object.layout)
      if !store.isReady(for: layout), case .unavailable = try store.makeReady(for: layout) {
        continue
      }
      guard try self.stages.bringsRows(of: object.layout), store.takesReads(of: layout) else {
        self.reads.end(repair: index)
        continue
      }
      guard
        let ids = try repairing.recordsToRepair(
          object.entity, after: repair.last, limit: Self.repairCount)
      else { continue }
      self.reads.asked(index, for: ids, at: now)
      if !ids.isEmpty {
        self.reader?.read(object: repair.read, ids: ids, store: repair.store)
      } else if try self.follows && repairing.needsPass(over: object.entity, topic: object.topic) {
        self.reads.runs[repair.read].beginAgain(in: store.name)
      }
    }
  }

  /// Only stores that repair are asked to.
  func repairing(_ store: Int) -> any RepairingStore {
    guard let repairing = self.stores[store].repairing else {
      preconditionFailure("\(self.stores[store].name) repairs no records")
    }
    return repairing
  }

  func take(
    found batch: RecordBatch, missing: [String], object: Int, store: Int, now: Instant
  ) throws {
    let entity = self.reads.runs[object].object.entity
    self.statistics.reads.repaired += batch.events.count
    self.statistics.reads.unseen += missing.count
    try self.stages.apply(to: batch)
    _ = self.stages.takeLeftOutCount()
    let place = self.place(of: object, in: store)
    batch.epoch = place.epoch
    for event in batch.events.indices { batch.events[event].ordinal = place.ordinal - 1 }
    try self.measure(.write, of: store) { try $0.write(batch, pass: nil) }
    self.noteUnreadable(self.stages.takeUnreadable(), of: entity, in: [store])
    self.noteUnreadable(self.stores[store].takeUnreadable(), of: entity, in: [store])
    if !missing.isEmpty {
      self.repairing(store).noteUnseen(
        missing, of: entity, epoch: place.epoch, ordinal: place.ordinal - 1)
    }
    self.commits.policy.took(events: max(1, batch.events.count), at: now)
    self.reads.answered(read: object, store: store, isFailure: false, at: now)
  }

  func end(repairOf object: Int, store: Int, _ failure: SourceFailure, now: Instant) {
    self.onNote?(.notRepaired(entity: self.reads.runs[object].object.entity, reason: "\(failure)"))
    self.statistics.reads.repairFailure = failure
    self.reads.answered(read: object, store: store, isFailure: true, at: now)
  }
}
