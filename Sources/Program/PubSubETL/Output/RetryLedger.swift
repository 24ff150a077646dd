internal import Bytes
import JSON
internal import Pipeline

/// A run's retries, with equal errors counted once, and its current waits. A value: time is an
/// argument, in milliseconds since 1970.
struct RetryLedger: Sendable {
  /// Attempts that failed in the same way.
  struct Entry: Sendable, Equatable {
    var place: RetryNotices.Place
    var code: String?
    /// The message of the first attempt.
    var message: String
    var count: Int
    var firstAt: Int64
    var lastAt: Int64
  }

  /// Something that fails, and has since `since`.
  struct Wait: Sendable, Equatable {
    var place: RetryNotices.Place
    var code: String?
    var message: String
    /// The service refuses it: somebody has to change something.
    var isRefusal: Bool
    var since: Int64
    var attempts: Int
    var nextAttemptAt: Int64
  }

  /// What retries are counted by in metrics.
  struct Cause: Hashable, Sendable {
    /// The kind of the place: `topic`.
    var place: String
    var code: String
  }

  /// The number of kinds of errors of which entries are kept.
  static let maxEntryCount = 50

  private(set) var entries: [Entry] = []
  /// Attempts that failed in other ways than those.
  private(set) var otherCount = 0
  /// All of them. Codes are the service's, so beyond `maxEntryCount` causes they are `other`.
  private(set) var causes: [Cause: Int] = [:]
  private var indices: [Key: Int] = [:]
  private var waits: [RetryNotices.Place: Wait] = [:]

  private struct Key: Hashable {
    var place: RetryNotices.Place
    var kind: String
  }

  /// What the run waits for, the oldest first.
  var waiting: [Wait] {
    self.waits.values.sorted { ($0.since, $0.place.text) < ($1.since, $1.place.text) }
  }

  mutating func failed(
    _ place: RetryNotices.Place, code: String?, _ message: String, isRefusal: Bool = false,
    delay: Duration, at now: Int64
  ) {
    self.count(place, code: code, message, at: now)
    self.count(place, code: code)
    var wait =
      self.waits[place]
      ?? Wait(
        place: place, code: code, message: message, isRefusal: isRefusal, since: now, attempts: 0,
        nextAttemptAt: now)
    (wait.code, wait.message, wait.isRefusal) = (code, message, isRefusal)
    wait.attempts += 1
    wait.nextAttemptAt = now + Int64(delay / .milliseconds(1))
    self.waits[place] = wait
  }

  /// - Returns: whether the run was waiting for it.
  mutating func worked(_ place: RetryNotices.Place) -> Bool {
    self.waits.removeValue(forKey: place) != nil
  }

  private mutating func count(_ place: RetryNotices.Place, code: String?) {
    let code = code.flatMap { Metric.isWord($0) ? $0 : nil } ?? Self.otherCode
    var cause = Cause(place: place.kind, code: code)
    if self.causes[cause] == nil, self.causes.count >= Self.maxEntryCount {
      cause.code = Self.otherCode
    }
    self.causes[cause, default: 0] += 1
  }

  /// For errors without a code, and those whose code is not counted.
  private static let otherCode = "other"

  private mutating func count(
    _ place: RetryNotices.Place, code: String?, _ message: String, at now: Int64
  ) {
    let key = Key(place: place, kind: RetryNotices.kind(message, of: place))
    if let index = self.indices[key] {
      self.entries[index].count += 1
      self.entries[index].lastAt = now
    } else if self.entries.count < Self.maxEntryCount {
      self.indices[key] = self.entries.count
      self.entries.append(
        Entry(
          place: place, code: code, message: message, count: 1, firstAt: now, lastAt: now))
    } else {
      self.otherCount += 1
    }
  }
}

extension RetryNotices.Place {
  /// `topic /data/AccountChangeEvent`
  var text: String {
    switch self {
    case .login: "login"
    case .schemas: "schemas"
    case .topic(let name): "topic \(name)"
    case .sink(let name): "sink \(name)"
    }
  }

  var kind: String {
    switch self {
    case .login: "login"
    case .schemas: "schemas"
    case .topic: "topic"
    case .sink: "sink"
    }
  }

  fileprivate var members: [JSONMember] {
    let name: String? =
      switch self {
      case .login, .schemas: nil
      case .topic(let name), .sink(let name): name
      }
    return [
      JSONMember("kind", .string(self.kind)), JSONMember("name", name.map { .string($0) } ?? nil),
    ]
  }

  fileprivate init?(json: JSONValue) {
    switch (json["kind"]?.string, json["name"]?.string) {
    case ("login", _): self = .login
    case ("schemas", _): self = .schemas
    case ("topic", let name?): self = .topic(name)
    case ("sink", let name?): self = .sink(name)
    default: return nil
    }
  }
}

extension RetryLedger.Entry {
  var json: JSONValue {
    JSONValue(
      .object(
        self.place.members + [
          JSONMember("code", self.code.map { .string($0) } ?? nil),
          JSONMember("message", .string(self.message)), JSONMember("count", .integer(self.count)),
          JSONMember("first_at", .string(UTCTime.timestamp(milliseconds: self.firstAt))),
          JSONMember("last_at", .string(UTCTime.timestamp(milliseconds: self.lastAt))),
        ]))
  }
}

extension RetryLedger.Wait {
  /// The entry as the file and `status` have it; times in milliseconds and, for people, as text.
  var json: JSONValue {
    JSONValue(
      .object(
        self.place.members + [
          JSONMember("refused", .boolean(self.isRefusal)),
          JSONMember("code", self.code.map { .string($0) } ?? nil),
          JSONMember("message", .string(self.message)),
          JSONMember("attempts", .integer(self.attempts)),
          JSONMember("since", .string(UTCTime.timestamp(milliseconds: self.since))),
          JSONMember("since_ms", .integer(self.since)),
          JSONMember(
            "next_attempt_at", .string(UTCTime.timestamp(milliseconds: self.nextAttemptAt))),
          JSONMember("next_attempt_at_ms", .integer(self.nextAttemptAt)),
        ]))
  }

  init?(json: JSONValue) {
    guard let place = RetryNotices.Place(json: json), let message = json["message"]?.string,
      let isRefusal = json["refused"]?.boolean, let since = json["since_ms"]?.calendarTime,
      let attempts = json["attempts"]?.integer, (0...Int64(Int32.max)).contains(attempts),
      let next = json["next_attempt_at_ms"]?.calendarTime
    else { return nil }
    self.init(
      place: place, code: json["code"]?.string, message: message, isRefusal: isRefusal,
      since: since, attempts: Int(attempts), nextAttemptAt: next)
  }
}
