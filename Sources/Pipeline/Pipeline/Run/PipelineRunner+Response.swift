import JSON

/// Takes responses: decodes, stages and writes their events.
extension PipelineRunner {
  /// Takes a response, completely unless a store is unavailable. Moves the position past it, which
  /// `commit` makes durable.
  func take(_ response: S.Response, topic: Int, receivedAt: Instant) throws {
    self.statistics.topics[topic].delivered += response.eventCount
    self.statistics.topics[topic].responses += 1
    if response.eventCount == 0 { self.statistics.topics[topic].keepalives += 1 }
    self.statistics.topics[topic].pendingCredit = response.pendingCredit
    self.noteAnswer(topic: topic)
    if self.mayRefuse, response.eventCount > 0 { self.retained.append(response) }
    self.current.begin(latestCommit: self.latestCommit)
    self.commits.policy.begin(at: receivedAt)
    self.inHand = (response, PlaceInResponse(topic: topic, receivedAt: receivedAt))
    try self.takeInHand()
  }

  /// Continues with the response in hand.
  func takeInHand() throws {
    guard case (let response, var hand)? = self.inHand else { return }
    hand.outage = nil
    let topic = hand.topic
    let repeated = self.statistics.topics[topic].repeated
    while hand.nextEvent < response.eventCount, try self.takeEvent(of: response, &hand) {
      hand.nextEvent += 1
      hand.recipients = nil
      hand.renewal = .none
      self.takeConsecutive(of: response, &hand)
    }
    let more = self.statistics.topics[topic].repeated - repeated
    if more > 0 { self.source.allow(more, topic: topic) }
    try self.writeBatch(topic: topic)
    guard hand.nextEvent == response.eventCount else {
      self.inHand = (response, hand)
      return
    }
    self.inHand = nil
    if response.eventCount == 0 {
      self.topics[topic].cursors.keepalive(
        response.latestReplayID, now: self.wallClock(),
        completeThrough: self.completeThrough(nothingMoreAt: self.serviceTime))
    } else {
      self.closeResponse(topic: topic)
    }
    self.commits.policy.took(events: 0, at: hand.receivedAt)
    self.topics[topic].caughtUp.responded(
      events: response.eventCount, pending: response.pendingCredit,
      newestCommit: self.current.newestCommit, at: hand.receivedAt)
  }

  private func noteAnswer(topic: Int) {
    self.noteService(topic: topic)
    if self.topics[topic].lacksSchema {
      self.topics[topic].lacksSchema = false
      self.statistics.topics[topic].lastFailure = nil
      self.onNote?(.schemasFetched(topic: self.topics[topic].topic.name))
    }
  }

  /// - Returns: false if the event has to wait for the commit in flight, or for the outage or the
  ///   schema noted in `hand`.
  private func takeEvent(
    of response: S.Response, _ hand: inout PlaceInResponse
  ) throws -> Bool {
    let (topic, index) = (hand.topic, hand.nextEvent)
    let layout: RecordLayout
    var batch: RecordBatch
    do {
      layout = try self.source.layout(ofEvent: index, of: response, topic: topic)
      try self.writeLargeBatch(topic: topic)
      batch = try self.batch(for: layout, topic: topic)
      try self.source.decode(event: index, of: response, topic: topic, into: batch)
    } catch let cause as UndecodableEvent {
      if cause.isOfOutdatedSchema, hand.renewal != .done {
        hand.renewal = .needed
        return false
      }
      try self.takeDeadLetter(
        self.source.rawEvent(index, of: response), cause: cause, topic: topic,
        receivedAt: hand.receivedAt)
      return true
    }
    self.current.readRecordIDs(
      in: batch, isChannel: !self.topics[topic].cursors.closesAtResponseEnd)
    let recipients =
      try hand.recipients ?? self.judge(eventAt: batch.events.count - 1, of: batch, topic: topic)
    if recipients.isEmpty {
      self.batch.removeLastEvent()
      self.statistics.topics[topic].repeated += 1
      return true
    }
    if self.topics[topic].continuity.isOpen {
      try self.checkContinuity(batch.events[batch.events.count - 1], topic: topic)
    }
    hand.recipients = recipients
    let commits = self.shouldCommit(before: batch.events[batch.events.count - 1], in: batch)
    let disagree = self.topics[topic].cursors.disagree(recipients)
    if commits || disagree || self.batch.ends(before: recipients) {
      self.batch.removeLastEvent()
      try self.writeBatch(topic: topic)
      if commits {
        guard self.inFlight == nil else { return false }
        self.closeResponse(topic: topic)
        try self.commit()
      }
      if disagree { self.topics[topic].cursors.align() }
      batch = try self.batch(for: layout, topic: topic)
      // Decoding cannot fail, because the same bytes were decoded just before.
      try self.source.decode(event: index, of: response, topic: topic, into: batch)
    }
    self.batch.recipients = recipients
    if batch.events.count == 1,
      try !self.makeReady(for: layout, committed: batch.events[0].commitTimestamp, of: &hand)
    {
      self.batch.clear()
      return false
    }
    try self.note(eventAt: batch.events.count - 1, of: batch, topic: topic)
    self.took(1, of: batch, from: index, hand)
    return true
  }

  /// Takes the events after the last one that need no decision: each has the layout of the batch,
  /// every store will take it, and no commit ends before it. `takeEvent` takes all others, and comes
  /// to the same result for these.
  private func takeConsecutive(of response: S.Response, _ hand: inout PlaceInResponse) {
    let topic = hand.topic
    let count = min(
      response.eventCount - hand.nextEvent, self.commits.policy.eventCountBeforeDecision)
    guard count > 0, let batch = self.batch.pending, !self.commits.isOverweight,
      !self.topics[topic].continuity.isOpen,
      self.topics[topic].cursors.certainRecipients == self.batch.recipients
    else { return }
    let first = batch.events.count
    self.source.decode(
      consecutive: hand.nextEvent..<hand.nextEvent + count, of: response, topic: topic, into: batch)
    let events = first..<batch.events.count
    guard !events.isEmpty else { return }
    self.topics[topic].cursors.take(events, of: batch)
    self.took(events.count, of: batch, from: hand.nextEvent, hand)
    hand.nextEvent += events.count
  }

  /// Makes sure that nothing from another stream is written: neither the event, which is the last
  /// of the batch, nor uncommitted events before it.
  private func checkContinuity(_ event: RecordBatch.Event, topic: Int) throws {
    guard let commit = event.commitTimestamp,
      let exported = self.topics[topic].continuity.judge(commit: commit)
    else { return }
    throw OtherStreamError(
      topic: self.topics[topic].topic.name, exportedAt: exported, committedAt: commit)
  }

  // Generic code is kept out of `takeEvent`, where it would look up metadata for every event.

  @inline(never)
  private func retain(_ count: Int, from index: Int, ordinal: Int64, topic: Int) {
    self.retained.took(
      count, from: index, topic: topic,
      epoch: self.topics[topic].cursors.epoch(of: self.batch.recipients), ordinal: ordinal)
  }

  /// Prepares the recipients of a batch before its first event is taken.
  ///
  /// - Parameter time: the commit time of that event, milliseconds since 1970.
  private func makeReady(
    for layout: RecordLayout, committed time: Int64?, of hand: inout PlaceInResponse
  ) throws -> Bool {
    let written = try self.stages.layout(for: layout)
    let isRecent = time.map { $0 > self.startedAt } ?? false
    if isRecent { self.recentSchemas[layout.entity, default: []].insert(layout.schemaID) }
    for (number, store) in self.stores.enumerated()
    where self.batch.recipients.contains(number) && !store.isReady(for: written) {
      if self.inFlight != nil { return false }
      if isRecent { store.noteRecent(written) }
      let answer = try self.measure(.makeReady, of: number) { try $0.makeReady(for: written) }
      if case .unavailable(let outage) = answer {
        hand.outage = self.hastened(outage)
        return false
      }
    }
    return true
  }

  /// - Returns: the stores for which the event is new.
  private func judge(eventAt index: Int, of batch: RecordBatch, topic: Int) throws -> StoreSet {
    let event = batch.events[index]
    return try self.current.recordIDs.withUnsafeBufferPointer { recordIDs in
      try self.judge(
        replayID: batch.bytes(event.replayID), eventID: batch.bytes(event.eventID),
        recordIDs: recordIDs, topic: topic)
    }
  }

  private func judge(
    replayID: UnsafeBufferPointer<UInt8>, eventID: UnsafeBufferPointer<UInt8>,
    recordIDs: UnsafeBufferPointer<UInt8>, topic: Int
  ) throws -> StoreSet {
    do throws(PassedPositionError) {
      return try self.topics[topic].cursors.judge(
        replayID: replayID, eventID: eventID, recordIDs: recordIDs)
    } catch {
      throw SourceFailure(
        .invalidReplay, reason: "stores_apart",
        "\(self.topics[topic].topic.name): one sink holds events up to replay ID "
          + "\(error.last), and another sink lacks some of them. The service did not send that event "
          + "again among the next \(error.passedCount) events; begin a new epoch of "
          + "all sinks with 'pubsub-etl checkpoint set'")
    }
  }

  /// A batch prefers to end where the transaction changes, and never ends between equal IDs.
  private func shouldCommit(before event: RecordBatch.Event, in batch: RecordBatch) -> Bool {
    let isDue =
      self.commits.isOverweight
      || self.commits.policy.endsBefore(
        keyChanges: !self.current.previous.isOf(transactionKey: batch.bytes(event.transactionKey)))
    return isDue && !self.current.previous.has(replayID: batch.bytes(event.replayID))
  }

  /// A few events may need much memory. Such a batch is written before the end of the response, and
  /// committed as soon as the sinks have more than a commit should have.
  private func writeLargeBatch(topic: Int) throws {
    guard self.batch.isLarge else { return }
    try self.writeBatch(topic: topic)
    self.commits.isOverweight = self.commits.policy.isTooLarge(pendingBytes: self.pendingByteCount)
  }

  /// On a channel, the rows of the last replay ID are remembered until another one follows.
  private func checkOpenGroup(topic: Int) throws {
    guard let count = self.topics[topic].cursors.tooLargeGroup else { return }
    throw SourceFailure(
      .invalidReplay, reason: "open_group",
      "\(self.topics[topic].topic.name): \(count) events arrived with the same replay ID, and "
        + "none with another one; a checkpoint cannot hold more. Subscribe to the channel's "
        + "objects one by one, or begin a new epoch with 'pubsub-etl checkpoint set'")
  }

  private func note(eventAt index: Int, of batch: RecordBatch, topic: Int) throws {
    let event = batch.events[index]
    batch.events[index].ordinal = self.current.recordIDs.withUnsafeBufferPointer {
      self.topics[topic].cursors.take(
        for: self.batch.recipients, replayID: batch.bytes(event.replayID),
        eventID: batch.bytes(event.eventID), recordIDs: $0)
    }
    try self.checkOpenGroup(topic: topic)
  }

  /// Counts the last events of a batch, which the cursors have taken.
  ///
  /// - Parameter index: the place of the first of them in the response.
  private func took(_ count: Int, of batch: RecordBatch, from index: Int, _ hand: PlaceInResponse) {
    let topic = hand.topic
    let events = batch.events.count - count..<batch.events.count
    self.current.took(events, of: batch)
    self.topics[topic].takenCount += count
    self.takenCount += count
    self.statistics.topics[topic].took(events, of: batch, latestCommit: self.current.latestCommit)
    if self.mayRefuse {
      self.retain(
        count, from: index, ordinal: batch.events[events.lowerBound].ordinal, topic: topic)
    }
    self.commits.policy.took(events: count, at: hand.receivedAt)
    self.times?.took(
      events, of: batch, topic: topic, receivedAt: hand.receivedAt,
      latestCommit: self.current.latestCommit)
  }

  private func takeDeadLetter(
    _ event: RawEvent, cause: UndecodableEvent, topic: Int, receivedAt: Instant
  ) throws {
    let recipients = try event.replayID.withUnsafeBufferPointer { replayID in
      try event.eventID.withUnsafeBufferPointer { eventID in
        try self.judge(
          replayID: replayID, eventID: eventID,
          recordIDs: UnsafeBufferPointer(start: nil, count: 0), topic: topic)
      }
    }
    if recipients.isEmpty {
      self.statistics.topics[topic].repeated += 1
      return
    }
    if self.topics[topic].cursors.disagree(recipients) {
      try self.writeBatch(topic: topic)
      self.topics[topic].cursors.align()
    }
    let name = self.topics[topic].topic.name
    let epoch = self.topics[topic].cursors.epoch(of: recipients)
    let ordinal = event.replayID.withUnsafeBufferPointer { replayID in
      event.eventID.withUnsafeBufferPointer { eventID in
        self.current.tookUndecoded(replayID: replayID, eventID: eventID)
        return self.topics[topic].cursors.take(
          for: recipients, replayID: replayID, eventID: eventID,
          recordIDs: UnsafeBufferPointer(start: nil, count: 0))
      }
    }
    try self.checkOpenGroup(topic: topic)
    let letter = DeadLetter(
      topic: name, replayID: ReplayID(event.replayID),
      eventID: String(decoding: event.eventID, as: UTF8.self), schemaID: event.schemaID,
      payload: event.payload, reason: cause.reason,
      fieldPath: cause.fieldPath.isEmpty ? nil : cause.fieldPath, byteOffset: cause.offset,
      epoch: epoch, ordinal: ordinal)
    self.commits.add(letter, for: recipients)
    self.topics[topic].takenCount += 1
    self.takenCount += 1
    self.commits.policy.took(events: 1, at: receivedAt)
    self.times?.arrived(1, topic: topic, at: receivedAt)
    if recipients.contains(self.commits.keeper) { self.countDeadLetter(topic: topic) }
  }

  /// The batch for rows of the layout; rows of another layout are written first.
  private func batch(for layout: RecordLayout, topic: Int) throws -> RecordBatch {
    if !self.batch.takes(layout) { try self.writeBatch(topic: topic) }
    return self.batch.beginEvent(of: layout)
  }

  /// Passes the rows gathered so far through the stages to every sink.
  private func writeBatch(topic: Int) throws {
    guard let batch = self.batch.pending else { return }
    batch.epoch = self.topics[topic].cursors.epoch(of: self.batch.recipients)
    batch.latestCommit = self.current.latestCommit
    let bringsRows = try self.stages.bringsRows(of: batch.layout)
    try self.stages.apply(to: batch)
    self.statistics.topics[topic].taken.leftOut += self.stages.takeLeftOutCount()
    for event in self.stages.takeRefusedEvents() {
      self.commits.add(self.letter(for: event, topic: topic), for: self.batch.recipients)
      if self.batch.recipients.contains(self.commits.keeper) { self.countDeadLetter(topic: topic) }
    }
    for (number, store) in self.stores.enumerated() where self.batch.recipients.contains(number) {
      if !bringsRows { store.noteLeftOut(batch) }
      try self.measure(.write, of: number) { try $0.write(batch) }
    }
    self.batch.clear()
  }

  /// Notes in the position that the stream can resume after the last event taken.
  private func closeResponse(topic: Int) {
    // Empty if every event of the response was exported before.
    guard !self.current.previous.replayID.isEmpty else { return }
    let replayID = ReplayID(self.current.previous.replayID)
    // The service retains an ID for 72 h after the commit, however late it arrives.
    let now = self.wallClock()
    self.topics[topic].cursors.endResponse(
      replayID: replayID, eventID: self.current.previous.eventID,
      confirmedAt: min(now, self.current.newestCommit ?? now),
      newestCommit: self.current.newestCommit)
    if let newest = self.current.newestCommit {
      self.topics[topic].cursors.prove(
        completeThrough: self.completeThrough(nothingMoreAt: min(newest, self.serviceTime)))
    }
    self.statistics.topics[topic].taken.lastReplayID = replayID
  }
}
