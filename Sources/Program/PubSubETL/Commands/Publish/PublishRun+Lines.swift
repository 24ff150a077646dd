internal import Clocks
import PubSubAPI

// Turns input into batches, and settled batches into output.
extension PublishRun {
  /// The maximum number of lines in a batch, including invalid ones.
  private static var maxLinesOfBatch: Int { 1000 }
  /// The maximum size of a batch's text, which is kept in case the schema changes.
  private static var maxTextOfBatch: Int { 8 << 20 }

  /// The place of the next batch to send; waits without a time limit. Nil at the end of the input.
  func nextBatch() async throws -> Int? {
    while true {
      self.flush()
      if self.isOutputBroken {
        throw RunFailure(
          .output,
          "results cannot be written to standard output: the reader has gone, or the disk is full")
      }
      if let index = self.batches.firstIndex(where: { !$0.isSettled }) { return index }
      try self.checkInterruption()
      switch try await self.build(until: nil) {
      case .batch, .nothing: continue
      case .ended:
        if let failure = self.inputFailure { throw failure }
        return nil
      case .interrupted: try self.checkInterruption()
      }
    }
  }

  /// Like `nextBatch`, while a stream is open.
  func nextToSend(mayWait: Bool) async throws -> Int? {
    while true {
      self.flush()
      let next = self.batches.firstIndex { !$0.isSettled && !$0.isOutstanding }
      if let next { return next }
      guard self.maySend, self.batches.count < 2 * Self.window else { return nil }
      let now = self.client.clock.now
      switch try await self.build(until: mayWait ? now + Self.idleTime : now) {
      case .batch: continue
      case .ended, .interrupted, .nothing: return nil
      }
    }
  }

  /// Creates a batch from the lines that have arrived, at least one.
  private func build(until deadline: ContinuousClock.Instant?) async throws -> Built {
    var batch = PublishBatch()
    var (events, bytes, text) = (0, 0, 0)
    let maxEvents = self.pace.maxEventsOfRequest
    while events < maxEvents, batch.lines.count < Self.maxLinesOfBatch,
      text < Self.maxTextOfBatch
    {
      if self.interruption.isAsked {
        if !batch.lines.isEmpty { self.batches.append(batch) }
        return .interrupted
      }
      guard let line = self.carried.take() ?? self.nextLine() else {
        if self.isInputEnded || self.inputFailure != nil {
          if batch.lines.isEmpty { return .ended }
          break
        }
        switch await self.input.next(until: batch.lines.isEmpty ? deadline : self.client.clock.now)
        {
        case .bytes(let more): self.lines.append(more)
        case .end: self.isInputEnded = true
        // Complete lines that have arrived are published; what follows them may be truncated.
        case .failed(let error):
          self.inputFailure = RunFailure(
            .input, "the input cannot be read: \(error)")
        // Handled at the top of the loop.
        case .interrupted: break
        case .nothing:
          if batch.lines.isEmpty { return .nothing }
          return self.finish(batch, events: events)
        }
        continue
      }
      let size = line.event?.requestByteCount ?? 0
      guard bytes + size <= PublishLimits.requestBytes else {
        self.carried = line
        break
      }
      if line.event != nil { events += 1 }
      bytes += size
      text += line.text.count
      batch.lines.append(line)
    }
    return self.finish(batch, events: events)
  }

  private func finish(_ batch: PublishBatch, events: Int) -> Built {
    var batch = batch
    if events > 0 { batch.due = self.pace.due(events: events, now: self.client.clock.now) }
    self.batches.append(batch)
    return .batch
  }

  /// The next line that has arrived.
  private func nextLine() -> PublishLine? {
    guard let encoder = self.encoder, let found = self.lines.next(isEnd: self.isInputEnded) else {
      return nil
    }
    var line = PublishLine(number: found.number)
    if let text = found.text {
      line.text = text
      encoder.encode(&line)
      if line.outcome != nil { line.text = [] }
    } else {
      line.outcome = .refused("the line has more than \(PublishLimits.lineBytes) bytes")
    }
    return line
  }

  /// Writes the results that are next in input order.
  func flush() {
    let count = self.batches.prefix { $0.isSettled }.count
    guard count > 0 else { return }
    let results = self.batches[..<count].flatMap(\.lines)
    for line in results { self.summary.count(line) }
    self.batches.removeFirst(count)
    if !self.isOutputBroken {
      if self.output(results) {
        self.summary.lastWritten = results.last?.number ?? self.summary.lastWritten
      } else {
        self.isOutputBroken = true
      }
    }
    self.onProgress(self.summary)
  }
}
