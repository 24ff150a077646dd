import GRPCCore
import HTTPClient
import Logging
import PubSubAPI
import Testing

@testable import PubSubETL

@Suite("Log lines about calls")
struct ServiceLogTests {
  private func logger(_ output: ConsoleOutput, level: Logger.Level) -> Logger {
    Logger(label: "test") { _ in
      ConsoleLogHandler(
        level: level, format: .journald, console: output.console(), secrets: SecretMask(),
        now: { 0 })
    }
  }

  private func traces() throws -> [ServiceTrace] {
    // Keepalive: latest_replay_id 5e00, rpc_id "r-1", pending_num_requested 100.
    let keepalive = try FetchResponseView(parsing: [
      0x12, 2, 0x5e, 0, 0x1a, 3, 0x72, 0x2d, 0x31, 0x20, 0x64,
    ])
    return [
      .subscribed(Subscription(topic: "/event/A__e", position: .after([0x5e, 0]), credit: 25)),
      .requested(topic: "/event/A__e", count: 3),
      .received(topic: "/event/A__e", keepalive),
      .answered(.schema(id: "S1"), rpcID: "r-2", after: .milliseconds(12)),
      .ended(
        .topic("/event/A__e"),
        PubSubError(.service, status: .unavailable, serviceCode: .authError, "no", rpcID: "r-3")),
      .ended(.subscription(topic: "/event/A__e"), nil),
    ]
  }

  @Test("Each request and response is logged at debug with credit, position and RPC ID")
  func debug() throws {
    let output = ConsoleOutput()
    let tell = try #require(ServiceLog.calls(self.logger(output, level: .debug)))
    for trace in try self.traces() { tell(trace) }
    #expect(
      output.text == """
        <7>subscription sent (from=after 5e00, num_requested=25, topic=/event/A__e)
        <7>events requested (num_requested=3, topic=/event/A__e)
        <7>keepalive received (bytes=11, events=0, pending_credit=100, replay_id=5e00, rpc_id=r-1, topic=/event/A__e)
        <7>GetSchema S1 succeeded (milliseconds=12, rpc_id=r-2)
        <7>GetTopic /event/A__e failed (code=service.auth.error, rpc_id=r-3, status=unavailable)
        <7>Subscribe to /event/A__e ended

        """)
  }

  @Test("Above debug, calls are not observed")
  func info() {
    let output = ConsoleOutput()
    #expect(ServiceLog.calls(self.logger(output, level: .info)) == nil)
    #expect(ServiceLog.exchanges(self.logger(output, level: .info)) == nil)
  }
}
