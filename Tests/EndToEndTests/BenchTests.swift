import Foundation
import TestSupport
import Testing

@Suite("Benchmarks") struct BenchTests {
  private static let script =
    URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "scripts/bench").path

  /// Set where scripts/test has made a release build, for which the limits are.
  private static let hasRelease =
    ProcessInfo.processInfo.environment["PUBSUB_TEST_INSTALL_SCRATCH"] != nil

  /// Whether Debian's gRPC for C++ is installed, which the service and the bound are made of.
  private static let hasGRPC: Bool = {
    do {
      try runProgram("pkg-config", "--exists", "grpc++", "protobuf")
      return true
    } catch { return false }
  }()

  @Test(
    "scripts/bench compares every line with the truth, and no count is above its limit",
    .enabled(if: ProofScript.programs != nil && hasRelease && hasGRPC))
  func measures() throws {
    let directory = try TemporaryDirectory()
    let figures = directory.path + "/figures.json"
    try self.bench(
      "--quick", "--rounds", "1", "--events", "20000", "--section", "files", "--section", "counts",
      "--section", "instructions", "--json", figures)
    let text = try String(contentsOf: URL(filePath: figures), encoding: .utf8)
    for name in ["C++, content", "C++, promise", "Python", "zstd -1", "same promise"] {
      #expect(text.contains("\"\(name)\""))
    }
  }

  /// Up to ten million events, or a tenth of that.
  @Test(
    "Memory stays below its limit, however many events a run has",
    .enabled(if: ProofScript.programs != nil && hasRelease && hasGRPC))
  func keepsMemory() throws {
    let events = ExplorationSize.isFull ? "500000" : "50000"
    try self.bench("--section", "memory", "--events", events)
  }

  private func bench(_ options: String...) throws {
    try runProgram(
      [Self.script, "--limits", "--programs", try #require(ProofScript.programs)] + options)
  }
}
