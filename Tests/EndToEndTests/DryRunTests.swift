import Testing

@Suite("Dry runs", .serialized) struct DryRunTests {
  @Test(
    "A dry run shows the lines that a run writes, fetches no more, and changes nothing",
    .enabled(if: ProofScript.programs != nil))
  func dryRun() throws { try ProofScript("dry_run_proof.py").run() }
}
