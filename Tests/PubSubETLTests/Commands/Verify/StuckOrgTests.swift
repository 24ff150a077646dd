import Clocks
import EventLoop
import HTTPClient
import Pipeline
import RESTSource
import SalesforceREST
import TestSupport
import Testing

@testable import PubSubETL

/// Orgs that answer and get nowhere (`rest_peer.py`).
@Suite("Verification against an org that makes no progress") struct StuckOrgTests {
  private struct Sessions: RESTSessionSource {
    var url: String

    func session() -> RESTSession { RESTSession(accessToken: "token", instanceURL: self.url) }
    func worked(_ session: RESTSession) {}
    func refused(_ session: RESTSession) -> Bool { false }
  }

  /// Takes everything, and finds nothing.
  private final class NoVerification: CopyVerification {
    func take(_ batch: RecordBatch, omitted: [OmittedRecord], of reading: CopyReading) {}
    func startOver() {}
    func finishPass() {}
    func sample(_ count: Int) -> [String] { [] }
    func candidates(inRound round: Int, after id: String, limit: Int) -> [String] { [] }
    func findings(idLimit: Int) -> CopyFindings { CopyFindings() }
  }

  private static let layout = RecordLayout(
    topic: "/data/AccountChangeEvent", schemaID: "s", entity: "Account", family: .changeEvent,
    slotCount: MetadataSlot.count + 2, fieldOrder: [MetadataSlot.count, MetadataSlot.count + 1],
    columns: [
      Column(name: "Name", path: ["Name"], content: .slot(MetadataSlot.count, .string)),
      Column(
        name: "NumberOfEmployees", path: ["NumberOfEmployees"],
        content: .slot(MetadataSlot.count + 1, .string)),
    ])

  @Test(
    "A job that stays in progress and a response that trickles end the wait",
    arguments: ["stuck_job", "slow_rows"])
  func ends(name: String) async throws {
    let peer = try PythonServer("rest_peer.py")
    let client = RESTClient(
      http: HTTPClient(HTTPClient.Configuration()),
      sessions: Sessions(url: "http://127.0.0.1:\(peer.port)/\(name)"))
    let object = ReadObject(
      entity: "Account", topic: "/data/AccountChangeEvent", layout: Self.layout)
    let verification = ObjectVerification(
      object, .full, listed: { _ in true }, stages: StageChain([]), StageChain([]),
      NoVerification(),
      client: client, reserve: 0, retry: RetrySchedule(),
      patience: OrgPatience(limit: .seconds(1)) { .now }, progress: .saying { _ in })
    await #expect {
      try await verification.readFirst()
    } throws: {
      ($0 as? RunFailure)?.reason == .noProgress
    }
  }
}
