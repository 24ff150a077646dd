import Testing

@testable import HTTPClient

@Suite("Stall detector")
struct StallDetectorTests {
  let start = SuspendingClock.now

  /// Whether the transfer stalls at one of the moments: seconds from the start, bytes so far.
  func stalls(
    _ moments: [(Int, Int)], pauses: [Int: Int] = [:], bytesPerSecond: Int = 1
  ) -> Int? {
    var detector = StallDetector(
      limit: .seconds(60), bytesPerSecond: bytesPerSecond, start: self.start)
    for (second, byteCount) in moments {
      if let pause = pauses[second] { detector.paused(for: .seconds(pause)) }
      if detector.isStalled(byteCount: byteCount, at: self.start + .seconds(second)) {
        return second
      }
    }
    return nil
  }

  @Test("Silence counts as a stall after the limit") func silence() {
    #expect(self.stalls((0...100).map { ($0, 0) }) == 60)
  }

  @Test("One byte per second is enough") func oneByte() {
    #expect(self.stalls((0...1000).map { ($0, $0) }) == nil)
  }

  @Test("Less than one byte per second is a stall") func lessThanOneByte() {
    #expect(self.stalls((0...1000).map { ($0, $0 / 2) }) == 60)
  }

  @Test("A fast start does not make up for later silence") func fastStart() {
    #expect(self.stalls((0...1000).map { ($0, min($0, 100) * 1_000_000) }) == 160)
  }

  @Test("A pause of the consumer does not count toward the limit") func consumerTime() {
    let moments = [(10, 600), (50, 610), (1050, 620), (1060, 630), (1080, 640)]
    #expect(self.stalls(moments) == 1050)
    #expect(self.stalls(moments, pauses: [1050: 1000]) == 1080)
  }

  @Test("A limit below one second requires one byte") func shortLimit() {
    var detector = StallDetector(limit: .milliseconds(100), bytesPerSecond: 10, start: self.start)
    let moments = [(99, 0), (100, 1), (199, 1), (200, 1)]
    let stalls = moments.map { milliseconds, byteCount in
      detector.isStalled(byteCount: byteCount, at: self.start + .milliseconds(milliseconds))
    }
    #expect(stalls == [false, false, false, true])
  }

  @Test("Two bytes per second are a stall if more are needed") func slow() {
    let moments = (0...100).map { ($0, 2 * $0) }
    #expect(self.stalls(moments, bytesPerSecond: 1000) == 60)
    #expect(self.stalls((0...100).map { ($0, 1000 * $0) }, bytesPerSecond: 1000) == nil)
  }
}
