import Testing

@Suite(.serialized) struct CronTests {
  /// A part of what `cron_proof.py` does by default, which takes a quarter of an hour.
  @Test(
    "Run after run, with overlaps, kills, clock steps, silent days and lost state: files equal the truth",
    .enabled(if: ProofScript.programs != nil))
  func runAfterRun() throws {
    try ProofScript("cron_proof.py").run(
      "--runs", "14", "--silent-steps", "2", "--silent-step-hours", "40")
  }
}

@Suite(.serialized) struct OrgTests {
  @Test(
    "Another org or another stream stops a run; accept-org, killed at every call, lets it go on",
    .enabled(if: ProofScript.programs != nil))
  func acceptsOrg() throws { try ProofScript("org_proof.py").run() }

  @Test(
    "No run or command asks for a schema that an earlier run has fetched",
    .enabled(if: ProofScript.programs != nil))
  func cachesSchemas() throws { try ProofScript("schema_cache_proof.py").run() }
}
