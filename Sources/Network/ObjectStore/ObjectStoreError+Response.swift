internal import HTTPClient

extension ObjectStoreError {
  /// The error for a missing or incomplete response.
  init(_ error: HTTPError) {
    let disposition: Disposition =
      switch error.code {
      case .system: .exhausted
      case .untrusted, .trustStore, .certificate, .proxyRefused, .invalidRequest: .configuration
      case .limitExceeded: .unsupported
      default: .retry
      }
    self.init(disposition, error.message)
  }

  /// The error that a response reports.
  ///
  /// - Parameters:
  ///   - name: of the call, for the message.
  ///   - secrets: of the request, which a server might repeat.
  ///   - wallTime: of this machine, in milliseconds since 1970.
  init(
    _ response: HTTPResponse, body: [UInt8], to name: String, secrets: [String], wallTime: Int64
  ) {
    let document = try? XMLElement(parsing: body)
    // Of the token service, the error is inside an ErrorResponse.
    let error = document.flatMap { $0.name == "Error" ? $0 : $0.child("Error") }
    func said(_ name: String, _ limit: Int) -> String? {
      guard var text = error?[name], !text.isEmpty else { return nil }
      for secret in secrets where !secret.isEmpty {
        text = text.replacing(secret, with: "<redacted>")
      }
      return text.shown(upTo: limit)
    }
    let code = said("Code", 80)
    var refusal = StoreRefusal.first(status: response.status, code: code)
    let report = [code, said("Message", 300)].compactMap { $0 }.joined(separator: ": ")
    var message = "\(name): HTTP \(response.status)\(report.isEmpty ? "" : ", \(report)")"
    let region = response.header("x-amz-bucket-region") ?? error?["Region"]
    let endpoint = said("Endpoint", 200) ?? response.header("Location").map { $0.shown(upTo: 200) }
    // HEAD in another region may be answered with 400, too.
    if response.status == 400, code == nil, region != nil { refusal.disposition = .configuration }
    if refusal.disposition == .configuration, let region, !region.isEmpty {
      message += "; the bucket is in the region \(region.shown(upTo: 40)), so set region to that"
    } else if refusal.disposition == .configuration, refusal.advice.isEmpty, let endpoint {
      message += "; the store refers to \(endpoint); check endpoint and region"
    } else if refusal.disposition == .configuration, refusal.advice.isEmpty {
      message += "; check endpoint and region"
    }
    if code == "RequestTimeTooSkewed", let date = response.date {
      let difference = wallTime / 1000 - date
      let direction = difference < 0 ? "behind" : "ahead of"
      message += "; this machine's clock is \(abs(difference)) s \(direction) the store's"
    }
    if !refusal.advice.isEmpty { message += "; \(refusal.advice)" }
    let pause = response.header("Retry-After").flatMap { Int64($0) }
    self.init(
      refusal.disposition, message, code: code, status: response.status,
      retryAfter: pause.flatMap { (0...3600).contains($0) ? .seconds($0) : nil })
  }
}
