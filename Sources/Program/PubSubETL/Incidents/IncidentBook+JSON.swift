import JSON
internal import Pipeline

extension IncidentBook {
  var json: JSONValue {
    ["version": 1, "incidents": .array(self.incidents.map(\.json))]
  }

  /// - Returns: nil if it is not a book.
  init?(json: JSONValue) {
    guard json["version"]?.integer == 1, let entries = json["incidents"]?.array,
      entries.count <= Incident.Kind.allCases.count
    else { return nil }
    for entry in entries {
      guard let incident = Incident(json: entry), self[incident.kind] == nil else { return nil }
      self.incidents.append(incident)
    }
  }
}

extension Incident {
  var json: JSONValue {
    [
      "kind": .string(self.kind.rawValue), "reason": .string(self.finding.reason),
      "message": .string(self.finding.message),
      "exit_code": self.finding.exitCode.map { .integer($0) } ?? nil,
      "since_ms": .integer(self.since), "until_ms": self.until.map { .integer($0) } ?? nil,
      "count": .integer(self.count), "called": .boolean(self.isCalled),
      "attempts": .integer(self.attempts),
      "shown_reasons": .array(self.shownReasons.map { .string($0) }),
      "shown_ms": self.shownAt.map { .integer($0) } ?? nil,
    ]
  }

  /// - Returns: nil if it is not an incident.
  init?(json: JSONValue) {
    guard let kind = json["kind"]?.string.flatMap(Kind.init), let reason = json["reason"]?.string,
      let message = json["message"]?.string, let since = json["since_ms"]?.calendarTime,
      let count = json["count"]?.integer, let attempts = json["attempts"]?.integer,
      let isCalled = json["called"]?.boolean, let reasons = json["shown_reasons"]?.array,
      reasons.count <= IncidentBook.maxReasonCount
    else { return nil }
    self.init(
      kind: kind,
      finding: Finding(
        message: message, reason: reason,
        exitCode: json["exit_code"]?.integer.map { Int32(truncatingIfNeeded: $0) }),
      since: since, until: json["until_ms"]?.calendarTime,
      count: Int(min(max(1, count), Self.maxCount)), isCalled: isCalled,
      attempts: Int(min(max(0, attempts), Self.maxCount)),
      shownReasons: reasons.compactMap(\.string), shownAt: json["shown_ms"]?.calendarTime)
  }

  /// A number above it was not written by this program, and could overflow.
  private static let maxCount: Int64 = 1 << 40
}
