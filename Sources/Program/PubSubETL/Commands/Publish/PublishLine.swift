import JSON
import Pipeline
import PubSubAPI

/// The outcome of an input line.
enum PublishOutcome: Sendable, Equatable {
  case published(replayID: [UInt8])
  /// Not published, and final: the line is invalid or the service refused the event.
  case refused(String)
  /// Sent but not answered, so it may or may not be published.
  case unknown(String)
  /// Certainly not published.
  case notSent(String)
  /// A dry run would have sent it.
  case valid(byteCount: Int)
}

/// An input line in progress.
struct PublishLine: Sendable {
  var number: Int
  /// Nil until the line has been parsed.
  var id: String?
  /// Kept until the outcome is known, in case the schema changes.
  var text: [UInt8] = []
  /// The line is one JSON object.
  var isObject = false
  var event: EventToPublish?
  var outcome: PublishOutcome?
  /// The service's refusal of the event, if another schema may help.
  var refusal: String?
  /// The line was sent in an earlier request that was not answered.
  var mayBePublished = false
  /// The line was sent again after that.
  var isRepeated = false
  /// How often it was encoded.
  var encodings = 0

  /// The outcome of the line if nothing more is tried.
  func refused(_ reason: String) -> PublishOutcome {
    self.mayBePublished
      ? .unknown("an earlier request had no answer; the repetition was refused: \(reason)")
      : .refused(reason)
  }

  /// The maximum size of a reason, which may quote the input or the service at length.
  private static let maxReasonBytes = 1000

  /// A line of the output.
  func json(hiding secrets: SecretMask) -> JSONValue {
    var members = [
      JSONMember("line", .integer(self.number)),
      JSONMember("id", self.id.map { .string($0) } ?? nil),
    ]
    func add(_ status: String, _ name: String, _ value: JSONValue) {
      members.append(JSONMember("status", .string(status)))
      members.append(JSONMember(name, value))
    }
    func add(_ status: String, _ reason: String) {
      // Truncated after secrets are removed, because half a secret would not be recognized.
      let text = PrintableText.beginning(of: reason, hiding: secrets).text
      add(status, "error", .string(text.bounded(byteCount: Self.maxReasonBytes)))
    }
    switch self.outcome {
    case .published(let replayID): add("published", "replay_id", .string(ReplayID(replayID).hex))
    case .refused(let reason): add("refused", reason)
    case .unknown(let reason): add("unknown", reason)
    case .notSent(let reason): add("not_sent", reason)
    case .valid(let byteCount): add("valid", "bytes", .integer(byteCount))
    case nil: preconditionFailure("line \(self.number) has no outcome yet")
    }
    if self.isRepeated { members.append(JSONMember("repeated", true)) }
    return JSONValue(.object(members))
  }
}

/// Lines of one request, in the order of the input, including invalid lines between them.
struct PublishBatch: Sendable {
  var lines: [PublishLine] = []
  /// When the request may be sent.
  var due: ContinuousClock.Instant?
  /// The request has been sent and is not answered.
  var isOutstanding = false

  /// The places of the lines to be sent.
  var open: [Int] { self.lines.indices.filter { self.lines[$0].outcome == nil } }
  var isSettled: Bool { self.lines.allSatisfy { $0.outcome != nil } }

  /// The events of the lines to be sent.
  var events: [EventToPublish] {
    self.open.map { index in
      guard let event = self.lines[index].event else {
        preconditionFailure("line \(self.lines[index].number) has neither event nor outcome")
      }
      return event
    }
  }

  /// Call this when the request has been answered, or will not be.
  mutating func answered() {
    self.isOutstanding = false
    for index in self.open where self.lines[index].mayBePublished {
      self.lines[index].isRepeated = true
    }
  }

  mutating func settle(_ outcome: (PublishLine) -> PublishOutcome) {
    for index in self.open { self.settle(index, outcome(self.lines[index])) }
  }

  mutating func settle(_ index: Int, _ outcome: PublishOutcome) {
    self.lines[index].outcome = outcome
    self.lines[index].text = []
    self.lines[index].event = nil
  }
}
