/// The simulated org: its published events and its logins. Confined to the event loop once the
/// server runs.
package final class Org {
  package let configuration: SimulatedOrgConfiguration
  package let clock = SimulatorClock()
  package let tokens: TokenRegistry
  package let refreshTokens: RefreshTokenRegistry
  package let log: EventLog
  package let publisher: EventPublisher
  /// Nil for an org without REST.
  package let dataAPI: DataAPI?
  package var faults = FaultQueue()
  /// Not kept over a restart.
  package var managed = ManagedSubscriptions()
  /// Takes effect at once; a restart begins with the value of the options.
  package var classification = DataClassification()
  private var fields: FieldAdministration
  package private(set) var deliveries = DeliveryCounts()
  /// Calls, by method.
  package var calls: [String: Int] = [:]
  private var allowance = PeriodicAllowance(period: 86_400_000)
  /// By topic, the indices of events whose payload is delivered as something that is not Avro.
  package var damagedEvents: [String: Set<Int>] = [:]
  /// Subscriptions that are open.
  package var openStreams = 0 {
    didSet { self.mostOpenStreams = max(self.mostOpenStreams, self.openStreams) }
  }
  /// The most subscriptions that were open at once.
  package private(set) var mostOpenStreams = 0
  /// Tells the connections.
  package var onPublish: () -> Void = {}
  /// Receives fatal errors, such as a failure to write the truth.
  private let onFailure: (any Error) -> Void
  /// Live events published so far, those before a restart included.
  package private(set) var livePublished = 0
  private var journal: Journal?
  private var random = RandomStream(seed: UInt64.random(in: 0 ... .max))

  /// Makes the events that exist from the start.
  package init(
    configuration: SimulatedOrgConfiguration, epoch: Int64, onFailure: @escaping (any Error) -> Void
  ) throws {
    self.onFailure = onFailure
    self.configuration = configuration
    self.tokens = TokenRegistry(
      seed: configuration.seed, clientID: configuration.clientID,
      clientSecret: configuration.clientSecret, lifetime: configuration.tokenLifetime)
    self.refreshTokens = RefreshTokenRegistry(
      token: configuration.refreshToken, isRotating: configuration.rotatesRefreshTokens)
    if let path = configuration.clockPath { try self.clock.share(in: path) }
    self.fields = FieldAdministration(hidden: Set(configuration.hiddenFields))
    let topics = try Self.topics(named: configuration.topics, of: configuration.data)
    let start = epoch - configuration.span
    self.log = try EventLog(
      topics: topics, seed: configuration.seed, createdAt: start,
      directory: configuration.stateDirectory ?? "/tmp")
    self.publisher = EventPublisher(
      topics: topics, log: self.log, seed: configuration.seed, mix: configuration.mix,
      truth: try configuration.truthPath.map(TruthWriter.init(path:)),
      data: configuration.data, existing: configuration.recordCount)
    self.dataAPI = try Self.dataAPI(configuration, self.publisher, before: start)
    for text in configuration.classifiedFields {
      self.classification.set(try DataClassification.Entry(parsing: text))
    }
    let count = configuration.events
    for index in 0..<count {
      self.publisher.useNewSchemas(share: Self.newSchemaShare(index, of: count))
      let passed = Double(configuration.span) * Double(index + 1) / Double(count)
      try self.publisher.publish(at: start + Int64(passed))
    }
    if let directory = configuration.stateDirectory {
      let journal = try Journal(
        path: "\(directory)/journal", fingerprint: Self.fingerprint(configuration, epoch))
      for entry in journal.entries { try self.apply(entry) }
      self.journal = journal
    }
    try self.publisher.flush()
  }

  private static func dataAPI(
    _ configuration: SimulatedOrgConfiguration, _ publisher: EventPublisher, before start: Int64
  ) throws -> DataAPI? {
    guard let existing = configuration.recordCount else { return nil }
    let store = RecordStore(
      readers: publisher.generator.readers, delay: configuration.visibilityDelay,
      unsharedShare: configuration.unshared, hiddenFields: Set(configuration.hiddenFields),
      hasFormulas: configuration.hasFormulas,
      tracked: configuration.tracksFields ? "Opportunity" : nil)
    store.maxQueryFields = configuration.maxQueryFields
    publisher.showRecords(
      in: store, existing: existing, before: start, now: start + configuration.span)
    let jobs = try QueryJobs(
      store: store, directory: configuration.stateDirectory ?? "/tmp", seed: configuration.seed,
      queueTime: configuration.bulkQueueTime, rowsPerSecond: configuration.bulkRate)
    let api = DataAPI(store: store, jobs: jobs, callLimit: configuration.callLimit)
    api.userPermissions.formUnion(configuration.userPermissions)
    return api
  }

  /// The settings that the first events depend on.
  private static func fingerprint(
    _ configuration: SimulatedOrgConfiguration, _ epoch: Int64
  ) -> String {
    let topics = configuration.topics.joined(separator: ",")
    // Members that journals of earlier versions lack are written only where they count.
    let mix = Mirror(reflecting: configuration.mix).children.filter { $0.label != "silent" }
      .map { "\($0.value)" }
    let records = configuration.recordCount.map {
      " existing=\($0) silent=\(configuration.mix.silent)"
    }
    let data = configuration.data == .random ? "" : " data=\(configuration.data.rawValue)"
    return "pubsub-simulator 1 seed=\(configuration.seed) events=\(configuration.events) "
      + "epoch=\(epoch) span=\(configuration.span) topics=\(topics) "
      + "mix=\(mix.joined(separator: ","))\(records ?? "")\(data)"
  }

  /// Repeats what happened before a restart.
  private func apply(_ entry: Journal.Entry) throws {
    switch entry {
    case .publish(let time, let count, let topic, let isLive):
      for _ in 0..<count { try self.publisher.publish(at: time, topic: topic) }
      if isLive { self.livePublished += count }
    case .received(let time, let topic, let id, let payload):
      guard let member = self.log.topics[topic]?.topic.members.first,
        let schema = self.publisher.currentSchema(of: member)
      else { throw SimulatorError(.configuration, "the journal names an unknown topic, \(topic)") }
      let image = try PublishedPayload.image(payload, model: member, schema: schema)
      _ = try self.publisher.publish(
        image, payload: payload, id: Array(id.utf8), topic: topic, at: time)
    case .keepalive(let time, let topic): _ = self.log.keepalivePosition(topic, at: time)
    case .newSchemas: self.publisher.useNewSchemas(share: 1)
    case .fields(let time, let change):
      try self.fields.perform(change, with: self.publisher, log: self.log, at: time)
    case .clock(let milliseconds): self.clock.advance(byMilliseconds: milliseconds)
    }
  }

  private func record(_ entry: Journal.Entry) throws {
    try self.journal?.append(entry)
  }

  /// The schema changes in mid-stream, and for a while both versions come interleaved.
  private static func newSchemaShare(_ index: Int, of count: Int) -> Double {
    switch Double(index) / Double(count) {
    case ..<0.45: 0
    case ..<0.55: 0.5
    default: 1
    }
  }

  private static func topics(named names: [String], of data: OrgData) throws -> [Topic] {
    guard !names.isEmpty else { return Topic.usual(data) }
    return try names.map { name in
      guard let topic = Topic.named(name, of: data) else {
        let known = Topic.all.map(\.name).joined(separator: ", ")
        throw SimulatorError(.configuration, "unknown topic '\(name)'; known: \(known)")
      }
      return topic
    }
  }

  package func newRPCID() -> String {
    String(decoding: RecordID.uuid(&self.random), as: UTF8.self)
  }

  package func newEventID() -> String { self.newRPCID() }

  /// Publishes generated events now.
  package func publish(_ count: Int, topic: String?, isLive: Bool = false) throws {
    let now = self.clock.now
    try self.record(.publish(time: now, count: count, topic: topic, isLive: isLive))
    for _ in 0..<count { try self.publisher.publish(at: now, topic: topic) }
    if isLive { self.livePublished += count }
    self.eventsWerePublished()
  }

  /// Publishes what a client sent; `image` is what `payload` holds. The caller says when all are published.
  package func publish(
    _ image: EventImage, payload: [UInt8], id: String, topic: String
  ) throws -> UInt64 {
    let now = self.clock.now
    try self.record(.received(time: now, topic: topic, id: id, payload: payload))
    return try self.publisher.publish(
      image, payload: payload, id: Array(id.utf8), topic: topic, at: now)
  }

  /// The ID for an empty response.
  package func keepalivePosition(_ topic: String) -> UInt64 {
    let now = self.clock.now
    do {
      try self.record(.keepalive(time: now, topic: topic))
    } catch {
      self.onFailure(error)
    }
    return self.log.keepalivePosition(topic, at: now)
  }

  /// Events that may still be delivered in these 24 hours.
  package var deliveriesLeft: Int {
    max(0, self.configuration.deliveryLimit - self.allowance.used(at: self.clock.now))
  }

  /// Events have been handed over to a client.
  package func delivered(_ count: Int, client: String, topic: String) {
    self.deliveries.add(client: client, topic: topic, events: count)
    self.allowance.use(count, at: self.clock.now)
  }

  /// Whether another subscription may be opened.
  package var mayOpenStream: Bool {
    self.openStreams < self.configuration.streamLimit ?? .max
  }

  /// `GET /limits`, which answers without the objects of REST as well.
  package var limits: String {
    let deliveries =
      "\"DailyDeliveredPlatformEvents\":{\"Max\":\(self.configuration.deliveryLimit),"
      + "\"Remaining\":\(self.deliveriesLeft)}"
    return "{\(deliveries)\(self.dataAPI.map { ",\($0.limits)" } ?? "")}"
  }

  /// Advances the records that REST shows, and Bulk jobs.
  package func advanceDataAPI() throws {
    let now = self.clock.now
    self.dataAPI?.store.advance(to: now)
    try self.dataAPI?.jobs.advance(to: now)
  }

  /// What the org holds now, for comparison with a copy; see `StateWriter`.
  package func writeState(to path: String) throws {
    try self.publisher.writeState(to: path)
  }

  /// From now on, new events use the newest versions of the schemas.
  package func changeSchemas() throws {
    try self.record(.newSchemas)
    self.publisher.useNewSchemas(share: 1)
  }

  /// Does what an admin does in Setup.
  package func change(_ change: FieldChange) throws {
    let now = self.clock.now
    try self.fields.perform(change, with: self.publisher, log: self.log, at: now)
    try self.record(.fields(time: now, change))
    self.eventsWerePublished()
  }

  package func advanceClock(byMilliseconds milliseconds: Int64) throws {
    try self.record(.clock(milliseconds: milliseconds))
    self.clock.advance(byMilliseconds: milliseconds)
  }

  /// After events have been published: the truth is on disk before a client can see them.
  package func eventsWerePublished() {
    do {
      try self.publisher.flush()
    } catch {
      // a truth that lacks events would prove the exporter wrong
      self.onFailure(error)
    }
    self.onPublish()
  }
}
