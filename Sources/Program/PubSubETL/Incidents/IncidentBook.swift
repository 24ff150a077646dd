/// The incidents of a pipeline, and the state of their notifications. A value: time is an argument, in milliseconds
/// since 1970.
///
/// Seen to begin → called → seen to be over → called → gone. An incident that begins again before its end
/// was sent is the same one. So there is at most one of each kind.
struct IncidentBook: Equatable, Sendable {
  /// The order of calls.
  var incidents: [Incident] = []

  /// What a run under cron prints about a finding.
  enum OnFinding: Equatable {
    /// It is new, or has another reason than before.
    case show
    /// It was shown, but not within a day.
    case remind(since: Int64, count: Int)
    case beSilent
  }

  /// The time between two reminders.
  static let reminderInterval: Int64 = 86_400_000
  /// Reasons that are remembered; a pipeline that fails in more ways is shown more often.
  static let maxReasonCount = 20

  subscript(kind: Incident.Kind) -> Incident? { self.incidents.first { $0.kind == kind } }

  /// It is wrong.
  ///
  /// - Parameters:
  ///   - counts: whether it happened once more, or merely lasts.
  ///   - began: when it was first there, and how often, if that is known only now.
  mutating func saw(
    _ kind: Incident.Kind, _ finding: Incident.Finding, at now: Int64, counts: Bool = true,
    began: (at: Int64, count: Int)? = nil
  ) -> OnFinding {
    var new = Incident(kind: kind, finding: finding, since: began?.at ?? now)
    new.count = began?.count ?? 1
    guard let index = self.incidents.firstIndex(where: { $0.kind == kind }) else {
      self.incidents.append(new)
      return self.show(self.incidents.count - 1, at: now)
    }
    if self.incidents[index].until != nil {
      if self.incidents[index].isCalled, self.incidents[index].attempts > 0 {
        // Its end may have been delivered, so this is another incident.
        self.incidents[index] = new
        return self.show(index, at: now)
      }
      self.incidents[index].until = nil
      self.incidents[index].shownAt = nil
    }
    self.incidents[index].finding = finding
    if counts { self.incidents[index].count += 1 }
    return self.show(index, at: now)
  }

  private mutating func show(_ index: Int, at now: Int64) -> OnFinding {
    let incident = self.incidents[index]
    // `login` may be an outage, or a refusal that needs somebody.
    let reason = "\(incident.finding.reason) \(incident.finding.exitCode ?? 0)"
    let isKnown = incident.shownReasons.contains(reason)
    if let shownAt = incident.shownAt, isKnown {
      // A clock that went back does not silence it for longer.
      guard abs(now - shownAt) >= Self.reminderInterval else { return .beSilent }
      self.incidents[index].shownAt = now
      return .remind(since: incident.since, count: incident.count)
    }
    self.incidents[index].shownAt = now
    if !isKnown, incident.shownReasons.count < Self.maxReasonCount {
      self.incidents[index].shownReasons.append(reason)
    }
    return .show
  }

  /// It is right.
  ///
  /// - Returns: the incident that is over with this; nil if there was none.
  mutating func sawOver(_ kind: Incident.Kind, at now: Int64) -> Incident? {
    guard let index = self.incidents.firstIndex(where: { $0.kind == kind && $0.until == nil })
    else { return nil }
    self.incidents[index].until = now
    return self.incidents[index]
  }

  // MARK: Calls

  /// The next call; nil if there is none.
  var due: Notice.Event? {
    for incident in self.incidents {
      if !incident.isCalled { return .begin(incident.kind) }
      if incident.until != nil { return .end(incident.kind) }
    }
    return nil
  }

  /// A call begins; this has to be stored before. If the process is killed meanwhile, it is repeated.
  ///
  /// - Returns: the incident with the number of this attempt.
  mutating func calls(_ event: Notice.Event) -> Incident {
    let index = self.index(event)
    self.incidents[index].attempts += 1
    return self.incidents[index]
  }

  /// The notification was delivered.
  mutating func called(_ event: Notice.Event) {
    let index = self.index(event)
    switch event {
    case .begin:
      self.incidents[index].isCalled = true
      self.incidents[index].attempts = 0
    case .end: self.incidents.remove(at: index)
    }
  }

  private func index(_ event: Notice.Event) -> Int {
    guard let index = self.incidents.firstIndex(where: { $0.kind == event.kind }) else {
      preconditionFailure("no incident \(event.kind.rawValue) to call about")
    }
    return index
  }

  /// Without notifications, incidents that have ended are removed.
  mutating func forgetEnded() { self.incidents.removeAll { $0.until != nil } }
}
