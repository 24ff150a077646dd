/// When the event loops of this process will wake up by themselves, how to wake them before, and the sockets that
/// they wait for.
///
/// Kept for `ServedClock`: a loop announces its deadline before it waits.
enum Deadlines {
  private struct Loop {
    var deadline: ContinuousClock.Instant?
    var wake: @Sendable () -> Void
  }

  private struct State {
    var loops: [Int: Loop] = [:]
    var nextID = 0
    var descriptors: Set<Int32> = []
  }

  private static let state = Lock(State())

  /// - Returns: the loop's number.
  static func register(wake: @escaping @Sendable () -> Void) -> Int {
    Self.state.withLock { state in
      state.nextID += 1
      state.loops[state.nextID] = Loop(wake: wake)
      return state.nextID
    }
  }

  static func unregister(_ id: Int) {
    Self.state.withLock { $0.loops[id] = nil }
  }

  static func announce(_ id: Int, _ deadline: ContinuousClock.Instant?) {
    Self.state.withLock { $0.loops[id]?.deadline = deadline }
  }

  static func add(_ descriptor: Int32) {
    Self.state.withLock { _ = $0.descriptors.insert(descriptor) }
  }

  static func remove(_ descriptor: Int32) {
    Self.state.withLock { _ = $0.descriptors.remove(descriptor) }
  }

  static var descriptors: Set<Int32> { Self.state.withLock { $0.descriptors } }

  static var earliest: ContinuousClock.Instant? {
    Self.state.withLock { $0.loops.values.compactMap(\.deadline).min() }
  }

  /// Makes all loops look at the time again.
  static func wakeAll() {
    for loop in self.state.withLock({ Array($0.loops.values) }) { loop.wake() }
  }
}
