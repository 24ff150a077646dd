import Testing

/// The real exporter against a service that shares nothing with the simulator.
@Suite("An independent service", .serialized) struct OtherServiceTests {
  private let script = ProofScript("other_service_proof.py")

  @Test(
    "Files and tables have every event once from a service on grpcio and fastavro",
    .enabled(if: ProofScript.programs != nil))
  func exportsAll() throws { try self.script.run("--calm", "--postgres", "--events", "1000") }

  @Test(
    "Without flatten, a compound is one column, which current tables update part by part",
    .enabled(if: ProofScript.programs != nil))
  func exportsNested() throws {
    try self.script.run("--calm", "--nested", "--postgres", "--events", "600", "--seed", "3")
  }

  @Test(
    "Every shape of union is exported with and without flatten, and NaN inside lists and maps",
    .enabled(if: ProofScript.programs != nil))
  func exportsShapes() throws { try ProofScript("shapes_proof.py").run("--seed", "5") }

  @Test(
    "Files equal the truth with ManagedSubscribe, ended streams and refused commits",
    .enabled(if: ProofScript.programs != nil))
  func exportsManaged() throws {
    try self.script.run(
      "--managed", "--events", "600", "--seed", "7", sample: ["--events", "300"])
  }

  @Test(
    "Files and tables have every event once when calls fail and runs are killed",
    .enabled(if: ProofScript.programs != nil))
  func survivesFailures() throws {
    try self.script.run("--kills", "3", "--postgres", "--events", "1000", "--seed", "6")
  }
}

/// The real exporter when the service fails for a reason that users have to hear of.
@Suite("Faults of an independent service", .serialized) struct ServiceFaultTests {
  @Test(
    "Quotas, refusals, expired positions and signals give exit code, message and kept state",
    .enabled(if: ProofScript.programs != nil))
  func tellsAndKeeps() throws { try ProofScript("service_faults_proof.py").run() }
}
