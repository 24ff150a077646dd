import Testing

@Suite("Runs under cron", .serialized) struct CronTests {
  /// A part of what `cron_proof.py` does by default, which takes a quarter of an hour.
  @Test(
    "Files equal the truth after overlaps, kills, clock steps, silent days and lost state",
    .enabled(if: ProofScript.programs != nil), arguments: [false, true])
  func runAfterRun(keepsFiles: Bool) throws {
    let script = ProofScript("cron_proof.py")
    if keepsFiles {
      try script.run("--keep", "--runs", "14", "--silent-steps", "2", "--silent-step-hours", "40")
    } else {
      try script.run("--runs", "14", "--silent-steps", "2", "--silent-step-hours", "40")
    }
  }
}

@Suite("Another org", .serialized) struct OrgTests {
  @Test(
    "Another org or stream stops a run, and accept-org, killed at every call, lets it continue",
    .enabled(if: ProofScript.programs != nil))
  func acceptsOrg() throws { try ProofScript("org_proof.py").run() }

  @Test(
    "No run or command requests a schema that an earlier run has fetched",
    .enabled(if: ProofScript.programs != nil))
  func cachesSchemas() throws { try ProofScript("schema_cache_proof.py").run() }
}
