import Foundation
import Testing

@Suite(.serialized) struct InstallTests {
  /// Where scripts/test has built the programs by scripts/install; a build of its own takes minutes.
  private static let scratch = ProcessInfo.processInfo.environment["PUBSUB_TEST_INSTALL_SCRATCH"]

  @Test(
    "Installed, and again over running programs: whole, atomic, and needing what README names",
    .enabled(if: scratch != nil && ProofScript.programs != nil))
  func installs() throws {
    try ProofScript("install_proof.py", in: "install")
      .run("--scratch-path", try #require(Self.scratch))
  }

  @Test(
    "The acceptance in an org passes at a terminal, and its transcript tells nothing private",
    .enabled(if: ProofScript.programs != nil))
  func acceptsAnOrg() throws { try ProofScript("first_org_proof.py").run() }
}
