internal import SimulatedOrg

/// The schedule of a rehearsal: publications and incidents, generated from a seed.
struct RehearsalPlan: Equatable {
  enum Incident: String, CaseIterable {
    /// Nothing is published.
    case silence
    /// Subscriptions, and every other time logins too, are refused.
    case outage
    /// The access token stops working while a run uses it.
    case tokenExpiry = "token expiry"
    /// cron starts a second run at the same time.
    case overlap = "overlapping runs"
    /// The database ends all sessions, as when it is restarted.
    case databaseRestart = "database restart"
  }

  struct Occurrence: Equatable {
    var incident: Incident
    /// Milliseconds since the beginning.
    var start: Int64
    /// `start` for what happens to the next run.
    var end: Int64
  }

  struct Publication: Equatable {
    var time: Int64
    var count: Int
  }

  static let minute: Int64 = 60_000
  static let hour = 60 * Self.minute
  static let day = 24 * Self.hour

  private(set) var occurrences: [Occurrence] = []
  private(set) var publications: [Publication] = []

  /// - Parameters:
  ///   - every: milliseconds between runs.
  ///   - hasDatabase: whether it can be restarted.
  init(days: Int, every: Int64, seed: UInt64, eventsPerDay: Int, hasDatabase: Bool) {
    let span = Int64(days) * Self.day
    var random = RandomStream(seed: RandomStream.mix(seed &+ 4711))
    func between(_ low: Int64, _ high: Int64) -> Int64 {
      low + Int64(random.below(Int(max(1, high - low))))
    }
    func add(_ incident: Incident, perDays: Int, lasting: (Int) -> Int64) {
      for index in 0..<max(1, days / perDays) {
        let duration = lasting(index)
        // The last tenth is healthy, so that the last runs can make up for everything.
        let start = between(span / 20, max(span / 20 + 1, span * 9 / 10 - duration))
        self.occurrences.append(
          Occurrence(incident: incident, start: start, end: start + duration))
      }
    }
    // The first silence of a long rehearsal is longer than the service keeps events (72 h).
    add(.silence, perDays: 7) { index in
      index == 0 && days >= 7
        ? 80 * Self.hour : between(min(6 * Self.hour, span / 8), min(30 * Self.hour, span / 4))
    }
    add(.outage, perDays: 5) { _ in between(10 * Self.minute, min(10 * Self.hour, span / 8)) }
    add(.tokenExpiry, perDays: 3) { _ in 0 }
    add(.overlap, perDays: 3) { _ in 0 }
    if hasDatabase { add(.databaseRestart, perDays: 5) { _ in 0 } }
    self.occurrences.sort { ($0.start, $0.end) < ($1.start, $1.end) }
    self.publish(eventsPerDay: eventsPerDay, from: every + 10 * Self.minute, to: span, &random)
  }

  /// A few events at a time, at random times.
  private mutating func publish(
    eventsPerDay: Int, from: Int64, to: Int64, _ random: inout RandomStream
  ) {
    guard eventsPerDay > 0 else { return }
    let most = 9
    let mean = Self.day * Int64((most + 1) / 2) / Int64(eventsPerDay)
    let silences = self.occurrences.filter { $0.incident == .silence }
    var time = from
    while time < to {
      let count = 1 + random.below(most)
      if !silences.contains(where: { ($0.start..<$0.end).contains(time) }) {
        self.publications.append(Publication(time: time, count: count))
      }
      time += 1 + Int64(random.below(Int(max(1, 2 * mean))))
    }
  }
}
