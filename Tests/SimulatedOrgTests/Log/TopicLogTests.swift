import Testing

@testable import SimulatedOrg

@Suite("Positions in a topic")
struct TopicLogTests {
  private static let hour: Int64 = 3_600_000

  /// Ten events, one per hour, beginning at hour 1; events 4 and 5 (from 0) share a replay ID.
  private func log() -> TopicLog {
    var log = TopicLog(topic: .single(.opportunity), seed: 1, createdAt: 0)
    var number: UInt64 = 0
    for index in 0..<10 {
      if index != 5 { number = log.advance() }
      log.append(
        TopicLog.Entry(
          offset: 0, replayNumber: number, publishedAt: Int64(index + 1) * Self.hour, byteCount: 1))
    }
    return log
  }

  private func start(
    _ log: TopicLog, _ preset: ReplayPreset, _ id: [UInt8] = [], at hours: Int64 = 10
  ) throws(ServiceFault) -> Int {
    try log.start(preset: preset, replayID: id, at: hours * Self.hour)
  }

  @Test("EARLIEST starts at the oldest kept event, LATEST after the last")
  func presets() throws {
    let log = self.log()
    #expect(try self.start(log, .earliest) == 0)
    #expect(try self.start(log, .latest) == 10)
    #expect(try self.start(log, .earliest, at: 72 + 4) == 3)
    #expect(try self.start(log, .earliest, at: 1000) == 10)
  }

  @Test("CUSTOM is exclusive and skips a whole group of equal IDs")
  func exclusive() throws {
    let log = self.log()
    for index in [0, 3, 9] {
      let id = ReplayPosition.bytes(log.entries[index].replayNumber)
      #expect(try self.start(log, .custom, id) == index + 1)
      #expect(try self.start(log, .custom, Array(id.prefix(8))) == index + 1)
    }
    let group = ReplayPosition.bytes(log.entries[4].replayNumber)
    #expect(try self.start(log, .custom, group) == 6)
  }

  @Test("A malformed, unissued or expired ID is corrupted, and an empty one is missing")
  func corrupted() {
    let log = self.log()
    let first = log.entries[0].replayNumber
    for id in [[1], [UInt8](repeating: 0xff, count: 10), ReplayPosition.bytes(first - 1)] {
      #expect(throws: ServiceFault.replayCorrupted) { try self.start(log, .custom, id) }
    }
    let id = ReplayPosition.bytes(first)
    #expect(throws: Never.self) { try self.start(log, .custom, id, at: 73) }
    #expect(throws: ServiceFault.replayCorrupted) { try self.start(log, .custom, id, at: 74) }
    #expect(throws: ServiceFault.replayMissing) { try self.start(log, .custom, []) }
  }

  @Test("IDs grow with gaps, and the ID of an empty response can be resumed from")
  func keepalives() throws {
    var log = self.log()
    let numbers = Set(log.entries.map(\.replayNumber)).sorted()
    #expect(numbers == log.entries.map(\.replayNumber).uniqued())
    #expect(zip(numbers, numbers.dropFirst()).contains { $1 - $0 > 1 })
    for hours in Int64(11)..<30 {
      let position = log.keepalivePosition(at: hours * Self.hour)
      #expect(position >= numbers[numbers.count - 1])
      #expect(try self.start(log, .custom, ReplayPosition.bytes(position), at: hours + 71) == 10)
    }
  }
}

extension Sequence where Element: Equatable {
  /// Without repetitions of neighbours.
  fileprivate func uniqued() -> [Element] {
    self.reduce(into: []) { if $0.last != $1 { $0.append($1) } }
  }
}
