import Testing

/// `topics`, `fields`, `init` and `run --topic` as a new user calls them.
@Suite("First steps", .serialized) struct FirstStepsTests {
  @Test(
    "From a login to exported rows: topics, fields, init, check, the crontab line, and no file at all",
    .enabled(if: ProofScript.programs != nil))
  func firstSteps() throws { try ProofScript("first_steps_proof.py").run() }
}
