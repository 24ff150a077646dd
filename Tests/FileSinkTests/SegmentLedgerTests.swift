import DurableFiles
import JSON
import Testing

@testable import FileSink

/// The protocol alone: every short sequence of operations, with a crash at every step of it, every
/// outcome of a power cut, and a second crash at every step of the recovery.
@Suite("Segment ledger")
struct SegmentLedgerTests {
  @Test(
    "Nothing is lost, repeated, torn or changed by any order of calls and crashes",
    arguments: [
      (renamesByLink: false, writesAside: false, depth: 5, least: 3_000), (true, false, 4, 300),
      (false, true, 4, 300),
    ])
  func exhaustive(renamesByLink: Bool, writesAside: Bool, depth: Int, least: Int) {
    var explorer = LedgerExplorer()
    explorer.renamesByLink = renamesByLink
    explorer.writesAside = writesAside
    explorer.explore(depth: depth)
    #expect(explorer.faults == [])
    // Far fewer would mean that the explorer no longer explores.
    #expect(explorer.operationCount > least)
    #expect(explorer.crashCount > least * 6)
    #expect(explorer.recoveryCount > least)
  }

  @Test(
    "Nothing is lost, repeated, torn or changed when later runs continue the files",
    arguments: [
      (LedgerExplorer.Operation.allCases, 3), ([.appendA, .commit, .restart, .finish], 5),
    ])
  func continued(operations: [LedgerExplorer.Operation], depth: Int) {
    var explorer = LedgerExplorer()
    explorer.keepsFiles = true
    explorer.operations = operations
    explorer.explore(depth: depth)
    #expect(explorer.faults == [])
    #expect(explorer.operationCount > 200)
    #expect(explorer.recoveryCount > 100)
  }

  /// A protocol with one step left out has to be found wanting: else the explorer proves nothing.
  @Test(
    "The explorer finds the fault when a step is left out",
    arguments: LedgerExplorer.Sabotage.allCases)
  func sabotage(_ sabotage: LedgerExplorer.Sabotage) {
    var explorer = LedgerExplorer()
    explorer.sabotage = sabotage
    explorer.writesAside = sabotage == .writeLines
    if [.resumeCut, .join].contains(sabotage) {
      explorer.keepsFiles = true
      explorer.operations = [.appendA, .commit, .restart]
    }
    explorer.explore(depth: explorer.keepsFiles ? 6 : 3)
    #expect(!explorer.faults.isEmpty)
  }

  @Test("A file without new events is not flushed again")
  func clean() throws {
    var ledger = SegmentLedger()
    let (id, steps) = ledger.open(directory: "d")
    #expect(steps == [.create(id)])
    #expect(
      ledger.flush { _ in false } == [.flush(id), .synchronizeData(id), .synchronizeDirectory("d")])
    let record = LedgerExplorer.record(part: "d/.a.part", name: "d/a", content: [7])
    ledger.flushed(id, record)
    #expect(ledger.unfinished == [record])
    #expect(ledger.commit() == [])
    #expect(ledger.flush { _ in false } == [])
    var closing = record
    closing.isClosing = true
    #expect(ledger.flush { _ in true } == [.release(id)])
    #expect(ledger.unfinished == [closing])
    #expect(
      ledger.commit() == [
        .endFrame(closing), .rename(closing), .synchronizeFinished("d"),
        .appendToManifest(closing),
      ])
    #expect(ledger.unfinished == [])
    #expect(ledger.commit() == [])
  }

  @Test("A sealed file is durable at once and announced only by the next commit")
  func sealed() {
    var ledger = SegmentLedger()
    let (id, _) = ledger.open(directory: "d")
    #expect(ledger.seal(id) == [.flush(id), .synchronizeData(id), .release(id)])
    ledger.flushed(id, LedgerExplorer.record(part: "d/.a.part", name: "d/a", content: [7]))
    #expect(ledger.commit() == [])
    #expect(ledger.unfinished.map(\.isClosing) == [false])
    #expect(ledger.flush { _ in false } == [.synchronizeDirectory("d")])
    #expect(ledger.unfinished.map(\.isClosing) == [true])
  }
}
