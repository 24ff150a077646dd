import Foundation
import Testing

@Suite struct ExampleTests {
  /// Where scripts/test has built the example packages.
  private static let directory = ProcessInfo.processInfo.environment["PUBSUB_TEST_EXAMPLES"]

  @Test(
    "Each example package does what it says, against a server or an encoder of other make",
    .enabled(if: directory != nil && ProofScript.programs != nil))
  func examples() throws {
    try ProofScript("examples_proof.py").run("--examples", try #require(Self.directory))
  }
}
