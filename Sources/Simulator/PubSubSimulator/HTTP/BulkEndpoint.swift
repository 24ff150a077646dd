internal import Foundation
internal import SimulatedOrg

/// `/services/data/vNN.0/jobs/query…`
enum BulkEndpoint {
  private struct Creation: Decodable {
    var operation: String
    var query: String
    var contentType: String?
    var columnDelimiter: String?
    var lineEnding: String?
  }

  private static let delimiters: [String: UInt8] = [
    "BACKQUOTE": 0x60, "CARET": 0x5E, "COMMA": 0x2C, "PIPE": 0x7C, "SEMICOLON": 0x3B, "TAB": 0x09,
  ]

  /// - Parameter path: what follows `jobs/query`.
  static func call(_ request: HTTPRequest, path: [String]) throws -> RESTEndpoint.Call {
    switch (request.method, path.count) {
    case ("POST", 0):
      let job = try self.job(request)
      return RESTEndpoint.Call(kind: .createJob) { api, now in
        .json(Self.json(try api.createJob(job, at: now), of: api), date: now)
      }
    case ("GET", 0):
      return RESTEndpoint.Call(kind: .jobStatus) { api, now in
        let jobs = api.jobs.all.map { Self.json($0, of: api) }.joined(separator: ",")
        return .json("{\"done\":true,\"records\":[\(jobs)],\"nextRecordsUrl\":null}", date: now)
      }
    case ("GET", 1):
      return RESTEndpoint.Call(kind: .jobStatus) { api, now in
        .json(Self.json(try api.jobs.job(path[0], at: now), of: api), date: now)
      }
    case ("PATCH", 1):
      return RESTEndpoint.Call(kind: .jobStatus) { api, now in
        .json(Self.json(try api.jobs.abort(path[0], at: now), of: api), date: now)
      }
    case ("DELETE", 1):
      return RESTEndpoint.Call(kind: .jobStatus) { api, now in
        try api.jobs.delete(path[0], at: now)
        return HTTPResponse(status: 204, headers: [], body: Data())
      }
    case ("GET", 2) where path[1] == "results": return self.results(request, id: path[0])
    default: throw APIRefusal("NOT_FOUND", "The requested resource does not exist", status: 404)
    }
  }

  private static func job(_ request: HTTPRequest) throws -> QueryJob.Request {
    guard let wanted = try? JSONDecoder().decode(Creation.self, from: request.body) else {
      throw APIRefusal("API_ERROR", "Value does not match expected type at [line:1, column:1]")
    }
    guard ["query", "queryAll"].contains(wanted.operation),
      wanted.contentType ?? "CSV" == "CSV",
      let delimiter = Self.delimiters[wanted.columnDelimiter ?? "COMMA"],
      ["LF", "CRLF"].contains(wanted.lineEnding ?? "LF")
    else { throw APIRefusal("API_ERROR", "Unsupported operation, content type or delimiter") }
    return QueryJob.Request(
      statement: wanted.query, withDeleted: wanted.operation == "queryAll", delimiter: delimiter,
      isWindows: wanted.lineEnding == "CRLF", version: DataAPI.version)
  }

  private static func results(_ request: HTTPRequest, id: String) -> RESTEndpoint.Call {
    let locator = request.query["locator"].flatMap { $0.isEmpty ? nil : $0 }
    let most = request.query["maxRecords"].flatMap(Int.init)
    return RESTEndpoint.Call(kind: .results) { api, now in
      let page = try api.jobs.page(id, locator: locator, maxRecords: most, at: now)
      var response = HTTPResponse.text("", status: 200, type: "text/csv", date: now)
      response.body = Data(page.body)
      response.headers.append(("Sforce-NumberOfRecords", String(page.rowCount)))
      response.headers.append(("Sforce-Locator", page.locator ?? "null"))
      return response
    }
  }

  private static func json(_ job: QueryJob, of api: DataAPI) -> String {
    let delimiter = Self.delimiters.first { $0.value == job.request.delimiter }?.key ?? "COMMA"
    var members = [
      "\"id\":\"\(job.id)\"", "\"operation\":\"\(job.request.withDeleted ? "queryAll" : "query")\"",
      "\"object\":\"\(api.jobs.objectName(job))\"", "\"createdById\":\"005000000000000AAA\"",
      "\"createdDate\":\"\(job.createdDate)\"", "\"systemModstamp\":\"\(job.createdDate)\"",
      "\"state\":\"\(job.state.rawValue)\"", "\"concurrencyMode\":\"Parallel\"",
      "\"contentType\":\"CSV\"", "\"apiVersion\":\(job.request.version)",
      "\"jobType\":\"V2Query\"", "\"lineEnding\":\"\(job.request.isWindows ? "CRLF" : "LF")\"",
      "\"columnDelimiter\":\"\(delimiter)\"", "\"numberRecordsProcessed\":\(job.rowCount)",
      "\"retries\":0", "\"totalProcessingTime\":0",
    ]
    if let message = job.errorMessage {
      members.append("\"errorMessage\":\(JSONText.string(message))")
    }
    return "{\(members.joined(separator: ","))}"
  }
}
