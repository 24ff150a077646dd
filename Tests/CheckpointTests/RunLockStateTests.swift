import Glibc
import TestSupport
import Testing

@testable import Checkpoint

@Suite("State of the run lock")
struct RunLockStateTests {
  @Test("A held lock is reported with its process, and stays held")
  func held() throws {
    let directory = try TemporaryDirectory()
    let paths = StatePaths(directory: directory.path, pipeline: "opps")
    #expect(RunLockState.read(paths.lock) == RunLockState(isHeld: false))
    do {
      let store = try FileCheckpointStore(directory: directory.path, pipeline: "opps")
      let state = RunLockState.read(paths.lock)
      #expect(state.isHeld == true)
      #expect(state.processID == getpid())
      #expect(throws: CheckpointError.self) {
        try FileCheckpointStore(directory: directory.path, pipeline: "opps")
      }
      withExtendedLifetime(store) {}
    }
    #expect(RunLockState.read(paths.lock).isHeld == false)
  }

  @Test("A command that takes the lock leaves the last run in it")
  func command() throws {
    let directory = try TemporaryDirectory()
    let paths = StatePaths(directory: directory.path, pipeline: "opps")
    func take(isRun: Bool) throws -> RunLockState {
      let store = try FileCheckpointStore(
        directory: directory.path, pipeline: "opps", isRun: isRun)
      return withExtendedLifetime(store) { RunLockState.read(paths.lock) }
    }
    for _ in 1...2 {
      let state = try take(isRun: false)
      #expect(state.isHeld == true && state.processID == getpid() && state.run == nil)
    }
    let run = try #require(try take(isRun: true).run)
    #expect(run.processID == getpid())
    for _ in 1...2 {
      let state = try take(isRun: false)
      #expect(state.isHeld == true && state.processID == getpid() && state.run == run)
    }
  }

  @Test("Waiting locks, other files, other kinds and other processes do not count")
  func table() {
    let locks = """
      1: FLOCK  ADVISORY  WRITE 12 fe:00:77 0 EOF
      1: -> FLOCK  ADVISORY  WRITE 13 fe:00:78 0 EOF
      2: POSIX  ADVISORY  WRITE 12 fe:00:79 0 EOF
      3: FLOCK  ADVISORY  WRITE 0 fe:00:80 0 EOF
      torn
      """
    func isHeld(_ inode: UInt64, by process: Int32?) -> Bool {
      RunLockState.isHeld(inode: inode, locks: locks, by: process)
    }
    #expect(isHeld(77, by: 12))
    #expect(isHeld(77, by: nil))
    #expect(!isHeld(77, by: 13))
    #expect(!isHeld(78, by: 13))
    #expect(!isHeld(79, by: 12))
    #expect(isHeld(80, by: 12))
    #expect(!isHeld(81, by: nil))
  }
}
