/// A kind of answer to a REST call other than success, and what to do about it.
///
/// The first row of `all` that fits decides. RESTAndBulk.md#answers is this table as a page.
package struct RESTAnswer: Sendable {
  /// The calls to which a row applies.
  enum Calls: Sendable {
    case all
    /// A job or page that existed before, which can vanish.
    case ofJobsAndPages
    case creationOfJobs
  }

  /// HTTP statuses; nil: any.
  var statuses: [ClosedRange<Int>]?
  /// Salesforce's codes, which are compared without case and underscores; empty: any or none.
  var codes: [String] = []
  /// Parts of the message, of which one must be there; empty: any message.
  var texts: [String] = []
  /// The body is not an error of Salesforce: an HTML page, or nothing.
  var isForeign = false
  var calls = Calls.all
  let disposition: RESTError.Disposition
  /// What the user can do, as part of a message; empty if there is nothing to do.
  let advice: String

  private init(
    statuses: [ClosedRange<Int>]? = nil, codes: [String] = [], texts: [String] = [],
    isForeign: Bool = false, of calls: Calls = .all, _ disposition: RESTError.Disposition,
    _ advice: String = ""
  ) {
    (self.statuses, self.codes, self.texts) = (statuses, codes, texts)
    (self.isForeign, self.calls) = (isForeign, calls)
    (self.disposition, self.advice) = (disposition, advice)
  }

  private static let inBetween =
    "this is not the response of Salesforce; check login_url, and for a proxy or firewall in between"
  private static let isBug = "Salesforce does not accept the request; please report this"

  package static let all: [RESTAnswer] = [
    // What a session may do.
    RESTAnswer(
      codes: ["INVALID_SESSION_ID"], texts: ["not valid for use", "not attached to Agent"], .stop,
      "the login worked, but its session may not use the API: select the scope api in the app; see "
        + "that the user's profile and the session settings do not require high-assurance sessions; "
        + "and that sessions are not locked to another IP address"),
    RESTAnswer(
      codes: ["INVALID_SESSION_ID", "INVALID_AUTH_HEADER"], .login,
      "the access token has expired or was revoked"),
    RESTAnswer(
      codes: ["API_DISABLED_FOR_ORG"], .stop,
      "the org's edition or the user's permissions do not include the API"),
    RESTAnswer(
      codes: ["CLIENT_NOT_ACCESSIBLE_FOR_USER", "INVALID_CLIENT"], .stop,
      "allow the app for the run-as user"),
    RESTAnswer(
      codes: ["ORG_LOCKED", "TRIAL_EXPIRED", "INVALID_OPERATION_WITH_EXPIRED_PASSWORD"], .stop,
      "an administrator of the org has to unlock it or the run-as user"),
    RESTAnswer(
      codes: ["LOGIN_DURING_RESTRICTED_DOMAIN", "LOGIN_DURING_RESTRICTED_TIME"], .stop,
      "check the login IP ranges and login hours of the run-as user's profile"),
    RESTAnswer(
      codes: ["INSUFFICIENT_ACCESS", "INSUFFICIENT_ACCESS_OR_READONLY"], .stop,
      "grant the run-as user the right to read the object"),
    // Allowances.
    RESTAnswer(
      codes: ["REQUEST_LIMIT_EXCEEDED"], texts: ["Concurrent"], .retry,
      "too many long requests at once"),
    RESTAnswer(
      codes: ["REQUEST_LIMIT_EXCEEDED"], .quota, "the org's API requests of 24 hours are used up"),
    RESTAnswer(
      codes: ["LIMIT_EXCEEDED", "EXCEEDED_QUOTA"], .quota,
      "the org's Bulk jobs of 24 hours are used up"),
    RESTAnswer(
      texts: ["Max bulk v2 query"], of: .creationOfJobs, .quota,
      "the org's Bulk jobs of 24 hours are used up"),
    // What is asked for at once.
    RESTAnswer(
      codes: ["QUERY_TIMEOUT", "OPERATION_TOO_LARGE", "REQUEST_RUNNING_TOO_LONG"], .split),
    RESTAnswer(codes: ["QUERY_TOO_COMPLICATED"], .tooWide, "fewer fields are read at a time"),
    RESTAnswer(
      codes: ["MALFORMED_QUERY"], texts: ["cannot be longer than"], .tooWide,
      "fewer fields are read at a time"),
    RESTAnswer(statuses: [414...414, 431...431], .tooWide, "fewer fields are read at a time"),
    // What is gone.
    RESTAnswer(
      codes: ["INVALID_QUERY_LOCATOR", "INVALID_LOCATOR", "INVALIDJOBSTATE", "ENTITY_IS_DELETED"],
      .gone),
    RESTAnswer(codes: ["NOT_FOUND"], of: .ofJobsAndPages, .gone),
    RESTAnswer(statuses: [404...404, 410...410], of: .ofJobsAndPages, .gone),
    RESTAnswer(
      statuses: [409...409], of: .ofJobsAndPages, .gone, "the job belongs to another API version"),
    // What is described otherwise.
    RESTAnswer(codes: ["INVALID_FIELD", "INVALID_TYPE"], .describe),
    // What Bulk does not read.
    RESTAnswer(codes: ["INVALIDENTITY", "FEATURENOTENABLED", "INVALIDBATCH"], .unsupportedByBulk),
    RESTAnswer(codes: ["FUNCTIONALITY_NOT_ENABLED"], of: .creationOfJobs, .unsupportedByBulk),
    RESTAnswer(codes: ["API_ERROR"], texts: ["does not support query"], .unsupportedByBulk),
    RESTAnswer(codes: ["NOT_FOUND"], of: .creationOfJobs, .unsupportedByBulk),
    // What the object or the org does not allow.
    RESTAnswer(
      codes: ["MALFORMED_QUERY"], texts: ["Implementation restriction"], .stop,
      "Salesforce reads this object only with a filter; leave it out of source.snapshot.objects"),
    RESTAnswer(
      codes: ["API_ERROR"], texts: ["Implementation restriction"], .stop,
      "the run-as user needs 'View All Data' for this object"),
    RESTAnswer(
      codes: ["NOT_FOUND", "INVALID_TYPE_FOR_OPERATION", "EXTERNAL_OBJECT_UNSUPPORTED_EXCEPTION"],
      .stop,
      "the object does not exist or cannot be read; grant the run-as user the right to read it, or "
        + "leave it out of the pipeline"),
    RESTAnswer(
      codes: ["FUNCTIONALITY_NOT_ENABLED"], .stop, "the org does not have this part of the API"),
    RESTAnswer(
      codes: ["INVALID_REPLICATION_DATE", "EXCEEDED_ID_LIMIT"], .stop,
      "the org does not list the changes of this period"),
    RESTAnswer(
      codes: ["UNSUPPORTED_API_VERSION", "UNSUPPORTED_CLIENT"], .stop,
      "the org does not support API version \(RESTClient.version); install a newer pubsub-etl"),
    // What we should not send.
    RESTAnswer(
      codes: [
        "MALFORMED_QUERY", "MALFORMED_ID", "JSON_PARSER_ERROR", "NUMBER_OUTSIDE_VALID_RANGE",
        "INVALID_QUERY_FILTER_OPERATOR", "INVALID_QUERY_SCOPE", "METHOD_NOT_ALLOWED",
        "NOT_ACCEPTABLE", "UNSUPPORTED_MEDIA_TYPE", "INVALID_BATCH_SIZE", "UNSUPPORTED_OPERATION",
      ], .bug, Self.isBug),
    RESTAnswer(
      codes: ["API_ERROR"], texts: ["Value does not match expected type"], .bug, Self.isBug),
    // What passes.
    RESTAnswer(
      codes: ["TXN_SECURITY_METERING_ERROR"], .retry,
      "grant the run-as user 'Exempt from Transaction Security'"),
    RESTAnswer(
      codes: [
        "SERVER_UNAVAILABLE", "UNKNOWN_EXCEPTION", "UNABLE_TO_LOCK_ROW", "ORG_IN_MAINTENANCE",
        "API_CURRENTLY_DISABLED", "FUNCTIONALITY_TEMPORARILY_UNAVAILABLE",
      ], .retry),
    // Without a code that is known.
    RESTAnswer(statuses: [401...401], .login, "the access token is not accepted"),
    RESTAnswer(statuses: [406...406, 408...408, 420...420, 425...425, 429...429], .retry),
    RESTAnswer(
      statuses: [501...501, 505...505, 511...511], .configuration, Self.inBetween),
    RESTAnswer(statuses: [500...599], .retry),
    RESTAnswer(
      statuses: [300...399], .configuration, "the org has moved: set login_url to its My Domain URL"
    ),
    RESTAnswer(statuses: [400...499], isForeign: true, .configuration, Self.inBetween),
    RESTAnswer(
      statuses: [403...403], .stop,
      "check that the run-as user has 'API Enabled' and the right to read the object"),
    RESTAnswer(statuses: [404...404], .stop, "the object does not exist or cannot be read"),
    RESTAnswer(
      statuses: [410...410], .stop,
      "the org does not support API version \(RESTClient.version); install a newer pubsub-etl"),
    RESTAnswer(statuses: [405...405, 411...413, 415...417, 428...428], .bug, Self.isBug),
    RESTAnswer(.stop),
  ]

  /// - Parameters:
  ///   - code: Salesforce's; nil for a body that is none of its errors.
  ///   - text: Salesforce's message.
  static func first(
    status: Int, code: String?, text: String, to calls: Calls
  ) -> RESTAnswer {
    let name = code.map(Self.comparable)
    let found = self.all.first { row in
      (row.statuses?.contains { $0.contains(status) } ?? true)
        && (row.codes.isEmpty || row.codes.contains { Self.comparable($0) == name })
        && (row.texts.isEmpty || row.texts.contains { text.contains($0) })
        && (!row.isForeign || code == nil) && (row.calls == .all || row.calls == calls)
    }
    guard let found else { preconditionFailure("the last row fits every answer") }
    return found
  }

  private static func comparable(_ code: String) -> String {
    code.filter { $0 != "_" }.uppercased()
  }
}

extension RESTAnswer {
  /// The table in Markdown, for the page.
  package static var table: String {
    let rows = Self.all.map { row in
      "| \(row.name) | `\(row.disposition.rawValue)` | \(row.advice) |"
    }
    return (["| answer | disposition | advice |", "|---|---|---|"] + rows)
      .joined(separator: "\n")
  }

  /// The answer in words.
  private var name: String {
    var parts: [String] = []
    if let statuses = self.statuses {
      parts.append(
        statuses.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound) to \($0.upperBound)" }
          .joined(separator: ", "))
    }
    if !self.codes.isEmpty {
      parts.append(self.codes.map { "`\($0)`" }.joined(separator: ", "))
    }
    if !self.texts.isEmpty {
      parts.append("with \(self.texts.map { "\"\($0)\"" }.joined(separator: " or "))")
    }
    if self.isForeign {
      parts.append("without a code of Salesforce: a page of a proxy, or nothing")
    }
    switch self.calls {
    case .all: break
    case .ofJobsAndPages: parts.append("for a job or page")
    case .creationOfJobs: parts.append("when a job is created")
    }
    return parts.isEmpty ? "anything else" : parts.joined(separator: " ")
  }
}
