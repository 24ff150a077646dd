import Testing

/// The real exporter against a service that shares nothing with the simulator.
@Suite(.serialized) struct OtherServiceTests {
  private let script = ProofScript("other_service_proof.py")

  @Test(
    "Every event once, to files and tables, from a service on grpcio and fastavro",
    .enabled(if: ProofScript.programs != nil))
  func exportsAll() throws { try self.script.run("--calm", "--postgres", "--events", "1000") }

  @Test(
    "Without flatten: compounds in one column, put together part by part in current tables",
    .enabled(if: ProofScript.programs != nil))
  func exportsNested() throws {
    try self.script.run("--calm", "--nested", "--postgres", "--events", "600", "--seed", "3")
  }

  @Test(
    "Every shape of union, with and without flatten, NaN inside arrays and maps too",
    .enabled(if: ProofScript.programs != nil))
  func exportsShapes() throws { try ProofScript("shapes_proof.py").run("--seed", "5") }

  @Test(
    "By ManagedSubscribe, with streams that end and commits that are refused",
    .enabled(if: ProofScript.programs != nil))
  func exportsManaged() throws {
    try self.script.run("--managed", "--events", "600", "--seed", "7")
  }

  @Test(
    "The same when streams, logins and schemas fail and runs are killed",
    .enabled(if: ProofScript.programs != nil))
  func survivesFailures() throws {
    try self.script.run("--kills", "3", "--postgres", "--events", "1000", "--seed", "6")
  }
}

/// The real exporter when the service fails for a reason that users have to hear of.
@Suite(.serialized) struct ServiceFaultTests {
  @Test(
    "Quotas, refusals, expired positions, poison, signals, time limits: exit code, words, state",
    .enabled(if: ProofScript.programs != nil))
  func tellsAndKeeps() throws { try ProofScript("service_faults_proof.py").run() }
}
