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
