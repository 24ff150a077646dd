import DurableFiles
import Pipeline
import TestSupport
import Testing

@testable import FileSink

/// The whole of checkpoint, files sink and dead letters on a file system in memory, ended at every
/// call.
@Suite("Crashes at every call")
struct CrashTests {
  /// Two entities, two dates, a platform event, dead letters, a fan-out, rotation by events and by
  /// the number of open files.
  static let script = ScriptedRun(
    events: (0..<9).map { number in
      var event = TestEvent(number: number)
      if number == 2 || number == 5 {
        event.entity = "Account"
        event.rowCount = 3
      }
      if number == 3 { event.isUndecodable = true }
      if number == 4 {
        event.topic = "/event/Order__e"
        event.entity = "Order__e"
        event.commitTimestamp = nil
      }
      if number > 6 { event.commitTimestamp = 1_771_372_800_000 }
      return event
    },
    rotation: .init(maxEventCount: 2, maxOpenFileCount: 2))

  static let callCount = Self.callCount(of: Self.script)

  private static func callCount(of script: ScriptedRun) -> Int {
    let fileSystem = ModelFileSystem()
    try? script.run(on: fileSystem)
    return fileSystem.callCount
  }

  /// Records are read beside the events; the job may be lost on the way.
  private static func script(losingJobAfter lost: Int?) -> ScriptedRun {
    var script = Self.script
    script.rotation.maxEventCount = 3
    script.reads = ScriptedReads(recordCount: 7, losesJobAfter: lost)
    return script
  }

  @Test(
    "Each row of a job is written once after a kill or power cut at any call",
    arguments: [nil, 4])
  func killWhileReading(losingJobAfter lost: Int?) throws {
    let script = Self.script(losingJobAfter: lost)
    let callCount = Self.callCount(of: script)
    let undisturbed = ModelFileSystem()
    try script.run(on: undisturbed)
    #expect(try script.faults(in: undisturbed.files) == [])
    for call in 1...callCount {
      let fileSystem = ModelFileSystem()
      fileSystem.diesAtCall = call
      fileSystem.tearsLastWrite = call % 2 == 0
      #expect(throws: (any Error).self) { try script.run(on: fileSystem) }
      if call % 3 == 0 {
        fileSystem.powerCut(.random(SplitMix(seed: UInt64(call))))
      } else {
        fileSystem.kill()
      }
      try self.complete(fileSystem, "killed at call \(call)", script)
    }
  }

  /// File systems without RENAME_NOREPLACE, with and without links.
  @Test(
    "A kill or power cut at any call loses nothing where files cannot be renamed safely",
    arguments: [["renameat2"], ["renameat2", "link"]] as [Set<String>], [false, true])
  func killWithoutSafeRename(refused: Set<String>, cutsPower: Bool) throws {
    let counting = ModelFileSystem()
    counting.refused = refused
    try Self.script.run(on: counting)
    #expect(try Self.script.faults(in: counting.files) + counting.violations == [])
    for call in 1...counting.callCount {
      let fileSystem = ModelFileSystem()
      fileSystem.refused = refused
      fileSystem.diesAtCall = call
      #expect(throws: (any Error).self) { try Self.script.run(on: fileSystem) }
      if cutsPower { fileSystem.powerCut(Self.survival(call % 3, call)) } else { fileSystem.kill() }
      try self.complete(fileSystem, "killed at call \(call) without \(refused.sorted())")
    }
  }

  @Test("Each event is written once without a crash")
  func noCrash() throws {
    let fileSystem = ModelFileSystem()
    try Self.script.run(on: fileSystem)
    #expect(try Self.script.faults(in: fileSystem.files) == [])
    #expect(fileSystem.violations == [])
    #expect(Self.callCount > 100)
    // Nothing more to do: another run changes nothing.
    let before = fileSystem.files.filter { ModelFileSystem.isFinal($0.key) }
    fileSystem.kill()
    try Self.script.run(on: fileSystem)
    #expect(fileSystem.files.filter { ModelFileSystem.isFinal($0.key) } == before)
  }

  @Test("The next run completes after a kill at any call", arguments: [false, true])
  func kill(tearing: Bool) throws {
    for call in 1...Self.callCount {
      let fileSystem = ModelFileSystem()
      fileSystem.diesAtCall = call
      fileSystem.tearsLastWrite = tearing
      #expect(throws: (any Error).self) { try Self.script.run(on: fileSystem) }
      fileSystem.kill()
      try self.complete(fileSystem, "killed at call \(call)")
    }
  }

  @Test("The next run completes after a power cut at any call", arguments: 0..<3)
  func powerCut(variant: Int) throws {
    for call in 1...Self.callCount {
      let fileSystem = ModelFileSystem()
      fileSystem.diesAtCall = call
      fileSystem.tearsLastWrite = variant % 2 == 1
      #expect(throws: (any Error).self) { try Self.script.run(on: fileSystem) }
      fileSystem.powerCut(Self.survival(variant, call))
      try self.complete(fileSystem, "cut at call \(call), variant \(variant)")
    }
  }

  /// Four runs that continue each other's files, with dates, entities, dead letters and reads, and
  /// files that end by their number of events.
  private static let continued: ScriptedRun = {
    var script = Self.script(losingJobAfter: nil)
    script.rotation.maxOpenFileCount = 3
    script.eventsPerRun = 2
    return script
  }()

  @Test(
    "Files that later runs continue have each event once, after a kill or power cut at any call",
    arguments: [(0, true), (1, false), (2, true)])
  func continuedFiles(variant: Int, writesAside: Bool) throws {
    var script = Self.continued
    script.writesAside = writesAside
    let undisturbed = ModelFileSystem()
    try script.run(on: undisturbed)
    #expect(try script.faults(in: undisturbed.files) + undisturbed.violations == [])
    let callCount = undisturbed.callCount
    for call in 1...callCount {
      let fileSystem = ModelFileSystem()
      fileSystem.diesAtCall = call
      fileSystem.tearsLastWrite = call % 2 == 0
      #expect(throws: (any Error).self) { try script.run(on: fileSystem) }
      if variant == 0 {
        fileSystem.kill()
      } else {
        fileSystem.powerCut(Self.survival(variant - 1, call))
      }
      try self.complete(fileSystem, "call \(call), variant \(variant)", script)
    }
  }

  @Test("Further crashes during recovery change nothing", arguments: 0..<2)
  func repeatedCrashes(variant: Int) throws {
    var random = SplitMix(seed: UInt64(variant))
    for call in 1...Self.callCount {
      let fileSystem = ModelFileSystem()
      var calls = [call]
      fileSystem.diesAtCall = call
      #expect(throws: (any Error).self) { try Self.script.run(on: fileSystem) }
      for round in 0..<3 {
        if (call + round) % 2 == 0 {
          fileSystem.kill()
        } else {
          fileSystem.powerCut(Self.survival(variant + round, call))
        }
        calls.append(Int.random(in: 1...60, using: &random))
        fileSystem.diesAtCall = calls[round + 1]
        try? Self.script.run(on: fileSystem)
      }
      fileSystem.powerCut(.nothing)
      try self.complete(fileSystem, "crashes at calls \(calls), variant \(variant)")
    }
  }

  private static func survival(_ variant: Int, _ call: Int) -> ModelFileSystem.Survival {
    switch variant {
    case 0: .nothing
    default: .random(SplitMix(seed: UInt64(variant * 10_000 + call)))
    }
  }

  private func complete(
    _ fileSystem: ModelFileSystem, _ what: String, _ script: ScriptedRun = Self.script
  ) throws {
    do {
      try script.run(on: fileSystem)
    } catch {
      Issue.record("\(what): \(error)")
      return
    }
    let faults = try script.faults(in: fileSystem.files) + fileSystem.violations
    #expect(faults == [], "\(what)")
  }
}
