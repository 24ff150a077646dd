internal import HTTPClient
internal import JSON

extension RESTError {
  /// The error for a missing or incomplete response.
  init(_ error: HTTPError) {
    let isTransient = error.isTransient || error.code == .limitExceeded
    self.init(isTransient ? .retry : .stop, error.message)
  }

  /// The error that a response reports (RESTAndBulk.md#all-calls).
  init(_ response: HTTPResponse, body: [UInt8], to call: String) {
    let (code, text) = Self.reported(body)
    let said = [code, text].compactMap { $0 }.joined(separator: ": ")
    let message = "\(call): HTTP \(response.status)\(said.isEmpty ? "" : ", \(said)")"
    let (disposition, advice) = Self.disposition(
      status: response.status, code: code, text: text ?? "")
    self.init(
      disposition, advice.isEmpty ? message : "\(message); \(advice)", errorCode: code,
      status: response.status)
  }

  /// Error code and message of a body: an array of errors, or an object as for logins. An HTML page
  /// has neither.
  private static func reported(_ body: [UInt8]) -> (code: String?, text: String?) {
    guard let json = try? JSONValue(parsing: body) else { return (nil, nil) }
    let error = json.array?.first ?? json
    let code = (error["errorCode"] ?? error["error"])?.string.map { $0.shown(upTo: 80) }
    let text = (error["message"] ?? error["error_description"])?.string
    return (code, text.map { $0.shown(upTo: 300) })
  }

  private static func disposition(
    status: Int, code: String?, text: String
  ) -> (Disposition, String) {
    if let code, let found = Self.disposition(code: code, text: text) { return found }
    switch status {
    case 401: return (.login, "the access token is not accepted")
    case 404: return (.gone, "")
    case 406, 408, 420, 429, 500...: return (.retry, "")
    case 409: return (.gone, "the job belongs to another API version")
    case 410: return (.stop, "the API version is no longer supported")
    case 300..<400: return (.stop, "the org has moved: set login_url to its My Domain URL")
    case 403:
      return (
        .stop, "check that the run-as user has 'API Enabled' and the right to read the object"
      )
    case 400 where code == nil:
      return (.stop, "this is not the response of Salesforce; check for a proxy in between")
    default: return (.stop, "")
    }
  }

  private static func disposition(code: String, text: String) -> (Disposition, String)? {
    switch code.filter({ $0 != "_" }).uppercased() {
    case "INVALIDSESSIONID":
      return (.login, "the access token has expired or was revoked")
    case "REQUESTLIMITEXCEEDED":
      return text.contains("Concurrent")
        ? (.retry, "too many long requests at once")
        : (.quota, "the org's API requests of 24 hours are used up")
    case "LIMITEXCEEDED":
      return (.quota, "the org's Bulk jobs of 24 hours are used up")
    case "QUERYTIMEOUT", "OPERATIONTOOLARGE": return (.split, "")
    case "INVALIDQUERYLOCATOR", "INVALIDLOCATOR", "NOTFOUND", "ENTITYISDELETED",
      "INVALIDJOBSTATE":
      return (.gone, "")
    case "INVALIDFIELD", "INVALIDTYPE": return (.describe, "")
    case "INVALIDENTITY", "FEATURENOTENABLED", "FUNCTIONALITYNOTENABLED":
      return (.unsupportedByBulk, "")
    case "APIERROR" where text.contains("does not support query"), "INVALIDBATCH":
      return (.unsupportedByBulk, "")
    case "APIERROR" where text.contains("Implementation restriction"):
      return (.stop, "the run-as user needs 'View All Data' for this object")
    case "APIDISABLEDFORORG":
      return (.stop, "the org's edition or the user's permissions do not include the API")
    case "TXNSECURITYMETERINGERROR":
      return (.retry, "grant the run-as user 'Exempt from Transaction Security'")
    case "SERVERUNAVAILABLE", "UNKNOWNEXCEPTION", "UNABLETOLOCKROW": return (.retry, "")
    default: return nil
    }
  }
}

extension String {
  /// The displayable part of a server's text: printable characters on one line.
  func shown(upTo count: Int) -> String {
    String(
      self.prefix(count).map { $0.isNewline || $0 == "\t" ? " " : $0 }.filter {
        $0.unicodeScalars.allSatisfy {
          $0.properties.generalCategory != .control && $0.properties.generalCategory != .format
        }
      })
  }
}
