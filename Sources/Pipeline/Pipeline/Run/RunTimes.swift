internal import Clocks

/// Measures how long events and stores take. Exists only if somebody wants to know.
///
/// A commit holds the times of its events, of which equal ones in a row take one entry, until it is
/// durable. So the loop over events does no more than compare two numbers.
struct RunTimes {
  typealias Instant = ContinuousClock.Instant

  private struct Arrival {
    var topic: Int
    var at: Instant
    var count: Int
  }

  private struct Change {
    var topic: Int
    /// Milliseconds since 1970.
    var committedAt: Int64
    var count: Int
  }

  private struct Events {
    var arrivals: [Arrival] = []
    var changes: [Change] = []
  }

  private var open = Events()
  private var sealed = Events()

  /// Counts events of a batch.
  ///
  /// - Parameter latestCommit: later commit times are wrong and are not counted.
  mutating func took(
    _ events: Range<Int>, of batch: RecordBatch, topic: Int, receivedAt: Instant,
    latestCommit: Int64
  ) {
    self.arrived(events.count, topic: topic, at: receivedAt)
    for index in events {
      guard let time = batch.events[index].commitTimestamp, time <= latestCommit else { continue }
      if let last = self.open.changes.indices.last, self.open.changes[last].committedAt == time,
        self.open.changes[last].topic == topic
      {
        self.open.changes[last].count += 1
      } else {
        self.open.changes.append(Change(topic: topic, committedAt: time, count: 1))
      }
    }
  }

  /// Counts events of a response, decoded or not.
  mutating func arrived(_ count: Int, topic: Int, at time: Instant) {
    if let last = self.open.arrivals.indices.last, self.open.arrivals[last].at == time,
      self.open.arrivals[last].topic == topic
    {
      self.open.arrivals[last].count += count
    } else {
      self.open.arrivals.append(Arrival(topic: topic, at: time, count: count))
    }
  }

  /// The open commit has been sealed. At most one is.
  mutating func seal() {
    swap(&self.sealed, &self.open)
    self.open.arrivals.removeAll(keepingCapacity: true)
    self.open.changes.removeAll(keepingCapacity: true)
  }

  /// The sealed commit has become durable.
  ///
  /// - Parameter serviceTime: milliseconds since 1970, by the clock that commit times are of.
  mutating func becameDurable(
    at now: Instant, serviceTime: Int64, _ topics: inout [RunStatistics.Topic]
  ) {
    for arrival in self.sealed.arrivals {
      topics[arrival.topic].processing.add(
        (now - arrival.at) / .seconds(1), count: arrival.count)
    }
    for change in self.sealed.changes {
      topics[change.topic].lag.add(
        Double(serviceTime - change.committedAt) / 1000, count: change.count)
    }
    self.sealed.arrivals.removeAll(keepingCapacity: true)
    self.sealed.changes.removeAll(keepingCapacity: true)
  }
}

extension PipelineRunner {
  /// Makes a call of a store, and measures it if somebody wants to know.
  func measure<Result>(
    _ phase: RunStatistics.StorePhase, of store: Int, _ call: (StagedStore) throws -> Result
  ) rethrows -> Result {
    guard self.times != nil else { return try call(self.stores[store]) }
    let began = self.now
    let result = try call(self.stores[store])
    self.statistics.stores[store].times[phase, default: .zero] += self.now - began
    return result
  }
}
