import EventLoop

/// Answers what Prometheus and probes ask of a run in progress. From any thread.
final class MetricsEndpoint: Sendable {
  private struct State {
    var reading: MetricReading
    /// Counts what was published.
    var number = 0
    /// The texts of `reading` that somebody has asked for.
    var pages: [MetricText.Format: [UInt8]] = [:]
  }

  private let state: Lock<State>

  init(_ reading: MetricReading) { self.state = Lock(State(reading: reading)) }

  func publish(_ reading: MetricReading) {
    self.state.withLock { state in
      state.reading = reading
      state.number += 1
      state.pages = [:]
    }
  }

  @Sendable func answer(_ request: MetricsRequest) -> MetricsResponse {
    guard request.method == "GET" else {
      return MetricsResponse(.methodNotAllowed, text: "only GET is answered\n")
    }
    switch request.path {
    case "/metrics":
      let format: MetricText.Format = request.acceptsOpenMetrics ? .openMetrics : .prometheus
      return MetricsResponse(.ok, contentType: format.contentType, body: self.page(format))
    case "/healthz": return MetricsResponse(.ok, text: "ok\n")
    case "/readyz":
      let obstacles = self.state.withLock { $0.reading }.obstacles
      guard obstacles.isEmpty else {
        let lines = obstacles.prefix(Self.shownObstacles).map { "\($0)\n" }
        return MetricsResponse(.unavailable, text: lines.joined())
      }
      return MetricsResponse(.ok, text: "ok\n")
    default:
      return MetricsResponse(.notFound, text: "known: /metrics, /healthz, /readyz\n")
    }
  }

  private static let shownObstacles = 20

  /// Made once for each reading, however often it is asked for.
  private func page(_ format: MetricText.Format) -> [UInt8] {
    let (reading, number, known) = self.state.withLock { state in
      (state.reading, state.number, state.pages[format])
    }
    if let known { return known }
    let page = Array(MetricText(reading.samples, as: format, in: .endpoint).text.utf8)
    self.state.withLock { state in
      if state.number == number { state.pages[format] = page }
    }
    return page
  }
}
