import JSON

/// What `doctor` has found out about one thing.
struct Finding: Equatable {
  enum State: String {
    case ok
    /// A run can begin, but somebody should look.
    case attention
    /// A run would end with an error.
    case failed
    /// Could not be checked.
    case skipped
  }

  var state: State
  /// One word: `login`, `topic`.
  var area: String
  /// What was found; of a failure, also the remedy.
  var message: String
  /// The code with which a run would end; nil unless it failed.
  var exitCode: ExitCode?

  init(_ state: State, _ area: String, _ message: String) {
    (self.state, self.area, self.message) = (state, area, message)
  }

  init(_ area: String, _ failure: RunFailure) {
    let remedy = failure.exitCode == .unavailable ? Self.remedies[area] : nil
    self.init(.failed, area, failure.message + (remedy.map { "; \($0)" } ?? ""))
    self.exitCode = failure.exitCode
  }

  /// What to do about something that does not answer, by area.
  private static let remedies = [
    "login": "check login_url in source.org.auth, and that a firewall or proxy lets this machine "
      + "connect; status.salesforce.com shows outages",
    "service": "check source.org.endpoint, and that a firewall or proxy lets this machine connect; "
      + "status.salesforce.com shows outages",
    "sink": "start the database, or correct host and port in the sink's url",
  ]

  /// A finding of `check`: `rights: attention: …`, `warning: …`.
  ///
  /// - Parameter area: for lines that name none.
  init(line: String, _ area: String) {
    var rest = line[...]
    self.init(.ok, area, "")
    for (word, state) in [("warning", State.attention), ("attention", .attention), ("note", .ok)]
    where rest.hasPrefix("\(word): ") {
      self.state = state
      rest = rest.dropFirst(word.count + 2)
    }
    let parts = rest.split(separator: ": ", maxSplits: 1)
    if parts.count == 2, parts[0].allSatisfy({ $0.isLowercase }) {
      (self.area, rest) = (String(parts[0]), parts[1])
    }
    let states = [
      ("attention: ", State.attention), ("not known: ", .skipped), ("not checked: ", .skipped),
    ]
    if let (words, state) = states.first(where: { rest.hasPrefix($0.0) }) {
      self.state = state
      if state == .attention { rest = rest.dropFirst(words.count) }
    }
    // Such lines are about what a run can do without.
    self.message = rest + (self.state == .skipped ? "; a run can begin without it" : "")
  }

  /// `failed     topic       /data/X: …`
  var text: String {
    func padded(_ text: String, _ width: Int) -> String {
      text + String(repeating: " ", count: max(1, width - text.count))
    }
    return padded(self.state.rawValue, 11) + padded(self.area, 12) + self.message
  }

  var json: JSONValue {
    [
      "state": .string(self.state.rawValue), "check": .string(self.area),
      "message": .string(self.message),
      "exit_code": JSONValue(self.exitCode.map { .number("\($0.rawValue)") } ?? .null),
    ]
  }
}
