/// Which of the failures that are retried are worth a warning, when nobody watches.
///
/// A connection that has never worked is reported at its first failure, since a wrong host or port
/// will not recover by itself. One that has worked may fail briefly while a service restarts, and
/// is reported at its third failure in a row. After that it is reported only if it fails in another
/// way. A value without clock and output.
struct RetryNotices {
  enum Place: Hashable, Sendable {
    case login
    case schemas
    case topic(String)
    case sink(String)
  }

  private struct State {
    var failures = 0
    var hasWorked = false
    var shownKind: String?
  }

  private var states: [Place: State] = [:]
  /// Shown for some place since anything has worked: topics share a connection, and fail alike.
  private var shownKinds: Set<String> = []

  private static let tolerated = 2

  /// - Parameters:
  ///   - message: as it will be shown, or not.
  ///   - isRefusal: it will hardly recover by itself, though it has worked before.
  /// - Returns: how many attempts in a row have failed, and whether to warn of this one.
  mutating func failed(
    _ place: Place, _ message: String, isRefusal: Bool = false
  ) -> (attempts: Int, isShown: Bool) {
    var state = self.states[place] ?? State()
    state.failures += 1
    defer { self.states[place] = state }
    guard isRefusal || state.failures > (state.hasWorked ? Self.tolerated : 0) else {
      return (state.failures, false)
    }
    let kind = Self.kind(message, of: place)
    guard state.shownKind != kind else { return (state.failures, false) }
    state.shownKind = kind
    return (state.failures, self.shownKinds.insert(kind).inserted)
  }

  /// - Returns: how many attempts had failed before, if somebody was warned.
  mutating func worked(_ place: Place) -> Int? {
    let state = self.states[place]
    self.states[place] = State(hasWorked: true)
    self.shownKinds.removeAll()
    guard let state, state.shownKind != nil else { return nil }
    return state.failures
  }

  /// The words of a message, without what differs from attempt to attempt and from topic to topic.
  static func kind(_ message: String, of place: Place) -> String {
    var text = message[...]
    if case .topic(let name) = place, let range = text.firstRange(of: name) {
      text = text[range.upperBound...]
    }
    if let id = text.firstRange(of: "rpcId") { text = text[..<id.lowerBound] }
    return String(text.filter(\.isLetter))
  }
}
