internal import EventLoop
package import PubSubAPI

/// A clock that a test advances.
package final class ManualClock: Sendable {
  private struct Sleeper {
    var deadline: ContinuousClock.Instant
    var continuation: CheckedContinuation<Void, Never>
  }
  private struct State {
    var now = ContinuousClock.now
    var sleepers: [Int: Sleeper] = [:]
    var nextID = 0
    /// Waits for somebody to sleep.
    var observer: (count: Int, continuation: CheckedContinuation<Void, Never>)?
  }
  private let state = Lock(State())

  package init() {}

  package var clock: StreamClock {
    StreamClock(
      now: { self.state.withLock { $0.now } },
      sleep: { await self.sleep(until: $0) })
  }

  package func advance(by duration: Duration) {
    let due = self.state.withLock { state -> [Sleeper] in
      state.now += duration
      let due = state.sleepers.filter { $0.value.deadline <= state.now }
      for id in due.keys { state.sleepers[id] = nil }
      return Array(due.values)
    }
    for sleeper in due { sleeper.continuation.resume() }
  }

  /// Returns when so many sleep: whoever does has seen the time as it is.
  package func someoneSleeps(count: Int = 1) async {
    await withCheckedContinuation { continuation in
      let isAsleep = self.state.withLock { state in
        if state.sleepers.count >= count { return true }
        state.observer = (count, continuation)
        return false
      }
      if isAsleep { continuation.resume() }
    }
  }

  private func sleep(until deadline: ContinuousClock.Instant) async {
    let id = self.state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let (isDue, observer) = self.state.withLock { state in
          if deadline <= state.now || Task.isCancelled {
            return (true, nil as CheckedContinuation<Void, Never>?)
          }
          state.sleepers[id] = Sleeper(deadline: deadline, continuation: continuation)
          guard let observer = state.observer, state.sleepers.count >= observer.count else {
            return (false, nil)
          }
          state.observer = nil
          return (false, observer.continuation)
        }
        observer?.resume()
        if isDue { continuation.resume() }
      }
    } onCancel: {
      let sleeper = self.state.withLock { $0.sleepers.removeValue(forKey: id) }
      sleeper?.continuation.resume()
    }
  }
}
