import Foundation
import Testing

@Suite("Example packages") struct ExampleTests {
  /// Where scripts/test has built the example packages.
  private static let directory = ProcessInfo.processInfo.environment["PUBSUB_TEST_EXAMPLES"]

  @Test(
    "Each example package works with an independent server or encoder",
    .enabled(if: directory != nil && ProofScript.programs != nil))
  func examples() throws {
    try ProofScript("examples_proof.py").run("--examples", try #require(Self.directory))
  }
}
