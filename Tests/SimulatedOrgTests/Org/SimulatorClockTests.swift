import Foundation
import TestSupport
import Testing

@testable import SimulatedOrg

@Suite("The simulator's clock") struct SimulatorClockTests {
  @Test("A file has by how many milliseconds it is ahead")
  func file() throws {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/clock"
    func milliseconds() throws -> Int64 {
      try Data(contentsOf: URL(filePath: path)).withUnsafeBytes {
        $0.loadUnaligned(as: Int64.self)
      }
    }
    let clock = SimulatorClock()
    clock.advance(byMilliseconds: 5)
    try clock.share(in: path)
    #expect(try milliseconds() == 5)
    clock.advance(byMilliseconds: 172_800_001)
    #expect(try milliseconds() == 172_800_006)
    #expect(clock.now - SimulatorClock.wallTime >= 172_800_005)
    #expect(throws: SimulatorError.self) { try SimulatorClock().share(in: directory.path) }
  }
}
