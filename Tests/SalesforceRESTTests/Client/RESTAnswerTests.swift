import FoundationEssentials
import Testing

@testable import SalesforceREST

@Suite("Answers of the REST API")
struct RESTAnswerTests {
  private static func disposition(
    _ status: Int, _ code: String?, _ text: String = "", to calls: RESTAnswer.Calls = .all
  ) -> RESTError.Disposition {
    RESTAnswer.first(status: status, code: code, text: text, to: calls).disposition
  }

  @Test("The page lists the answers, dispositions and advice of the code")
  func page() throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    let page = root.appending(path: "Sources/Program/PubSubETL/PubSubETL.docc/RESTAndBulk.md")
    let text = String(decoding: try Data(contentsOf: page), as: UTF8.self)
    #expect(text.contains("\n\(RESTAnswer.table)\n"), "replace the table by:\n\(RESTAnswer.table)")
  }

  @Test("A missing resource is final, and only a job or page can be gone")
  func missing() {
    #expect(Self.disposition(404, "NOT_FOUND") == .stop)
    #expect(Self.disposition(404, nil) == .configuration)
    #expect(Self.disposition(404, "NOT_FOUND", to: .ofJobsAndPages) == .gone)
    #expect(Self.disposition(404, nil, to: .ofJobsAndPages) == .gone)
    #expect(Self.disposition(409, "INVALIDVERSION", to: .ofJobsAndPages) == .gone)
    #expect(Self.disposition(404, "NOT_FOUND", to: .creationOfJobs) == .unsupportedByBulk)
    #expect(Self.disposition(410, "UNSUPPORTED_API_VERSION") == .stop)
    #expect(Self.disposition(410, "GONE") == .stop)
  }

  @Test(
    "Answers that will not change are final, with a code or without",
    arguments: [
      (301, nil, .configuration), (302, nil, .configuration), (307, nil, .configuration),
      (400, nil, .configuration), (403, nil, .configuration), (405, nil, .configuration),
      (407, nil, .configuration), (413, nil, .configuration), (501, nil, .configuration),
      (505, nil, .configuration), (511, nil, .configuration),
      (405, "METHOD_NOT_ALLOWED", .bug), (415, "UNSUPPORTED_MEDIA_TYPE", .bug),
      (400, "JSON_PARSER_ERROR", .bug), (400, "MALFORMED_QUERY", .bug), (428, "X", .bug),
      (403, "SOMETHING_NEW", .stop), (400, "SOMETHING_NEW", .stop), (422, "X", .stop),
      (403, "API_DISABLED_FOR_ORG", .stop), (400, "INVALID_REPLICATION_DATE", .stop),
    ] as [(Int, String?, RESTError.Disposition)])
  func final(status: Int, code: String?, expected: RESTError.Disposition) {
    #expect(Self.disposition(status, code) == expected)
  }

  @Test(
    "Answers that pass are retried",
    arguments: [
      (406, nil), (408, nil), (420, nil), (425, nil), (429, nil), (500, nil), (502, nil),
      (503, nil), (504, nil), (520, nil), (500, "SOMETHING_NEW"), (403, "SERVER_UNAVAILABLE"),
      (400, "UNABLE_TO_LOCK_ROW"), (403, "ORG_IN_MAINTENANCE"),
    ] as [(Int, String?)])
  func transient(status: Int, code: String?) {
    #expect(Self.disposition(status, code) == .retry)
  }

  @Test("The message distinguishes answers with one code")
  func texts() {
    #expect(
      Self.disposition(403, "REQUEST_LIMIT_EXCEEDED", "TotalRequests Limit exceeded.") == .quota)
    #expect(
      Self.disposition(403, "REQUEST_LIMIT_EXCEEDED", "ConcurrentRequests Limit exceeded.")
        == .retry)
    #expect(Self.disposition(401, "INVALID_SESSION_ID", "Session expired or invalid") == .login)
    #expect(
      Self.disposition(
        401, "INVALID_SESSION_ID", "This session is not valid for use with the REST API") == .stop)
    #expect(
      Self.disposition(
        400, "MALFORMED_QUERY", "Implementation restriction: a filter is required") == .stop)
    #expect(
      Self.disposition(
        400, "LIMITEXCEEDED",
        "Max bulk v2 query jobs (10000) per 24 hrs has been reached for the org",
        to: .creationOfJobs) == .quota)
    #expect(
      Self.disposition(400, "API_ERROR", "Entity 'X' does not support query") == .unsupportedByBulk)
  }

  @Test("Too many fields ask for fewer at once")
  func wide() {
    for (status, code) in [(400, "QUERY_TOO_COMPLICATED"), (414, nil), (431, nil)] {
      #expect(Self.disposition(status, code) == .tooWide)
    }
  }
}
