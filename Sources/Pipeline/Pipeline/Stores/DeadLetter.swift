package import JSON

/// An event that could not be decoded or written, kept so that it is not lost.
package struct DeadLetter: Sendable, Equatable {
  /// The sink or database that refused a decoded event.
  package struct Refusal: Sendable, Equatable {
    /// The sink's name.
    package var sink: String
    /// The database's column; nil if it is unknown which one refused the row.
    package var column: String?
    /// Five characters; nil if the value could not even be sent.
    package var sqlState: String?
    /// Further sinks whose own stages refused the event.
    package var otherSinks: [String] = []

    /// Every sink that lacks the event.
    package var sinks: [String] { [self.sink] + self.otherSinks }

    package init(sink: String, column: String? = nil, sqlState: String? = nil) {
      self.sink = sink
      self.column = column
      self.sqlState = sqlState
    }
  }

  package var topic: String
  package var replayID: ReplayID
  package var eventID: String
  package var schemaID: String
  /// The event's payload as received.
  package var payload: [UInt8]
  /// The reason, without values of the payload.
  package var reason: String
  /// The path in the schema: `Account.BillingAddress.City`; nil if unknown.
  package var fieldPath: String?
  /// The byte offset in the payload; nil if unknown.
  package var byteOffset: Int?
  /// Nil for an event that no sink has seen.
  package var refusal: Refusal?
  /// The event could be decoded, and a stage of the pipeline refused it.
  package var isUnprocessable: Bool
  package var epoch: Int
  package var ordinal: Int64

  package init(
    topic: String, replayID: ReplayID, eventID: String, schemaID: String, payload: [UInt8],
    reason: String, fieldPath: String? = nil, byteOffset: Int? = nil, refusal: Refusal? = nil,
    isUnprocessable: Bool = false, epoch: Int, ordinal: Int64
  ) {
    self.topic = topic
    self.replayID = replayID
    self.eventID = eventID
    self.schemaID = schemaID
    self.payload = payload
    self.reason = reason
    self.fieldPath = fieldPath
    self.byteOffset = byteOffset
    self.refusal = refusal
    self.isUnprocessable = isUnprocessable
    self.epoch = epoch
    self.ordinal = ordinal
  }

  /// The kind of letter, as a stable word: `undecodable`, `unprocessable` or `refused`.
  package var kind: String {
    if self.refusal != nil { return "refused" }
    return self.isUnprocessable ? Self.unprocessable : "undecodable"
  }

  /// The kind of events that a stage of the pipeline refuses.
  package static let unprocessable = "unprocessable"
}

/// Stores dead letters. Takes part in commits like a `CheckpointedSink`: the result of `flush` is
/// stored in the checkpoint (`CheckpointDocument.deadLetters`), then `committed` is called.
package protocol DeadLetterStore: AnyObject {
  /// Letters taken since the start of the run.
  var count: Int { get }

  func recover(from state: JSONValue?) throws

  /// Takes a letter. Not durable yet.
  func append(_ letter: DeadLetter) throws

  func flush(finish: Bool) throws -> JSONValue

  func committed() throws -> Bool

  var isDue: Bool { get }

  /// Output bytes taken since the last `flush`, before compression.
  var pendingByteCount: Int { get }

  /// The letters of this run and of earlier ones that wait.
  func waiting() -> WaitingLetters
}

extension DeadLetterStore {
  package func waiting() -> WaitingLetters { WaitingLetters() }
}

/// The dead letters that were neither retried nor dropped.
package struct WaitingLetters: Sendable, Equatable {
  private struct Group: Hashable {
    var topic: String
    /// The sink that refused the events; nil if no sink has them.
    var sink: String?
  }

  /// By the time when they were written, in milliseconds since 1970.
  private var counts: [Group: [Int64: Int]] = [:]
  package private(set) var count = 0

  package init() {}

  package mutating func add(_ letter: DeadLetter, at time: Int64) {
    for group in Self.groups(of: letter) { self.counts[group, default: [:]][time, default: 0] += 1 }
    self.count += 1
  }

  package mutating func remove(_ letter: DeadLetter, at time: Int64) {
    for group in Self.groups(of: letter) {
      guard let count = self.counts[group]?[time] else { continue }
      self.counts[group]?[time] = count > 1 ? count - 1 : nil
    }
    self.count -= 1
  }

  private static func groups(of letter: DeadLetter) -> [Group] {
    guard let refusal = letter.refusal else { return [Group(topic: letter.topic)] }
    return refusal.sinks.map { Group(topic: letter.topic, sink: $0) }
  }

  /// The number of letters whose events a sink lacks.
  ///
  /// - Parameter start: counts letters written since then.
  package func count(of topics: Set<String>, lackedBy sink: String, since start: Int64?) -> Int {
    topics.flatMap { [Group(topic: $0), Group(topic: $0, sink: sink)] }.reduce(0) { count, group in
      (self.counts[group] ?? [:]).reduce(count) { $0 + ($1.key >= start ?? .min ? $1.value : 0) }
    }
  }
}
