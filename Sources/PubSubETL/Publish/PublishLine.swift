import JSON
import Pipeline
import PubSubAPI

/// What became of a line of the input.
enum PublishOutcome: Sendable, Equatable {
  case published(replayID: [UInt8])
  /// Not published, and not to be: the line is wrong, or the service said no.
  case refused(String)
  /// Sent, and not answered: published or not.
  case unknown(String)
  /// Certainly not published.
  case notSent(String)
  /// A dry run would have sent it.
  case valid(byteCount: Int)
}

/// A line of the input on its way.
struct PublishLine: Sendable {
  var number: Int
  /// Nil as long as the line could not be read.
  var id: String?
  /// Kept until the outcome is known, in case the schema changes.
  var text: [UInt8] = []
  /// It is one JSON object.
  var isObject = false
  var event: EventToPublish?
  var outcome: PublishOutcome?
  /// What the service said when it refused the event, if another schema may help.
  var refusal: String?
  /// It was sent by an earlier request without an answer.
  var mayBePublished = false
  /// It was sent again after that.
  var isRepeated = false
  /// How often it was encoded.
  var encodings = 0

  /// What becomes of the line when nothing more is to be tried.
  func refused(_ reason: String) -> PublishOutcome {
    self.mayBePublished
      ? .unknown("an earlier request had no answer; the repetition was refused: \(reason)")
      : .refused(reason)
  }

  /// Bytes of a reason, which may quote the input or the service at length.
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
      // Cut when the secrets are out: half a secret would not be recognized.
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

/// Lines that go out in one request, in the order of the input; those that are wrong stand between
/// them.
struct PublishBatch: Sendable {
  var lines: [PublishLine] = []
  /// When it may go out.
  var due: ContinuousClock.Instant?
  /// It has been sent and is not answered.
  var isOutstanding = false

  /// Places of the lines that are to be sent.
  var open: [Int] { self.lines.indices.filter { self.lines[$0].outcome == nil } }
  var isSettled: Bool { self.lines.allSatisfy { $0.outcome != nil } }

  /// The events of the lines that are to be sent.
  var events: [EventToPublish] {
    self.open.map { index in
      guard let event = self.lines[index].event else {
        preconditionFailure("line \(self.lines[index].number) has neither event nor outcome")
      }
      return event
    }
  }

  /// The request has gone out, and its answer is there, or will not come.
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
