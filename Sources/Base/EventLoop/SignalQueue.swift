package import Clocks

/// Elements on their way from several tasks to one, in order of arrival.
///
/// Bounded by weight: a sender whose element takes the total above the limit is suspended until it is
/// half of the limit, so that senders are not woken for each element. At most one element per sender
/// exceeds the limit. Urgent elements overtake the others, and a receiver may wait for them alone.
package final class SignalQueue<Element: Sendable>: Sendable {
  private struct Sender {
    var id: Int
    var continuation: CheckedContinuation<Void, Never>
  }

  private struct Receiver {
    var id: Int
    var takesUrgentOnly: Bool
    var continuation: CheckedContinuation<Element?, Never>
  }

  private struct State {
    var urgent: [Element] = []
    var queue: [(element: Element, weight: Int)] = []
    /// Elements before it have been received; the array is cut when it is empty or half used.
    var head = 0
    var weight = 0
    var receiver: Receiver?
    var senders: [Sender] = []
    /// The call of `receive` whose time is over, perhaps before it began to wait.
    var expired = 0
    var nextID = 0
  }

  private let limit: Int
  private let clock: ProcessClock
  private let state = Lock(State())

  /// - Parameters:
  ///   - limit: sum of the weights above which senders wait.
  ///   - clock: of the deadlines.
  package init(limit: Int, clock: ProcessClock = ProcessClock()) {
    self.limit = limit
    self.clock = clock
  }

  /// Whether the total is within the limit.
  package var hasRoom: Bool { self.state.withLock { $0.weight <= self.limit } }

  /// Whether the total is more than twice the limit.
  package var isOverfull: Bool { self.state.withLock { $0.weight > 2 * self.limit } }

  /// Queues an element without waiting, whatever the weight.
  package func post(_ element: Element, weight: Int = 0, isUrgent: Bool = false) {
    let receiver = self.state.withLock { state -> Receiver? in
      if let receiver = state.receiver, isUrgent || !receiver.takesUrgentOnly {
        state.receiver = nil
        return receiver
      }
      if isUrgent {
        state.urgent.append(element)
      } else {
        state.queue.append((element, weight))
        state.weight += weight
      }
      return nil
    }
    receiver?.continuation.resume(returning: element)
  }

  /// Returns at once if the total is within the limit, and otherwise when it has fallen to half of it
  /// or the task is cancelled.
  package func waitForRoom() async {
    let id = self.state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let passes = self.state.withLock { state in
          if state.weight <= self.limit || Task.isCancelled { return true }
          state.senders.append(Sender(id: id, continuation: continuation))
          return false
        }
        if passes { continuation.resume() }
      }
    } onCancel: {
      let sender = self.state.withLock { state -> Sender? in
        guard let index = state.senders.firstIndex(where: { $0.id == id }) else { return nil }
        return state.senders.remove(at: index)
      }
      sender?.continuation.resume()
    }
  }

  /// The oldest element, urgent ones before others; nil when none has come until `deadline`. One
  /// receiver at a time.
  package func receive(
    until deadline: ContinuousClock.Instant, urgentOnly: Bool = false
  ) async -> Element? {
    if let element = self.take(urgentOnly: urgentOnly) { return element }
    let id = self.state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    let timer = Task { [weak self, clock] in
      try? await clock.sleep(until: deadline)
      self?.giveUp(id)
    }
    defer { timer.cancel() }
    return await withCheckedContinuation { continuation in
      let (element, isReady) = self.state.withLock { state -> (Element?, Bool) in
        if let element = Self.pop(&state, urgentOnly: urgentOnly) { return (element, true) }
        if state.expired == id { return (nil, true) }
        precondition(state.receiver == nil, "two receivers")
        state.receiver = Receiver(
          id: id, takesUrgentOnly: urgentOnly, continuation: continuation)
        return (nil, false)
      }
      if isReady { continuation.resume(returning: element) }
    }
  }

  /// The oldest element, if there is one.
  package func poll() -> Element? { self.take(urgentOnly: false) }

  private func giveUp(_ id: Int) {
    let receiver = self.state.withLock { state -> Receiver? in
      state.expired = id
      guard let receiver = state.receiver, receiver.id == id else { return nil }
      state.receiver = nil
      return receiver
    }
    receiver?.continuation.resume(returning: nil)
  }

  private func take(urgentOnly: Bool) -> Element? {
    let (element, senders) = self.state.withLock { state -> (Element?, [Sender]) in
      let element = Self.pop(&state, urgentOnly: urgentOnly)
      guard state.weight <= self.limit / 2, !state.senders.isEmpty else { return (element, []) }
      defer { state.senders.removeAll() }
      return (element, state.senders)
    }
    for sender in senders { sender.continuation.resume() }
    return element
  }

  private static func pop(_ state: inout State, urgentOnly: Bool) -> Element? {
    if !state.urgent.isEmpty { return state.urgent.removeFirst() }
    guard !urgentOnly else { return nil }
    guard state.head < state.queue.count else { return nil }
    let (element, weight) = state.queue[state.head]
    state.head += 1
    state.weight -= weight
    if state.head == state.queue.count || state.head >= 64 {
      state.queue.removeFirst(state.head)
      state.head = 0
    }
    return element
  }
}
