/// Deadlines in order, each with a value. Has no clock.
struct TimerQueue<Value> {
  typealias Instant = ContinuousClock.Instant

  private struct Entry {
    var deadline: Instant
    var id: UInt64
  }

  /// A binary heap, earliest first; equal deadlines in the order they were added.
  private var heap: [Entry] = []
  /// Cancelled entries stay in the heap until they surface or outnumber the rest.
  private var values: [UInt64: Value] = [:]
  private var nextID: UInt64 = 0

  var isEmpty: Bool { self.values.isEmpty }

  mutating func add(_ value: Value, at deadline: Instant) -> UInt64 {
    self.nextID += 1
    self.values[self.nextID] = value
    self.heap.append(Entry(deadline: deadline, id: self.nextID))
    self.siftUp(self.heap.count - 1)
    return self.nextID
  }

  /// Forgets a timer; one that has fired or never existed is ignored.
  mutating func cancel(_ id: UInt64) {
    guard self.values.removeValue(forKey: id) != nil else { return }
    if self.heap.count > 64, self.heap.count > self.values.count * 2 {
      self.heap = self.heap.filter { self.values[$0.id] != nil }.sorted(by: Self.isBefore)
    }
  }

  mutating func removeAll() {
    self.heap.removeAll()
    self.values.removeAll()
  }

  /// The earliest deadline that still counts.
  mutating func nextDeadline() -> Instant? {
    while let first = self.heap.first {
      if self.values[first.id] != nil { return first.deadline }
      self.removeFirst()
    }
    return nil
  }

  /// Takes out the earliest value whose deadline is not after `now`.
  mutating func popDue(now: Instant) -> Value? {
    guard let deadline = self.nextDeadline(), deadline <= now else { return nil }
    let id = self.heap[0].id  // `nextDeadline` returned, so the heap is not empty.
    self.removeFirst()
    return self.values.removeValue(forKey: id)
  }

  private static func isBefore(_ left: Entry, _ right: Entry) -> Bool {
    left.deadline == right.deadline ? left.id < right.id : left.deadline < right.deadline
  }

  private mutating func siftUp(_ start: Int) {
    var index = start
    while index > 0 {
      let parent = (index - 1) / 2
      guard Self.isBefore(self.heap[index], self.heap[parent]) else { return }
      self.heap.swapAt(index, parent)
      index = parent
    }
  }

  private mutating func removeFirst() {
    self.heap.swapAt(0, self.heap.count - 1)
    self.heap.removeLast()
    var index = 0
    while true {
      var least = index
      for child in [2 * index + 1, 2 * index + 2] where child < self.heap.count {
        if Self.isBefore(self.heap[child], self.heap[least]) { least = child }
      }
      if least == index { return }
      self.heap.swapAt(index, least)
      index = least
    }
  }
}
