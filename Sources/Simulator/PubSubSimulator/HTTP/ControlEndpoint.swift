internal import Foundation
internal import SimulatedOrg

/// The switches of the simulator, over HTTP on loopback, for those who know its secret (`ControlAccess`):
///
///     POST /control/clock?advance=72h            ms, s, m, h, d
///     POST /control/publish?count=100&topic=…    topic is optional
///     POST /control/schemas                      new events use the newest schema versions
///     POST /control/classify?field=Contact.Email&compliance=PII;GDPR&sensitivity=Confidential
///                                                replaces what was said of the field
///     POST /control/fields?change=add&field=Account.Score__c&type=number
///                                                what an admin does to a field, see FieldChange
///     POST /control/fields?change=add_value&field=Account.SLA__c&value=Gold
///                                                and to the values of a picklist
///     POST /control/tokens/revoke                all access tokens stop working
///     POST /control/faults                       body: a fault or an array of them, see ScriptedFault
///     DELETE /control/faults                     forgets those that wait
///     POST /control/state                        body: the name of a state file to be written
///     POST /control/managed?name=…&topic=…       a managed subscription, see SimulatorServer.setManaged
///     GET  /control/managed
///     GET  /control/stats
///     GET  /control/delivered
struct ControlEndpoint: Sendable {
  let server: SimulatorServer
  let access: ControlAccess

  func respond(to request: HTTPRequest) async -> HTTPResponse {
    if let refusal = self.access.refusal(of: request) {
      return .json("{\"error\":\(JSONText.string(refusal))}\n", status: 403)
    }
    do {
      return try await self.answer(request)
    } catch {
      return .json("{\"error\":\(JSONText.string("\(error)"))}\n", status: 400)
    }
  }

  private func answer(_ request: HTTPRequest) async throws -> HTTPResponse {
    switch (request.method, request.path) {
    case ("POST", "/control/clock"):
      guard let text = request.query["advance"], let amount = Self.milliseconds(text) else {
        throw SimulatorError(.configuration, "advance=<number><ms|s|m|h|d> is needed")
      }
      try await self.server.advanceClock(byMilliseconds: amount)
      return .json("{\"now\":\(self.server.clock.now)}\n")
    case ("POST", "/control/publish"):
      guard let count = Int(request.query["count"] ?? "1"), count >= 0 else {
        throw SimulatorError(.configuration, "count must be a number")
      }
      try await self.server.publish(count, topic: request.query["topic"])
      return .json("{\"published\":\(count)}\n")
    case ("POST", "/control/schemas"):
      try await self.server.changeSchemas()
      return .json("{}\n")
    case ("POST", "/control/classify"):
      let entry = try DataClassification.Entry(
        field: request.query["field"] ?? "",
        groups: DataClassification.Entry.groups(request.query["compliance"] ?? ""),
        level: request.query["sensitivity"])
      try await self.server.classify(entry)
      return .json("{}\n")
    case ("POST", "/control/fields"):
      let names = ["change", "field"].compactMap { request.query[$0] }
      let rest = ["type", "value", "to"].compactMap { request.query[$0] }.joined(separator: "|")
      let words = rest.isEmpty ? names : names + [rest]
      try await self.server.change(FieldChange(parsing: words.joined(separator: " ")))
      return .json("{}\n")
    case ("POST", "/control/tokens/revoke"):
      self.server.revokeTokens()
      return .json("{}\n")
    case ("POST", "/control/faults"):
      let count = try await self.server.addFaults(
        json: String(decoding: request.body, as: UTF8.self))
      return .json("{\"added\":\(count)}\n")
    case ("DELETE", "/control/faults"):
      try await self.server.removeFaults()
      return .json("{}\n")
    case ("POST", "/control/state"):
      let path = try await self.server.writeState(
        named: String(decoding: request.body, as: UTF8.self))
      return .json("{\"path\":\(JSONText.string(path))}\n")
    case ("POST", "/control/managed"):
      try await self.server.setManaged(request.query)
      return .json(try await self.server.managedJSON() + "\n")
    case ("GET", "/control/managed"): return .json(try await self.server.managedJSON() + "\n")
    case ("GET", "/control/stats"): return .json(try await self.server.statsJSON() + "\n")
    case ("GET", "/control/delivered"): return .json(try await self.server.deliveredJSON() + "\n")
    default:
      return .json("{\"error\":\"unknown control; see pubsub-simulator --help\"}\n", status: 404)
    }
  }

  /// `72h` → milliseconds.
  static func milliseconds(_ text: String) -> Int64? {
    let digits = text.prefix { $0.isNumber }
    guard let number = Int64(digits), number >= 0 else { return nil }
    let units: [Substring: Int64] = [
      "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000,
    ]
    return units[text.dropFirst(digits.count)].flatMap {
      let (product, overflow) = number.multipliedReportingOverflow(by: $0)
      return overflow ? nil : product
    }
  }
}
