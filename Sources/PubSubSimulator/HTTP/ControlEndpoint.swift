internal import Foundation
internal import SimulatedOrg

/// The switches of the simulator, over HTTP on loopback:
///
///     POST /control/clock?advance=72h            ms, s, m, h, d
///     POST /control/publish?count=100&topic=…    topic is optional
///     POST /control/schemas                      new events use the newest schema versions
///     POST /control/tokens/revoke                all access tokens stop working
///     POST /control/faults                       body: FaultDescription or an array of them
///     DELETE /control/faults                     forgets those that wait
///     POST /control/state                        body: where to write the state file
///     GET  /control/stats
///     GET  /control/delivered
struct ControlEndpoint: Sendable {
  let server: SimulatorServer

  /// One fault as JSON: `{"action":"status","status":14,"error_code":"service.unavailable",
  /// "message":"…","method":"Subscribe","topic":"/data/…","after_events":10,"times":1}`.
  ///
  /// `action`: `status` (default), `reset` (with `http2_code`), `goaway`, `drop`, `no_trailers`, `stall`,
  /// `truncate`. `method` also `Login`, where `status` is an HTTP status. All keys but `action` are optional.
  struct FaultDescription: Decodable {
    var action: String?
    var status: Int?
    var errorCode: String?
    var message: String?
    var http2Code: UInt32?
    var method: String?
    var topic: String?
    var afterEvents: Int?
    var times: Int?

    enum CodingKeys: String, CodingKey {
      case action, status, message, method, topic, times
      case errorCode = "error_code"
      case http2Code = "http2_code"
      case afterEvents = "after_events"
    }

    /// Whether it is for the REST API.
    var call: RESTFault.Call? { self.method.flatMap(RESTFault.Call.init) }

    /// `action`: `status` (default; `status` is that of HTTP, `error_code` that of the body), `html`, `cut`,
    /// `drop`, `drip`, `row_count`; for `BulkCreate` also `job_failed`, `job_aborted`, `job_stuck`,
    /// `job_vanished` (after `after_events` pages).
    func restFault(_ call: RESTFault.Call) throws -> RESTFault {
      let action: RESTFault.Action =
        switch self.action ?? "status" {
        case "status":
          .status(
            self.status ?? 500, code: self.errorCode ?? "UNKNOWN_EXCEPTION",
            message: self.message ?? "An unexpected error occurred.")
        case "html": .html(self.status ?? 503)
        case "cut": .cut
        case "drop": .drop
        case "drip": .drip
        case "row_count": .rowCount
        case "job_failed": .job(.failed(message: self.message))
        case "job_aborted": .job(.aborted)
        case "job_stuck": .job(.stuck)
        case "job_vanished": .job(.vanished(afterPages: self.afterEvents ?? 0))
        case let other: throw SimulatorError(.configuration, "unknown action '\(other)'")
        }
      return RESTFault(action, call: call, times: self.times ?? 1)
    }

    func fault() throws -> Fault {
      let action: Fault.Action =
        switch self.action ?? "status" {
        case "status":
          .status(
            self.status ?? 14, code: self.errorCode,
            message: self.message ?? "The service is unavailable. Try again later.")
        case "reset": .reset(self.http2Code ?? 2)
        case "goaway": .goAway
        case "drop": .drop
        case "no_trailers": .endWithoutTrailers
        case "stall": .stall
        case "truncate": .truncate
        case let other:
          throw SimulatorError(
            .configuration,
            "unknown action '\(other)'; known: status, reset, goaway, drop, no_trailers, stall, truncate"
          )
        }
      return Fault(
        action, method: self.method ?? "Subscribe", topic: self.topic,
        afterEvents: self.afterEvents ?? 0, times: self.times ?? 1)
    }
  }

  static func descriptions(_ body: Data) throws -> [FaultDescription] {
    try (try? JSONDecoder().decode([FaultDescription].self, from: body))
      ?? [JSONDecoder().decode(FaultDescription.self, from: body)]
  }

  func respond(to request: HTTPRequest) async -> HTTPResponse {
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
    case ("POST", "/control/tokens/revoke"):
      self.server.tokens.revokeAll()
      return .json("{}\n")
    case ("POST", "/control/faults"):
      let list = try Self.descriptions(request.body)
      try await self.server.add(list)
      return .json("{\"added\":\(list.count)}\n")
    case ("DELETE", "/control/faults"):
      try await self.server.removeFaults()
      return .json("{}\n")
    case ("POST", "/control/state"):
      let path = String(decoding: request.body, as: UTF8.self)
      guard !path.isEmpty else {
        throw SimulatorError(.configuration, "the body must be the path of the file to be written")
      }
      try await self.server.writeState(to: path)
      return .json("{}\n")
    case ("GET", "/control/stats"): return .json(try await self.server.statsJSON() + "\n")
    case ("GET", "/control/delivered"): return .json(try await self.server.deliveredJSON() + "\n")
    default:
      return .json("{\"error\":\"unknown control; see README\"}\n", status: 404)
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
