import Foundation
import TestSupport
import Testing

/// The real programs against each other; `scripts/test` builds them and names their directory in
/// `PUBSUB_TEST_PROGRAMS`.
@Suite(.serialized) struct ExportTests {
  static let programs = ProcessInfo.processInfo.environment["PUBSUB_TEST_PROGRAMS"]

  private func prove(_ arguments: String...) throws {
    let programs = try #require(Self.programs)
    let directory = try TemporaryDirectory()
    let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Fixtures/end-to-end/export_proof.py").path
    try runProgram(
      ["python3", script, "--programs", programs, "--work", directory.path] + arguments,
      showsErrors: true)
  }

  @Test(
    "Files equal the truth on single topics, mixed and enriched channels",
    .enabled(if: programs != nil))
  func equalsTruth() throws { try self.prove("--events", "20000") }

  @Test(
    "Killed at random moments and run again, the files equal the truth",
    .enabled(if: programs != nil))
  func survivesKills() throws {
    try self.prove("--events", "20000", "--kills", "17", "--seed", "2")
  }
}
