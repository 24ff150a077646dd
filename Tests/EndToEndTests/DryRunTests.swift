import Testing

@Suite(.serialized) struct DryRunTests {
  @Test(
    "A dry run shows the lines that a run writes, is delivered no more than that, and changes nothing",
    .enabled(if: ProofScript.programs != nil))
  func dryRun() throws { try ProofScript("dry_run_proof.py").run() }
}
