import Testing

@testable import HTTP2Transport

@Suite("Receive windows")
struct ReceiveWindowsTests {
  /// A peer that sends as much as it may, and an application that takes or does not.
  struct Exchange {
    var windows: ReceiveWindows
    var connectionAllowance: Int
    var allowance: [UInt64: Int] = [:]
    var partial: [UInt64: Int] = [:]
    var held: [UInt64: [Int]] = [:]
    let initial: Int

    init(initial: Int = 256, stream: Int = 4096, connection: Int = 16384) {
      self.windows = ReceiveWindows(
        initialStreamBytes: initial, maxStreamBytes: stream, connectionBytes: connection)
      self.connectionAllowance = connection
      self.initial = initial
    }

    mutating func open(_ key: UInt64) {
      self.windows.open(key)
      self.windows.grow(key)
      self.allowance[key] = self.initial
      self.settle(key)
    }

    mutating func settle(_ key: UInt64) {
      self.allowance[key, default: 0] += self.windows.updateForStream(key)
      self.connectionAllowance += self.windows.updateForConnection()
    }

    /// Sends messages of `size` until the windows are used up; returns how many became complete.
    mutating func send(_ key: UInt64, messages: Int, of size: Int) -> Int {
      var complete = 0
      while complete < messages {
        let missing = size - self.partial[key, default: 0]
        let count = min(self.allowance[key, default: 0], self.connectionAllowance, missing, 100)
        guard count > 0 else { break }
        self.allowance[key, default: 0] -= count
        self.connectionAllowance -= count
        self.windows.received(count, on: key)
        self.partial[key, default: 0] += count
        if self.partial[key] == size {
          self.partial[key] = 0
          self.windows.completed(size, on: key)
          self.held[key, default: []].append(size)
          complete += 1
        }
        self.settle(key)
      }
      return complete
    }

    mutating func takeAll(_ key: UInt64) {
      for size in self.held.removeValue(forKey: key) ?? [] { self.windows.taken(size, on: key) }
      self.settle(key)
    }

    var unread: Int {
      self.held.values.joined().reduce(0, +) + self.partial.values.reduce(0, +)
    }
  }

  @Test("Unread messages stop the stream at its window") func unreadMessages() {
    var exchange = Exchange()
    exchange.open(1)
    let complete = exchange.send(1, messages: 1000, of: 50)
    #expect(complete < 1000)
    #expect((2048...4200).contains(exchange.unread))
  }

  @Test("A stream whose messages are taken never stops") func taking() {
    var exchange = Exchange()
    exchange.open(1)
    for _ in 0..<500 {
      #expect(exchange.send(1, messages: 20, of: 50) == 20)
      exchange.takeAll(1)
    }
  }

  @Test("A message larger than all windows arrives complete") func largeMessage() {
    var exchange = Exchange()
    exchange.open(1)
    for _ in 0..<20 {
      #expect(exchange.send(1, messages: 1, of: 100_000) == 1)
      exchange.takeAll(1)
    }
  }

  @Test("Window space advanced to a large message is repaid by the messages after it")
  func advance() {
    var exchange = Exchange()
    exchange.open(1)
    #expect(exchange.send(1, messages: 1, of: 100_000) == 1)
    _ = exchange.send(1, messages: 1000, of: 50)
    #expect(exchange.unread <= 100_000 + 4200)
    exchange.takeAll(1)
    #expect(exchange.send(1, messages: 20, of: 50) == 20)
  }

  @Test("Unread streams leave room for other streams") func unreadStreams() {
    var exchange = Exchange()
    for key: UInt64 in 1...40 {
      exchange.open(key)
      _ = exchange.send(key, messages: 1000, of: 50)
    }
    for key: UInt64 in 41...44 {
      exchange.open(key)
      #expect(exchange.send(key, messages: 1, of: 60_000) == 1)
    }
    // And they still hold what they hold.
    for key: UInt64 in 50...60 {
      exchange.open(key)
      for _ in 0..<20 {
        #expect(exchange.send(key, messages: 1, of: 5000) == 1)
        exchange.takeAll(key)
      }
      exchange.windows.close(key)
    }
  }

  @Test("The budget bounds the bytes of many unread streams") func budget() {
    var exchange = Exchange()
    for key: UInt64 in 1...30 {
      exchange.open(key)
      _ = exchange.send(key, messages: 1000, of: 50)
    }
    // The budget, and the first window and a message of each stream.
    #expect(exchange.unread <= 16384 + 30 * (256 + 50))
  }

  @Test("A closed stream returns its share of the budget") func closedStream() {
    var exchange = Exchange()
    for round: UInt64 in 0..<100 {
      exchange.open(round)
      let complete = exchange.send(round, messages: 1000, of: 50)
      #expect(complete > 40)
      exchange.held[round] = nil
      exchange.windows.close(round)
      exchange.settle(round)
    }
  }

  @Test("Bytes that arrive for a forgotten stream are returned") func forgottenStreams() {
    var windows = ReceiveWindows(
      initialStreamBytes: 256, maxStreamBytes: 256, connectionBytes: 16384)
    var allowed = 16384
    for _ in 0..<10_000 {
      windows.received(100, on: nil)
      allowed += windows.updateForConnection() - 100
    }
    #expect(allowed > 15_000)
  }
}
