package import Clocks
internal import EventLoop
package import HTTPClient
internal import JSON

/// Calls of one org's REST API: describe, SOQL, retrieval of records, limits, Bulk API 2.0.
///
/// Source: RESTAndBulk.md#all-calls. A call whose token is refused is repeated once with a new
/// token; nothing else is retried here. Used from any task.
package final class RESTClient: Sendable {
  /// The version that all calls use.
  package static let version = "66.0"

  /// Plausible numbers of records, whose sums do not overflow.
  static let countRange: ClosedRange<Int64> = 0...1_000_000_000_000

  /// API requests of the last 24 hours, as the org counts them.
  package struct Usage: Sendable, Equatable {
    package var used: Int
    package var limit: Int
  }

  private struct Counters {
    var usage: Usage?
    var calls = 0
    /// The org's clock, seconds since 1970, and when it was read.
    var date: (seconds: Int64, readAt: ContinuousClock.Instant)?
  }

  private let http: HTTPClient
  private let sessions: any RESTSessionSource
  package var clock: ProcessClock { self.http.clock }
  private let counters = Lock(Counters())

  package init(http: HTTPClient, sessions: any RESTSessionSource) {
    self.http = http
    self.sessions = sessions
  }

  /// The usage in the newest response that reported it.
  package var usage: Usage? { self.counters.withLock { $0.usage } }
  /// Calls made by this client.
  package var callCount: Int { self.counters.withLock { $0.calls } }

  /// The org's clock according to its responses, in milliseconds since 1970; nil before the first
  /// one with a date.
  package func serviceTime(at now: ContinuousClock.Instant? = nil) -> Int64? {
    let now = now ?? self.clock.now
    return self.counters.withLock { counters in
      counters.date.map { ($0.seconds + ($0.readAt.duration(to: now)).components.seconds) * 1000 }
    }
  }

  // MARK: Calls

  /// A call, without the host.
  struct Call {
    var method = HTTPRequest.Method.get
    /// Relative to `/services/data/vNN.0/`, or absolute from `/services/`.
    var path: String
    var headers: [(name: String, value: String)] = []
    var body: [UInt8] = []
    var kind = RESTAnswer.Calls.all

    var name: String { "\(self.method.rawValue) \(self.path.prefix { $0 != "?" })" }

    fileprivate func request(_ session: RESTSession) -> HTTPRequest {
      let path =
        self.path.hasPrefix("/") ? self.path : "/services/data/v\(RESTClient.version)/\(self.path)"
      var headers = [(name: "Authorization", value: "Bearer \(session.accessToken)")]
      if !self.body.isEmpty { headers.append(("Content-Type", "application/json")) }
      return HTTPRequest(
        self.method, session.instanceURL + path, headers: headers + self.headers, body: self.body)
    }
  }

  /// The response to a successful call.
  func send(_ call: Call) async throws -> HTTPResponse {
    try await self.authorized(call) { request throws in
      let response = try await self.http.send(request)
      return (response, response, { response.body })
    }
  }

  /// The response to a successful call as JSON.
  func json(_ call: Call) async throws -> JSONValue {
    let response = try await self.send(call)
    do {
      return try JSONValue(parsing: response.body, limits: JSONLimits(byteCount: 64 << 20))
    } catch {
      throw RESTError(
        .retry,
        "\(call.name): the response is not JSON; it may come from a proxy or a maintenance page",
        status: response.status)
    }
  }

  /// The response to a successful call, whose body is still arriving.
  func stream(_ call: Call) async throws -> HTTPBodyStream {
    try await self.authorized(call) { request throws in
      let stream = try await self.http.stream(request)
      return (stream.response, stream, { try await stream.errorBody() })
    }
  }

  private typealias Answer<Value> = (
    head: HTTPResponse, value: Value, errorBody: () async throws -> [UInt8]
  )

  private func authorized<Value>(
    _ call: Call, _ send: (HTTPRequest) async throws -> Answer<Value>
  ) async throws -> Value {
    var isRepeated = false
    while true {
      let session = try await self.sessions.session()
      let answer: Answer<Value>
      self.counters.withLock { $0.calls += 1 }
      do {
        answer = try await send(call.request(session))
        self.note(answer.head)
        if (200..<300).contains(answer.head.status) {
          await self.sessions.worked(session)
          return answer.value
        }
        let error = RESTError(answer.head, body: try await answer.errorBody(), to: call)
        guard error.disposition == .login, !isRepeated else { throw error }
        guard await self.sessions.refused(session) else { throw error }
        isRepeated = true
      } catch let error as HTTPError {
        throw RESTError(error)
      }
    }
  }

  /// `Sforce-Limit-Info: api-usage=25/5000; per-app-api-usage=17/250(appName=sample-app)`
  private func note(_ response: HTTPResponse) {
    if let date = response.date, (200..<300).contains(response.status) {
      let now = self.clock.now
      self.counters.withLock { counters in
        // Among the clocks of several servers, the latest counts.
        let isLater = counters.date.map {
          $0.seconds + $0.readAt.duration(to: now).components.seconds < date
        }
        if isLater ?? true { counters.date = (date, now) }
      }
    }
    guard let usage = response.header("Sforce-Limit-Info").flatMap(Self.usage) else { return }
    self.counters.withLock { $0.usage = usage }
  }

  static func usage(_ header: String) -> Usage? {
    let parts = header.split { $0 == ";" || $0 == "," }
    for part in parts {
      let pair = part.split(separator: "=", maxSplits: 1)
      guard pair.count == 2, pair[0].filter({ !$0.isWhitespace }) == "api-usage" else { continue }
      let numbers = pair[1].split(separator: "/").map { $0.filter { !$0.isWhitespace } }
      guard numbers.count == 2, let used = Int(numbers[0]), let limit = Int(numbers[1]), used >= 0,
        limit > 0
      else { return nil }
      return Usage(used: used, limit: limit)
    }
    return nil
  }
}
