import Bytes
import DurableFiles
import EventLoop
import Glibc
import Pipeline
import TestSupport
import Testing

@testable import FileSink

/// Lines that another thread compresses and writes.
@Suite("Writer thread")
struct WriterThreadTests {
  /// Nearly incompressible, so that a compressor gives out blocks before it is flushed.
  private static func text(_ number: Int, byteCount: Int) -> String {
    var random = SplitMix(seed: UInt64(number))
    return String(
      decoding: (0..<byteCount).map { _ in UInt8(33 + random.next() % 90) }, as: UTF8.self)
  }

  /// Events of several objects and days, in files of a few events.
  private static func script(seed: Int) -> ScriptedRun {
    var random = SplitMix(seed: UInt64(seed))
    let events = (0..<24).map { number in
      var event = TestEvent(number: number)
      event.text = Self.text(number, byteCount: Int(random.next() % 60_000))
      if random.next() % 3 == 0 {
        event.entity = "Account"
        event.rowCount = 2
      }
      if random.next() % 9 == 0 { (event.isUndecodable, event.rowCount) = (true, 1) }
      if random.next() % 4 == 0 { event.commitTimestamp = 1_771_372_800_000 }
      return event
    }
    var script = ScriptedRun(events: events)
    script.eventsPerCommit = 1 + Int(random.next() % 8)
    script.rotation = .init(
      maxByteCount: random.next() % 2 == 0 ? 100_000 : 1 << 20,
      maxEventCount: 3 + Int(random.next() % 20), maxOpenFileCount: 1 + Int(random.next() % 4))
    script.writesAside = true
    return script
  }

  @Test("Files are the same, byte by byte, as those of one thread", arguments: 0..<4)
  func sameFiles(seed: Int) throws {
    var script = Self.script(seed: seed)
    script.rotation.maxByteCount = 1 << 20
    let (aside, alone) = (ModelFileSystem(), ModelFileSystem())
    try script.run(on: SerializedFileSystem(aside))
    script.writesAside = false
    try script.run(on: alone)
    #expect(aside.files.mapValues(\.count) == alone.files.mapValues(\.count))
    #expect(aside.files == alone.files)
    #expect(try script.faults(in: aside.files) == [])
  }

  @Test(
    "A kill or power cut at any call loses and repeats nothing",
    arguments: 0..<(ExplorationSize.isFull ? 100 : 4))
  func crashes(seed: Int) throws {
    let script = Self.script(seed: seed)
    let undisturbed = ModelFileSystem()
    try script.run(on: SerializedFileSystem(undisturbed))
    var random = SplitMix(seed: UInt64(seed))
    for round in 0..<5 {
      let fileSystem = ModelFileSystem()
      for _ in 0..<3 {
        fileSystem.diesAtCall = 1 + Int.random(in: 0..<undisturbed.callCount, using: &random)
        fileSystem.tearsLastWrite = random.next() % 2 == 0
        // The order of calls is another each time, so a run may end before that call.
        try? script.run(on: SerializedFileSystem(fileSystem))
        if random.next() % 2 == 0 {
          fileSystem.kill()
        } else {
          fileSystem.powerCut(.random(random))
        }
      }
      try script.run(on: SerializedFileSystem(fileSystem))
      let faults = try script.faults(in: fileSystem.files) + fileSystem.violations
      #expect(faults == [], "seed \(seed), round \(round)")
    }
  }

  @Test("An error of the other thread ends the run before anything is committed")
  func failure() throws {
    var script = Self.script(seed: 1)
    script.rotation = .init()
    script.eventsPerCommit = 24
    let model = ModelFileSystem()
    let faulty = FaultyFileSystem(model)
    // Each write of lines fails, the first one before the commit.
    faulty.fault = { _, call in
      call.name == "write" && call.path.hasSuffix(".part") ? ENOSPC : nil
    }
    let error = #expect(throws: FileSinkError.self) {
      try script.run(on: SerializedFileSystem(faulty))
    }
    #expect(error?.message.contains("No space left on device") == true)
    #expect(!faulty.calls.contains { $0.name == "fdatasync" && $0.path.hasSuffix(".part") })
    model.kill()
    try script.run(on: SerializedFileSystem(model))
    #expect(try script.faults(in: model.files) == [])
  }

  @Test("After an error, every call throws it, and nothing more is written")
  func failed() throws {
    let faulty = FaultyFileSystem(ModelFileSystem())
    faulty.fault = { _, call in
      call.name == "write" && call.path.hasSuffix(".part") ? EIO : nil
    }
    var configuration = FileSinkConfiguration(
      directory: "/out", pipeline: "opps", org: "00D000000000001")
    configuration.writesAside = true
    let sink = FileSink(
      configuration, fileSystem: SerializedFileSystem(faulty), clock: TestClock().sinkClock)
    try sink.recover(from: nil)
    var event = TestEvent(number: 0)
    event.text = Self.text(0, byteCount: 300_000)
    let batches = TestBatches()
    var errors = 0
    for number in 0..<20 {
      event.number = number
      for batch in batches.batches([event]) {
        do { try sink.write(batch) } catch { errors += 1 }
      }
    }
    #expect(throws: FileSinkError.self) { try sink.flush(finish: true) }
    #expect(throws: FileSinkError.self) { try sink.flush(finish: true) }
    #expect(throws: FileSinkError.self) { try sink.committed() }
    let writes = faulty.calls.count { $0.name == "write" && $0.path.hasSuffix(".part") }
    #expect(writes == 1)
    #expect(errors > 0)
  }

  @Test("A sink that is dropped has its lock as long as it writes, and leaves no file in use")
  func dropped() throws {
    let model = ModelFileSystem()
    let watched = FaultyFileSystem(model)
    var isUnlocked = false
    watched.fault = { _, call in
      if call.path.hasSuffix(".part"), !model.hasLock { isUnlocked = true }
      return nil
    }
    let script = Self.script(seed: 3)
    for _ in 0..<50 {
      var configuration = FileSinkConfiguration(
        directory: "/out", pipeline: "opps", org: "00D000000000001")
      configuration.writesAside = true
      let sink = FileSink(
        configuration, fileSystem: SerializedFileSystem(watched), clock: TestClock().sinkClock,
        pieceByteCount: 1)
      try sink.recover(from: nil)
      for batch in TestBatches().batches(script.events[0..<10]) { try sink.write(batch) }
    }
    // Each of them found, and removed, what the one before had left.
    #expect(model.files.keys.count { $0.hasSuffix(".part") } <= 10)
    #expect(!isUnlocked)
  }
}
