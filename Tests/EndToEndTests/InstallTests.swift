import Foundation
import Testing

@Suite("Installation", .serialized) struct InstallTests {
  /// Where scripts/test has built the programs by scripts/install; a build of its own takes minutes.
  private static let scratch = ProcessInfo.processInfo.environment["PUBSUB_TEST_INSTALL_SCRATCH"]

  @Test(
    "Installation is complete and atomic, even over running programs, and the page names its needs",
    .enabled(if: scratch != nil && ProofScript.programs != nil))
  func installs() throws {
    try ProofScript("install_proof.py", in: "install")
      .run("--scratch-path", try #require(Self.scratch))
  }

  @Test(
    "Packages have the same bytes each time, and installing, upgrading and removing them keeps state",
    .enabled(if: scratch != nil && ProofScript.programs != nil))
  func packages() throws { try ProofScript("package_proof.py", in: "install").run() }

  @Test(
    "The manifests for Kubernetes fit its schemas, and their commands and probes work",
    .enabled(if: ProofScript.programs != nil))
  func kubernetes() throws { try ProofScript("kubernetes_proof.py").run() }

  @Test(
    "The demo for Compose fits its specification, copies every event, and fills the dashboard",
    .enabled(if: ProofScript.programs != nil))
  func compose() throws { try ProofScript("compose_proof.py").run() }

  @Test(
    "scripts/first-org passes at a terminal, and its transcript shows nothing private",
    .enabled(if: ProofScript.programs != nil))
  func acceptsAnOrg() throws { try ProofScript("first_org_proof.py").run() }
}
