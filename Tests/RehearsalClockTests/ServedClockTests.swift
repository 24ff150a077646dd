import CSystem
import Clocks
import Foundation
import Testing

@testable import EventLoop
@testable import RehearsalClock

@Suite("A clock served by a simulator")
struct ServedClockTests {
  @Test("Only an address on this machine is valid")
  func addresses() {
    #expect(ServedClock.port(of: "127.0.0.1:8080") == 8080)
    for address in [
      "", "8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:70000", "10.0.0.1:8080",
      "localhost.example.com:8080", "127.0.0.1:80:80", "127.0.0.1.example.com:80",
    ] {
      #expect(ServedClock.port(of: address) == nil, "\(address)")
    }
  }

  @Test("Only a sleeping thread has context-switch counts, which change when it runs")
  func readsStatus() throws {
    func mark(_ state: String, _ switches: Int) throws -> [UInt64]? {
      let path = "/tmp/served-clock-\(UInt64.random(in: 0 ... .max))"
      let text = """
        Name:\tclock
        State:\t\(state)
        Threads:\t3
        voluntary_ctxt_switches:\t\(switches)
        nonvoluntary_ctxt_switches:\t4

        """
      try text.write(toFile: path, atomically: false, encoding: .utf8)
      defer { unlink(path) }
      var (voluntary, involuntary) = (UInt64(0), UInt64(0))
      guard c_sleeping_thread(path, &voluntary, &involuntary) == 1 else { return nil }
      return [voluntary, involuntary]
    }
    #expect(try mark("S (sleeping)", 27) == [27, 4])
    for state in ["R (running)", "D (disk sleep)", "T (stopped)"] {
      #expect(try mark(state, 27) == nil)
    }
    var counts = (UInt64(0), UInt64(0))
    #expect(c_sleeping_thread("/nowhere", &counts.0, &counts.1) == 0)
  }

  @Test("A process that waits for another one does not count as quiet")
  func waitsForOthers() {
    let served = ServedClock(wallShift: 0)
    ProcessClock(served).waitingForOthers {
      #expect(served.quietMark() == nil)
    }
  }

  @Test("A sleep ends by its time or by cancellation", arguments: [true, false])
  func sleeps(isServed: Bool) async throws {
    let clock = isServed ? ProcessClock(ServedClock(wallShift: 0)) : ProcessClock()
    #expect(clock.skipped == .zero)
    try await clock.sleep(for: .milliseconds(1))
    let sleeper = Task { try await clock.sleep(for: .seconds(3600)) }
    sleeper.cancel()
    await #expect(throws: CancellationError.self) { try await sleeper.value }
  }

  @Test("Skipped time passes for the wall clock, for timers and for sleeps")
  func skips() async throws {
    let served = ServedClock(wallShift: 86_400_000)
    let clock = ProcessClock(served)
    let (before, wallBefore) = (clock.now, clock.wallTime)
    #expect(wallBefore - ProcessClock().wallTime >= 86_390_000)
    let loop = try EventLoop(name: "timers", clock: clock)
    await withCheckedContinuation { continuation in
      loop.execute {
        loop.schedule(at: before + .seconds(3600)) { continuation.resume() }
        served.skip(milliseconds: 3_600_000)
      }
    }
    let sleeper = Task { try await clock.sleep(until: before + .seconds(7200)) }
    // The loop of the sleeper announces its deadline; without one, nothing would be left to skip.
    while served.millisecondsToDeadline == nil { await Task.yield() }
    served.skip(milliseconds: 3_600_000)
    try await sleeper.value
    #expect(clock.now - before >= .seconds(7200))
    #expect(clock.wallTime - wallBefore >= 7_200_000)
    #expect(clock.skipped == .seconds(7200))
  }

  @Test("Nothing outside the simulator knows the served clock, or reads the state of threads")
  func productIsFree() throws {
    let sources = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Sources").standardizedFileURL
    let files = FileManager.default.enumerator(atPath: sources.path)?.compactMap { $0 as? String }
    let checked = (files ?? []).filter { $0.hasSuffix(".swift") && !$0.hasPrefix("Simulator/") }
    #expect(checked.count > 100)
    for file in checked {
      let text = try String(contentsOf: sources.appending(path: file), encoding: .utf8)
      for word in [ServedClock.variable, "/proc/self/task", "ServedClock", "RehearsalClock"] {
        #expect(!text.contains(word), "\(file) names \(word)")
      }
    }
  }

  /// Whatever makes a clock of its own would not be part of a rehearsal.
  @Test("A run goes by the clock that it is handed: its parts in the program make none")
  func runIsHandedItsClock() throws {
    let program = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Sources/Program/PubSubETL").standardizedFileURL
    for folder in ["Session", "Sinks", "Commands/Run", "Commands/DryRun"] {
      let files =
        FileManager.default.enumerator(
          atPath: program.appending(path: folder).path)?.compactMap { $0 as? String } ?? []
      #expect(files.count > 5)
      for file in files where file.hasSuffix(".swift") {
        let text = try String(
          contentsOf: program.appending(path: "\(folder)/\(file)"), encoding: .utf8)
        #expect(!text.contains("ProcessClock()"), "\(folder)/\(file)")
      }
    }
  }

  /// A place that asks the machine would not see what was skipped: it would wait, or spin, in real time.
  @Test("No source file of the programs reads the machine's clock or sleeps")
  func asksProcessClock() throws {
    // libcurl measures stalls in real time, during which nothing is skipped; the runtime's timers
    // are set up by a real one; a rehearsal notices in real time that the program is stuck,
    // and shows how much of it is left.
    let exempt = [
      "ProcessClock.swift", "ServedClock.swift", "CurlTransfer.swift",
      "RuntimeDescriptors.swift", "ExporterRun.swift", "RehearsalDisplay.swift",
    ]
    let sources = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Sources").standardizedFileURL
    let pattern = try Regex(
      #"(ContinuousClock|SuspendingClock|Instant)\.now\b|Task\.sleep|ContinuousClock\(\)"#)
    let files = FileManager.default.enumerator(atPath: sources.path)?.compactMap { $0 as? String }
    let checked = (files ?? []).filter { file in
      file.hasSuffix(".swift") && !exempt.contains { file.hasSuffix("/" + $0) }
    }
    #expect(checked.count > 100)
    for file in checked {
      let text = try String(contentsOf: sources.appending(path: file), encoding: .utf8)
      for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false)
        .enumerated()
      where !line.drop(while: \.isWhitespace).hasPrefix("//") {
        #expect(line.firstMatch(of: pattern) == nil, "\(file):\(number + 1): \(line)")
      }
    }
  }
}
