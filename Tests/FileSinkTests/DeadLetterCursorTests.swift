import Pipeline
import TestSupport
import Testing

@testable import FileSink

@Suite("Reading dead letters some at a time") struct DeadLetterCursorTests {
  @Test("A cursor lends each letter once, in order, and only a few at a time")
  func lendsOnce() throws {
    let directory = try TemporaryDirectory()
    let dead = DeadLetterFile(directory: directory.path, pipeline: "opps", org: "00D")
    try dead.recover(from: nil)
    // Alike, so that a few compressed bytes hold all of them.
    for ordinal in 0..<5000 {
      try dead.append(
        DeadLetter(
          topic: "/data/OpportunityChangeEvent", replayID: ReplayID([1]), eventID: "e",
          schemaID: "s", payload: Array(repeating: 0, count: 600), reason: "r", epoch: 1,
          ordinal: Int64(ordinal)))
    }
    _ = try dead.flush(finish: true)
    _ = try dead.committed()
    let archive = DeadLetterArchive(directory: directory.path, pipeline: "opps", org: "00D")
    let cursor = try archive.cursor(openFiles: nil)
    var ordinals: [Int64] = []
    var counts: [Int] = []
    while try cursor.next({ ordinals.append($0.letter.ordinal) }) {
      counts.append(ordinals.count - counts.reduce(0, +))
    }
    #expect(ordinals == Array(0..<5000))
    #expect(counts.allSatisfy { $0 <= 200 })
    var visited: [Int64] = []
    try archive.visit(openFiles: nil) { visited.append($0.letter.ordinal) }
    #expect(visited == ordinals)
  }
}
