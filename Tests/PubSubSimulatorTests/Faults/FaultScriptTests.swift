import Foundation
import SimulatedOrg
import Testing

@testable import PubSubSimulator

@Suite("Fault files")
struct FaultScriptTests {
  private func script(_ faults: String, _ more: String = "") throws -> FaultScript {
    try FaultScript(json: "{\"version\":1,\(more)\"faults\":[\(faults)]}", name: "faults.json")
  }

  /// What is said about a file.
  private func mistakes(_ json: String) -> String {
    do {
      _ = try FaultScript(json: json, name: "faults.json")
      return ""
    } catch {
      return "\(error)"
    }
  }

  @Test("Every form of 'at' is read")
  func moments() throws {
    let script = try self.script(
      """
      {"at":{"event":120},"what":"drop"},
      {"at":{"call":3},"what":"reset","http2_code":8,"method":"GetSchema"},
      {"at":{"probability":0.25},"what":"stall","times":5},
      {"at":{"time_of_day":"23:00-01:30"},"what":"html","method":"Query"},
      {"what":"goaway"}
      """, "\"seed\":2,")
    #expect(
      script.faults == [
        .service(Fault(.drop, moment: .event(120))),
        .service(Fault(.reset(8), method: "GetSchema", moment: .call(3))),
        .service(Fault(.stall, times: 5, moment: .probability(0.25, seed: 2002))),
        .rest(
          RESTFault(
            .html(503), call: .query, times: .max, moment: .timeOfDay(from: 1380, to: 90))),
        .service(Fault(.goAway)),
      ])
  }

  @Test("Every error code of the service has its status", arguments: ServiceErrorCode.all)
  func codes(_ code: ServiceErrorCode) throws {
    let script = try self.script("{\"what\":\"\(code.code)\"}")
    #expect(
      script.faults == [
        .service(Fault(.status(code.status.rawValue, code: code.code, message: code.message)))
      ])
  }

  @Test("Quotas and hidden fields set up the org")
  func quotas() throws {
    let script = try self.script(
      "",
      """
      "quotas":{"deliveries_per_day":10,"streams":2,"logins_per_hour":3,"api_calls_per_day":4},
      "hidden_fields":["Opportunity.NextStep"],
      """)
    var configuration = SimulatorConfiguration()
    script.set(&configuration)
    #expect(configuration.org.deliveryLimit == 10)
    #expect(configuration.org.streamLimit == 2)
    #expect(configuration.org.loginLimit == 3)
    #expect(configuration.org.callLimit == 4)
    #expect(configuration.org.hiddenFields == ["Opportunity.NextStep"])
  }

  @Test("All mistakes are reported, with line, path and choices")
  func reportsMistakes() {
    let text = self.mistakes(
      """
      {"version": 1, "fault": [], "faults": [
        {"what": "service.unavailabel"},
        {"what": "reset", "at": {"event": 1, "call": 2}},
        {"at": {"time_of_day": "25:00-26:00"}},
        {"method": "Subscribed", "status": 3},
        {"what": "stall", "status": 3},
        {"what": "drip", "method": "Query", "at": {"event": 4}},
        {"what": "drop", "topic": "/data/Nothing"},
        {"what": "stall", "method": "Login"}
      ], "quotas": {"streams": -1}, "hidden_fields": ["Name"]}
      """)
    for expected in [
      "faults.json:1: /fault: unknown key; did you mean 'faults'?; known: version, seed, faults",
      "faults.json:2: /faults/0/what: unknown fault 'service.unavailabel'; did you mean "
        + "'service.unavailable'?; known: status, reset",
      "/faults/1/at: expected one of event, call, probability, time_of_day",
      "/faults/2/at/time_of_day: expected a part of the day in UTC",
      "/faults/3/method: unknown method 'Subscribed'; did you mean 'Subscribe'?; known: Subscribe",
      "/faults/4/status: has no meaning for stall",
      "/faults/5/at: events are delivered by Subscribe; method is Query",
      "/faults/6/topic: unknown topic '/data/Nothing'; known: ",
      "/faults/7/what: unknown fault 'stall'; known: status",
      "/quotas/streams: expected an integer from 0 to",
      "/hidden_fields/0: expected Object.Field",
    ] {
      #expect(text.contains(expected), "\(expected)\nis not in\n\(text)")
    }
    #expect(!text.contains("/faults/3/status"))
  }

  @Test("The version is required")
  func requiresVersion() {
    #expect(self.mistakes("{}").contains("/version: is required"))
    #expect(self.mistakes("{\"version\": 2}").contains("/version: expected an integer"))
    #expect(self.mistakes("[").hasPrefix("faults.json: line 1"))
  }

  @Test("The example of the documentation is valid")
  func documentedExample() throws {
    let page = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../../Sources/Simulator/PubSubSimulator/PubSubSimulator.docc")
      .appending(path: "PubSubSimulator.md")
    let text = try String(contentsOf: page, encoding: .utf8)
    let start = try #require(text.range(of: "```json\n"))
    let end = try #require(text.range(of: "```\n", range: start.upperBound..<text.endIndex))
    let script = try FaultScript(
      json: String(text[start.upperBound..<end.lowerBound]), name: "example")
    #expect(script.faults.count >= 5)
    #expect(script.streams != nil)
  }

  @Test("A damaged event keeps its IDs but loses its payload")
  func damagesPayload() {
    // ConsumerEvent.event: id "ab", schema_id "c", payload of three bytes.
    let event: [UInt8] = [10, 12, 10, 2, 97, 98, 18, 1, 99, 26, 3, 1, 2, 3]
    #expect(
      FetchResponseBuilder.damaging(event) == [
        10, 12, 10, 2, 97, 98, 18, 1, 99, 26, 3, 255, 255, 255,
      ])
  }
}
