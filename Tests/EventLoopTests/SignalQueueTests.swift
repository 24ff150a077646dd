import Testing

@testable import EventLoop

@Suite("Signal queue") struct SignalQueueTests {
  static var soon: ContinuousClock.Instant { .now + .seconds(20) }

  @Test("Elements arrive in the order in which they were queued")
  func order() async {
    let signals = SignalQueue<Int>(limit: 1000)
    for number in 0..<200 { await signals.send(number, weight: 1) }
    for number in 0..<200 { #expect(await signals.receive(until: Self.soon) == number) }
  }

  @Test("A receiver that gets no element returns nil at its deadline")
  func deadline() async {
    let signals = SignalQueue<Int>(limit: 1)
    #expect(await signals.receive(until: .now) == nil)
    signals.post(1)
    #expect(await signals.receive(until: .now) == 1)
  }

  // The timer could fire before the receiver had begun to wait, which then waited for ever.
  @Test("An expired deadline is noticed, however it races with the wait", .timeLimit(.minutes(1)))
  func expiredDeadline() async {
    let signals = SignalQueue<Int>(limit: 10)
    for _ in 0..<5000 { #expect(await signals.receive(until: .now) == nil) }
  }

  @Test("A waiting receiver gets the element at once")
  func waiting() async {
    let signals = SignalQueue<Int>(limit: 1)
    await withTaskGroup(of: Int?.self) { group in
      group.addTask { await signals.receive(until: Self.soon) }
      signals.post(7)
      #expect(await group.next() == 7)
    }
  }

  @Test("A sender above the limit waits until enough has been received")
  func suspends() async {
    let signals = SignalQueue<Int>(limit: 10)
    await signals.send(1, weight: 10)
    await withTaskGroup(of: String.self) { group in
      group.addTask {
        await signals.send(2, weight: 5)
        return "sent"
      }
      group.addTask {
        // Frees 10 of 15: only now may the sender go on.
        let first = await signals.receive(until: Self.soon)
        return "received \(first ?? 0)"
      }
      var results: Set<String> = []
      for await result in group { results.insert(result) }
      #expect(results == ["sent", "received 1"])
    }
    #expect(await signals.receive(until: Self.soon) == 2)
  }

  @Test("A waiting sender is woken at half the limit, not at each element before")
  func hysteresis() async {
    let signals = SignalQueue<Int>(limit: 4)
    for number in 1...6 { signals.post(number, weight: 1) }
    let isWoken = Lock(false)
    // Waits when this returns.
    let sender = Task.immediate {
      await signals.waitForRoom()
      isWoken.withLock { $0 = true }
    }
    for _ in 1...3 { _ = signals.poll() }
    for _ in 1...100 { await Task.yield() }
    #expect(!isWoken.withLock { $0 })
    // Whoever comes now need not wait.
    await signals.waitForRoom()
    _ = signals.poll()
    await sender.value
    #expect(isWoken.withLock { $0 })
  }

  @Test("A cancelled sender returns, and its element is not lost")
  func cancelled() async {
    let signals = SignalQueue<Int>(limit: 0)
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await signals.send(1, weight: 5) }
      group.cancelAll()
      await group.waitForAll()
    }
    #expect(await signals.receive(until: Self.soon) == 1)
  }

  @Test("Many senders and one receiver lose and repeat nothing")
  func concurrent() async {
    let signals = SignalQueue<Int>(limit: 3)
    await withTaskGroup(of: Void.self) { group in
      for sender in 0..<8 {
        group.addTask {
          for number in 0..<250 { await signals.send(sender * 250 + number, weight: 1) }
        }
      }
      var last = [Int](repeating: -1, count: 8)
      for _ in 0..<2000 {
        guard let element = await signals.receive(until: Self.soon) else {
          Issue.record("an element is missing")
          return
        }
        #expect(element % 250 == last[element / 250] + 1)
        last[element / 250] = element % 250
      }
      #expect(last.allSatisfy { $0 == 249 })
    }
  }

  @Test("Urgent elements overtake others and can be awaited alone")
  func urgent() async {
    let signals = SignalQueue<Int>(limit: 1000)
    signals.post(1)
    #expect(await signals.receive(until: .now + .milliseconds(20), urgentOnly: true) == nil)
    signals.post(2)
    signals.post(9, isUrgent: true)
    #expect(await signals.receive(until: .now, urgentOnly: true) == 9)
    signals.post(8, isUrgent: true)
    for element in [8, 1, 2] { #expect(await signals.receive(until: .now) == element) }
  }

  /// Often, because the receiver begins to wait at some moment of the posts.
  @Test("A receiver of urgent elements leaves the others")
  func urgentOnly() async {
    let signals = SignalQueue<Int>(limit: 1000)
    for _ in 0..<1000 {
      async let waiting = signals.receive(until: .now + .seconds(60), urgentOnly: true)
      signals.post(3)
      await Task.yield()
      signals.post(4)
      signals.post(7, isUrgent: true)
      #expect(await waiting == 7)
      for element in [3, 4] { #expect(signals.poll() == element) }
    }
  }
}

extension SignalQueue {
  /// Queues an element, and waits for room.
  fileprivate func send(_ element: Element, weight: Int) async {
    self.post(element, weight: weight)
    await self.waitForRoom()
  }
}
