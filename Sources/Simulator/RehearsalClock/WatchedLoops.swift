internal import EventLoop

/// When the event loops of this process will wake up by themselves, how to wake them before, and the sockets that
/// they wait for. A loop announces its deadline before it waits.
final class WatchedLoops: Sendable {
  private struct Loop {
    var deadline: ContinuousClock.Instant?
    var wake: @Sendable () -> Void
  }

  private struct State {
    var loops: [Int: Loop] = [:]
    var nextID = 0
    var descriptors: Set<Int32> = []
  }

  private let state = Lock(State())

  /// - Returns: the loop's number.
  func register(wake: @escaping @Sendable () -> Void) -> Int {
    self.state.withLock { state in
      state.nextID += 1
      state.loops[state.nextID] = Loop(wake: wake)
      return state.nextID
    }
  }

  func unregister(_ id: Int) {
    self.state.withLock { $0.loops[id] = nil }
  }

  func announce(_ id: Int, _ deadline: ContinuousClock.Instant?) {
    self.state.withLock { $0.loops[id]?.deadline = deadline }
  }

  func add(_ descriptor: Int32) {
    self.state.withLock { _ = $0.descriptors.insert(descriptor) }
  }

  func remove(_ descriptor: Int32) {
    self.state.withLock { _ = $0.descriptors.remove(descriptor) }
  }

  var descriptors: Set<Int32> { self.state.withLock { $0.descriptors } }

  var earliest: ContinuousClock.Instant? {
    self.state.withLock { $0.loops.values.compactMap(\.deadline).min() }
  }

  /// Makes all loops look at the time again.
  func wakeAll() {
    for loop in self.state.withLock({ Array($0.loops.values) }) { loop.wake() }
  }
}
