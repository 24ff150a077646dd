internal import Foundation
internal import SimulatedOrg

/// `/services/data/…`: describe, SOQL, composite retrieve, limits, Bulk API 2.0.
///
/// Source: RESTAndBulk.md.
struct RESTEndpoint: Sendable {
  let server: SimulatorServer

  /// What is asked of the org, read from a request.
  struct Call: Sendable {
    var kind: RESTFault.Call
    var answer: @Sendable (DataAPI, Int64) throws -> HTTPResponse
    /// The answer to a call that does not need the org's records: an org without REST gives it too. Nil
    /// where it does need them.
    var answerOfOrg: (@Sendable (Org, Int64) throws -> HTTPResponse?)?
  }

  private static let maxURIBytes = 16_384

  static func handles(_ path: String) -> Bool { path.hasPrefix("/services/data") }

  func respond(to request: HTTPRequest) async -> HTTPResponse {
    let response = await self.answer(request)
    guard self.server.configuration.compressesRecords,
      request.headers["accept-encoding"]?.contains("gzip") == true
    else { return response }
    return response.compressed()
  }

  private func answer(_ request: HTTPRequest) async -> HTTPResponse {
    let now = self.server.clock.now
    guard request.uriByteCount <= Self.maxURIBytes else {
      return .text("<html><body>URI Too Long</body></html>", status: 414)
    }
    if request.path == "/services/data" || request.path == "/services/data/" {
      return .json(
        "[{\"label\":\"Spring '26\",\"url\":\"/services/data/v\(DataAPI.version)\","
          + "\"version\":\"\(DataAPI.version)\"}]", date: now)
    }
    guard let authorization = request.headers["authorization"],
      authorization.hasPrefix("Bearer "),
      self.server.tokens.isValid(String(authorization.dropFirst(7)), at: now)
    else {
      return Self.refuse(
        APIRefusal("INVALID_SESSION_ID", "Session expired or invalid", status: 401), at: now)
    }
    do {
      let call = try Self.call(request)
      return try await self.server.onLoop { server in
        if server.org.dataAPI == nil, let answer = try call.answerOfOrg?(server.org, now) {
          return answer
        }
        guard let api = server.org.dataAPI else {
          throw APIRefusal(
            "API_DISABLED_FOR_ORG", "The REST API is not enabled for this Organization.",
            status: 403)
        }
        let fault = api.takeFault(call.kind, at: now)
        var response: HTTPResponse
        do {
          try api.begin(at: now)
          if case .status(let status, let code, let message) = fault {
            throw APIRefusal(code, message, status: status)
          }
          if case .job(let jobFault) = fault { api.nextJobFault = jobFault }
          response = try call.answerOfOrg?(server.org, now) ?? call.answer(api, now)
        } catch let error as APIRefusal {
          response = Self.refuse(error, at: now)
        }
        response.headers.append(("Sforce-Limit-Info", api.usage))
        return fault.map { response.suffering($0) } ?? response
      }
    } catch let error as APIRefusal {
      return Self.refuse(error, at: now)
    } catch {
      return .text("<html><body>Internal Server Error</body></html>", status: 500)
    }
  }

  static func refuse(_ error: APIRefusal, at now: Int64) -> HTTPResponse {
    .json(
      "[{\"message\":\(JSONText.string(error.message)),\"errorCode\":\"\(error.code)\"}]",
      status: error.status, date: now)
  }

  private static let notFound = APIRefusal(
    "NOT_FOUND", "The requested resource does not exist", status: 404)

  /// The call that method and path mean.
  private static func call(_ request: HTTPRequest) throws -> Call {
    let parts = request.path.split(separator: "/").map(String.init)
    guard parts.count >= 4, parts[2] == "v\(DataAPI.version)" else { throw Self.notFound }
    let path = Array(parts[3...])
    switch (request.method, path.first, path.count) {
    case ("GET", "sobjects", 1):
      return Call(kind: .describe) { _, _ in
        throw Self.notFound
      } answerOfOrg: { org, now in
        org.describeGlobal().map { .json($0, date: now) }
      }
    case ("GET", "sobjects", 3) where path[2] == "describe":
      return Call(kind: .describe) { api, now in
        .json(try api.describe(path[1]), date: now)
      } answerOfOrg: { org, now in
        org.describeEvent(path[1]).map { .json($0, date: now) }
      }
    case ("GET", "sobjects", 3) where path[2] == "updated" || path[2] == "deleted":
      let (start, end) = (request.query["start"], request.query["end"])
      return Call(kind: .replication) { api, now in
        let text =
          path[2] == "updated"
          ? try api.updated(path[1], from: start, to: end, at: now)
          : try api.deleted(path[1], from: start, to: end, at: now)
        return .json(text, date: now)
      }
    case ("GET", "query", 1), ("GET", "queryAll", 1):
      return try self.query(request, withDeleted: path[0] == "queryAll")
    case ("GET", "query", 2), ("GET", "queryAll", 2):
      return Call(kind: .queryMore) { api, now in
        .json(try api.queryMore(path[1], at: now), date: now)
      }
    case ("POST", "composite", 3) where path[1] == "sobjects":
      return try self.retrieve(request, object: path[2])
    case ("GET", "limits", 1):
      return Call(kind: .limits) { _, _ in
        throw Self.notFound
      } answerOfOrg: { org, now in
        .json(org.limits, date: now)
      }
    case ("GET", "tooling", 2) where path[1] == "query":
      return self.toolingQuery(request.query["q"] ?? "")
    case ("GET", "limits", 2) where path[1] == "recordCount":
      let names = (request.query["sObjects"] ?? "").split(separator: ",").map(String.init)
      return Call(kind: .limits) { api, now in .json(api.recordCounts(names), date: now) }
    case (_, "jobs", 2...) where path[1] == "query":
      return try BulkEndpoint.call(request, path: Array(path[2...]))
    default: throw Self.notFound
    }
  }

  private static func query(_ request: HTTPRequest, withDeleted: Bool) throws -> Call {
    guard let text = request.query["q"], !text.isEmpty else {
      throw APIRefusal("MALFORMED_QUERY", "The query is missing")
    }
    let options = request.headers["sforce-query-options"] ?? ""
    let size = options.split(separator: "=").last.flatMap { Int($0) }
    return Call(kind: .query) { api, now in
      .json(try api.query(text, withDeleted: withDeleted, batchSize: size, at: now), date: now)
    } answerOfOrg: { org, now in
      try DataAPI.permissionAccess(text, permissions: org.userPermissions)
        .map { .json($0, date: now) }
    }
  }

  private static func toolingQuery(_ text: String) -> Call {
    let kind: RESTFault.Call =
      text.contains("FROM \(Org.managedObject) ")
      ? .managedSubscription
      : text.hasSuffix("FROM \(Org.channelObject)") ? .eventChannel : .fieldDefinition
    return Call(kind: kind) { _, _ in
      throw Self.notFound
    } answerOfOrg: { org, now in
      let answer =
        switch kind {
        case .managedSubscription: try org.managedSubscriptions(text)
        case .eventChannel: try org.eventChannels(text)
        default: try org.fieldDefinitions(text)
        }
      return .json(answer, date: now)
    }
  }

  private struct Retrieval: Decodable {
    var ids: [String]
    var fields: [String]
  }

  private static func retrieve(_ request: HTTPRequest, object: String) throws -> Call {
    guard let wanted = try? JSONDecoder().decode(Retrieval.self, from: request.body) else {
      throw APIRefusal("JSON_PARSER_ERROR", "The HTTP entity body is not valid")
    }
    return Call(kind: .retrieve) { api, now in
      .json(try api.retrieve(object, ids: wanted.ids, fields: wanted.fields), date: now)
    }
  }
}

extension HTTPResponse {
  fileprivate static func json(_ bytes: [UInt8], date: Int64) -> HTTPResponse {
    var response = HTTPResponse.json("", date: date)
    response.body = Data(bytes)
    return response
  }

  /// What a fault makes of an answer.
  fileprivate func suffering(_ fault: RESTFault.Action) -> HTTPResponse {
    var response = self
    switch fault {
    case .status, .job: break
    case .html(let status):
      return .text("<html><body>Down for Maintenance</body></html>", status: status)
    case .cut: response.body = self.body.prefix(self.body.count * 2 / 3 + 1)
    case .drop: response.delivery = .dropped
    case .drip: response.delivery = .dripping
    case .rowCount:
      response.headers = self.headers.map { name, value in
        name == "Sforce-NumberOfRecords" ? (name, String((Int(value) ?? 0) + 1)) : (name, value)
      }
    }
    return response
  }
}
