internal import Bytes
internal import HTTPClient
internal import Logging
internal import Pipeline
internal import PubSubAPI

/// Log lines about single calls, at `debug`: each request and response. Without tokens, queries, payloads and
/// row values.
enum ServiceLog {
  /// Characters of an RPC ID that are shown; the service's are UUIDs.
  private static let longestID = 100

  /// The callback for a client of the Pub/Sub API; nil when the level shows no calls.
  static func calls(_ logger: Logger) -> (@Sendable (ServiceTrace) -> Void)? {
    guard logger.logLevel <= .debug else { return nil }
    return { self.log($0, logger) }
  }

  /// The callback for an HTTP client; nil when the level shows no calls.
  static func exchanges(_ logger: Logger) -> (@Sendable (HTTPExchange) -> Void)? {
    guard logger.logLevel <= .debug else { return nil }
    return { self.log($0, logger) }
  }

  private static func log(_ trace: ServiceTrace, _ logger: Logger) {
    switch trace {
    case .subscribed(let subscription):
      logger.debug(
        "subscription sent",
        metadata: [
          "topic": "\(subscription.topic)", "from": "\(subscription.position.words)",
          "num_requested": .number(subscription.credit),
        ])
    case .managedSubscribed(let subscription):
      logger.debug(
        "managed subscription sent",
        metadata: [
          "topic": "\(subscription.topic)", "subscription": "\(subscription.record)",
          "num_requested": .number(subscription.credit),
        ])
    case .committed(let subscription, let commit):
      logger.debug(
        "commit sent",
        metadata: [
          "subscription": "\(subscription.record)", "id": "\(commit.id)",
          "replay_id": "\(commit.replayID.hex)",
        ])
    case .requested(let topic, let count):
      logger.debug(
        "events requested", metadata: ["topic": "\(topic)", "num_requested": .number(count)])
    case .received(let topic, let response):
      logger.debug(
        response.isKeepalive ? "keepalive received" : "response received",
        metadata: [
          "topic": "\(topic)", "events": .number(response.events.count),
          "bytes": .number(response.bytes.count),
          "pending_credit": .number(response.pendingCredit),
          "replay_id": "\(response[response.latestReplayIDField].hex)",
          "rpc_id":
            "\(String(decoding: response[response.rpcID].prefix(longestID), as: UTF8.self))",
        ])
    case .answered(let call, let rpcID, let duration):
      logger.debug(
        "\(call) succeeded",
        metadata: [
          "milliseconds": .number(milliseconds(duration)), "rpc_id": "\(rpcID.prefix(longestID))",
        ])
    case .ended(let call, let error):
      var metadata: Logger.Metadata = [:]
      if let error {
        metadata["status"] = "\(error.status)"
        if let code = error.serviceCode { metadata["code"] = "\(code.rawValue)" }
        if let rpcID = error.rpcID { metadata["rpc_id"] = "\(rpcID.prefix(longestID))" }
      }
      logger.debug("\(call) \(error == nil ? "ended" : "failed")", metadata: metadata)
    }
  }

  private static func log(_ exchange: HTTPExchange, _ logger: Logger) {
    var metadata: Logger.Metadata = [
      "bytes": .number(exchange.bodyByteCount),
      "milliseconds": .number(milliseconds(exchange.duration)),
    ]
    if let status = exchange.status { metadata["http_status"] = .number(status) }
    if let failure = exchange.failure { metadata["failure"] = "\(failure)" }
    logger.debug("\(exchange.method.rawValue) \(exchange.url)", metadata: metadata)
  }

  private static func milliseconds(_ duration: Duration) -> Int64 {
    let (seconds, attoseconds) = duration.components
    return seconds * 1000 + attoseconds / 1_000_000_000_000_000
  }
}

extension Subscription.Position {
  fileprivate var words: String {
    switch self {
    case .latest: "latest"
    case .earliest: "earliest"
    case .after(let id): "after \(ReplayID(id).hex)"
    }
  }
}
