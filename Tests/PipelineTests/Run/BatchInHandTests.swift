import Testing

@testable import Pipeline

@Suite("Batch in hand") struct BatchInHandTests {
  private let narrow = RecordLayout.of([Column("Name", 0)], slotCount: 1)
  private let wide = RecordLayout.of([Column("Name", 0), Column("Phone", 1)], slotCount: 2)

  private func stores(_ numbers: Int...) -> StoreSet {
    numbers.reduce(into: StoreSet()) { $0.insert($1) }
  }

  /// Adds an event of one row.
  private func add(_ batch: RecordBatch) {
    let row = batch.addRow()
    let range = [UInt8(7), 8, 9].withUnsafeBufferPointer { batch.append($0) }
    batch.events.append(
      RecordBatch.Event(
        firstRow: row, rowCount: 1, replayID: range, eventID: range, commitTimestamp: nil,
        kind: .event))
  }

  @Test("An event that is not taken leaves nothing")
  func removesLast() throws {
    var hand = BatchInHand()
    #expect(hand.pending == nil)
    self.add(hand.beginEvent(of: self.narrow))
    self.add(hand.beginEvent(of: self.narrow))
    hand.removeLastEvent()
    let batch = try #require(hand.pending)
    #expect(batch.events.count == 1 && batch.rowCount == 1 && batch.arenaCount == 3)
    hand.clear()
    #expect(hand.pending == nil && batch.rowCount == 0 && batch.arenaCount == 0)
  }

  @Test("Another layout needs an empty batch, of the same memory")
  func otherLayout() {
    var hand = BatchInHand()
    let batch = hand.beginEvent(of: self.narrow)
    self.add(batch)
    #expect(hand.takes(self.narrow) && !hand.takes(self.wide))
    #expect(hand.beginEvent(of: self.wide) === batch)
    #expect(batch.rowCount == 0 && batch.layout === self.wide)
    #expect(hand.takes(self.wide))
  }

  @Test("Once written, the batch has the layout of the decoder again, whatever stages made of it")
  func stagedLayout() {
    var hand = BatchInHand()
    let batch = hand.beginEvent(of: self.narrow)
    self.add(batch)
    batch.layout = self.wide
    hand.clear()
    #expect(batch.layout === self.narrow && hand.takes(self.narrow))
  }

  @Test("Events of other stores end the batch, unless they are its first")
  func otherStores() {
    var hand = BatchInHand()
    self.add(hand.beginEvent(of: self.narrow))
    #expect(!hand.ends(before: self.stores(0, 1)))
    hand.recipients = self.stores(0, 1)
    self.add(hand.beginEvent(of: self.narrow))
    #expect(!hand.ends(before: self.stores(0, 1)) && hand.ends(before: self.stores(1)))
  }

  @Test("Retained events are found until their commit is durable, also those of a divided response")
  func retained() {
    var retained = RetainedEvents<ScriptedResponse>()
    func found(_ ordinal: Int64) -> String? {
      retained.find(topic: 0, epoch: 1, ordinal: ordinal).map { $0.response.events[$0.event].event }
    }
    let events = (0..<3).map { ScriptedEvent(replay: $0, event: "e\($0)") }
    retained.append(ScriptedResponse(events: events, latest: 2))
    for event in 0..<2 { retained.took(1, from: event, topic: 0, epoch: 1, ordinal: Int64(event)) }
    retained.seal(keepingLast: true)
    retained.took(1, from: 2, topic: 0, epoch: 1, ordinal: 2)
    #expect((0...3).map { found($0) } == ["e0", "e1", "e2", nil])
    retained.committed()
    #expect((0...3).map { found($0) } == [nil, nil, "e2", nil])
    retained.seal(keepingLast: false)
    retained.committed()
    #expect(found(2) == nil)
  }
}
