internal import HTTPClient
internal import JSON

extension RESTError {
  /// The error for a missing or incomplete response.
  init(_ error: HTTPError) {
    let disposition: Disposition =
      error.isTransient ? .retry : error.code == .limitExceeded ? .tooWide : .stop
    self.init(disposition, error.message)
  }

  /// The error that a response reports (RESTAndBulk.md#answers).
  init(_ response: HTTPResponse, body: [UInt8], to call: RESTClient.Call) {
    let (code, text) = Self.reported(body)
    let said = [code, text].compactMap { $0 }.joined(separator: ": ")
    let message = "\(call.name): HTTP \(response.status)\(said.isEmpty ? "" : ", \(said)")"
    let answer = RESTAnswer.first(
      status: response.status, code: code, text: text ?? "", to: call.kind)
    self.init(
      answer.disposition, answer.advice.isEmpty ? message : "\(message); \(answer.advice)",
      errorCode: code, status: response.status)
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
}
