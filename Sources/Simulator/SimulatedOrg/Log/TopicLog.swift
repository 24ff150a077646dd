/// The events of one topic in order, with what is needed to find a position again.
package struct TopicLog {
  package struct Entry {
    var offset: UInt64
    package var replayNumber: UInt64
    var publishedAt: Int64
    package var byteCount: UInt32
  }

  /// A position without an event: the start of the topic, or what an empty response named.
  private struct Mark {
    var replayNumber: UInt64
    var issuedAt: Int64
  }

  /// 72 hours (TheService.md#retention).
  static let retention: Int64 = 72 * 3_600_000

  package let topic: Topic
  package private(set) var entries: [Entry] = []
  private var marks: [Mark] = []
  private var tip: UInt64
  private var random: RandomStream

  init(topic: Topic, seed: UInt64, createdAt: Int64) {
    self.topic = topic
    self.random = RandomStream(
      seed: RandomStream.mix(seed &+ RandomStream.hash(topic.name)))
    self.tip = 1_000_000 + self.random.next() % (1 << 40)
    self.marks.append(Mark(replayNumber: self.tip, issuedAt: createdAt))
  }

  /// A new replay ID: higher than all before, not contiguous.
  mutating func advance() -> UInt64 {
    self.tip += 1 + UInt64(self.random.below(97))
    return self.tip
  }

  mutating func append(_ entry: Entry) {
    self.entries.append(entry)
  }

  /// The ID of an empty response: may be ahead of the last event, since the bus carries other orgs as well.
  mutating func keepalivePosition(at now: Int64) -> UInt64 {
    if self.random.chance(0.5) { _ = self.advance() }
    if self.marks.last?.replayNumber != self.tip {
      self.marks.append(Mark(replayNumber: self.tip, issuedAt: now))
    } else {
      self.marks[self.marks.count - 1].issuedAt = now
    }
    return self.tip
  }

  /// Index of the oldest event that is still kept.
  package func firstRetained(at now: Int64) -> Int {
    self.entries.firstIndexSorted { $0.publishedAt >= now - Self.retention }
  }

  /// Index of the first event a subscription gets.
  ///
  /// CUSTOM is exclusive: delivery begins after *all* events with the given ID.
  package func start(
    preset: ReplayPreset, replayID: [UInt8], at now: Int64
  ) throws(ServiceFault) -> Int {
    switch preset {
    case .latest: return self.entries.count
    case .earliest: return self.firstRetained(at: now)
    case .custom:
      guard !replayID.isEmpty else { throw .replayMissing }
      guard let number = ReplayPosition.number(replayID),
        let issuedAt = self.issueTime(of: number), issuedAt >= now - Self.retention
      else { throw .replayCorrupted }
      return self.entries.firstIndexSorted { $0.replayNumber > number }
    }
  }

  /// When the ID was given out; nil if never. Nobody may compute with IDs, so one that was never issued is
  /// refused even inside the range.
  private func issueTime(of number: UInt64) -> Int64? {
    let mark = self.marks.firstIndexSorted { $0.replayNumber >= number }
    if mark < self.marks.count, self.marks[mark].replayNumber == number {
      return self.marks[mark].issuedAt
    }
    let next = self.entries.firstIndexSorted { $0.replayNumber > number }
    guard next > 0, self.entries[next - 1].replayNumber == number else { return nil }
    return self.entries[next - 1].publishedAt
  }
}

extension Array {
  /// The first index whose element fulfils the condition, which must be false up to some point and true after it.
  func firstIndexSorted(where condition: (Element) -> Bool) -> Int {
    var low = 0
    var high = self.count
    while low < high {
      let middle = (low + high) / 2
      if condition(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
