/// The fake org: what it has published and whom it lets in. Confined to the event loop once the server runs.
final class Org {
  let configuration: SimulatorConfiguration
  let clock = SimulatorClock()
  let tokens: TokenRegistry
  let log: EventLog
  let publisher: EventPublisher
  var faults = FaultQueue()
  var deliveries = DeliveryCounts()
  /// Tells the connections.
  var onPublish: () -> Void = {}
  /// Something cannot go on, such as writing the truth.
  private let onFailure: (any Error) -> Void
  private var random = RandomStream(seed: UInt64.random(in: 0 ... .max))

  /// Makes the events that are there from the start.
  init(
    configuration: SimulatorConfiguration, epoch: Int64, onFailure: @escaping (any Error) -> Void
  ) throws {
    self.onFailure = onFailure
    self.configuration = configuration
    self.tokens = TokenRegistry(
      seed: configuration.seed, clientID: configuration.clientID,
      clientSecret: configuration.clientSecret, lifetime: configuration.tokenLifetime)
    let topics = try Self.topics(named: configuration.topics)
    let start = epoch - configuration.span
    self.log = try EventLog(
      topics: topics, seed: configuration.seed, createdAt: start,
      directory: configuration.stateDirectory ?? "/tmp")
    self.publisher = EventPublisher(
      topics: topics, log: self.log, seed: configuration.seed, mix: configuration.mix,
      truth: try configuration.truthPath.map(TruthWriter.init(path:)))
    let count = configuration.events
    for index in 0..<count {
      self.publisher.useNewSchemas(share: Self.newSchemaShare(index, of: count))
      let passed = Double(configuration.span) * Double(index + 1) / Double(count)
      try self.publisher.publish(at: start + Int64(passed))
    }
    try self.publisher.flush()
  }

  /// The schema changes in mid-stream, and for a while both versions come interleaved.
  private static func newSchemaShare(_ index: Int, of count: Int) -> Double {
    switch Double(index) / Double(count) {
    case ..<0.45: 0
    case ..<0.55: 0.5
    default: 1
    }
  }

  private static func topics(named names: [String]) throws -> [Topic] {
    guard !names.isEmpty else { return Topic.all }
    return try names.map { name in
      guard let topic = Topic.all.first(where: { $0.name == name }) else {
        let known = Topic.all.map(\.name).joined(separator: ", ")
        throw SimulatorError(.configuration, "unknown topic '\(name)'; known: \(known)")
      }
      return topic
    }
  }

  func newRPCID() -> String {
    String(decoding: RecordID.uuid(&self.random), as: UTF8.self)
  }

  func newEventID() -> String { self.newRPCID() }

  /// Publishes generated events now.
  func publish(_ count: Int, topic: String?) throws {
    for _ in 0..<count { try self.publisher.publish(at: self.clock.now, topic: topic) }
    self.eventsWerePublished()
  }

  /// After events have been published: the truth is on disk before a client can see them.
  func eventsWerePublished() {
    do {
      try self.publisher.flush()
    } catch {
      // a truth that lacks events would prove the exporter wrong
      self.onFailure(error)
    }
    self.onPublish()
  }
}
