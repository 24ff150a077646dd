internal import JSON

/// The observations of a rehearsal.
package struct RehearsalAccount: Sendable {
  /// What runs did that an incident met.
  struct Met: Sendable {
    var occurrences = 0
    var runs = 0
    var exitCodes: [Int32: Int] = [:]
    /// What was said, each text once, without numbers that differ from run to run.
    var said: [String] = []
  }

  /// Texts that are kept of an incident.
  private static let mostTexts = 3

  var pipeline: String
  var days: Int
  var every: String
  var seed: UInt64
  var incidents: [RehearsalPlan.Incident: Met] = [:]
  /// Runs that no incident met.
  var calm = Met()
  var runs = 0
  var published = 0
  var delivered = 0
  var exported = 0
  var redelivered = 0
  var rowsLeftOut = 0
  /// Rows of events that runs say they wrote, by sink.
  var rows: [String: Int] = [:]
  var logins = 0
  var apiCalls = 0
  /// Milliseconds between the ends of two successful runs, at most.
  var longestGap: Int64 = 0
  var lastExitCode: Int32 = 0
  /// By sink, in words of the account.
  var comparisons: [(sink: String, comparison: OutputComparison)] = []
  var notes: [String] = []
  /// How often the clock skipped a wait.
  var skips = 0

  /// The last run succeeded, and the output is the truth.
  package var isGood: Bool {
    self.lastExitCode == 0 && self.comparisons.allSatisfy(\.comparison.isEqual)
  }

  mutating func add(_ result: ExporterRun.Result, met incidents: [RehearsalPlan.Incident]) {
    self.runs += 1
    self.delivered += result.delivered
    self.exported += result.exported
    self.redelivered += result.redelivered
    self.rowsLeftOut += result.rowsLeftOut
    self.rows.merge(result.rows) { $0 + $1 }
    self.lastExitCode = result.exitCode
    if incidents.isEmpty { Self.add(result, to: &self.calm) }
    for incident in incidents {
      Self.add(result, to: &self.incidents[incident, default: Met()])
    }
  }

  private static func add(_ result: ExporterRun.Result, to met: inout Met) {
    met.runs += 1
    met.exitCodes[result.exitCode, default: 0] += 1
    guard let line = result.errors.last, met.said.count < Self.mostTexts else { return }
    let text = Self.withoutTime(line)
    let shape = Self.shape(text)
    if !met.said.contains(where: { Self.shape($0) == shape }) { met.said.append(text) }
  }

  /// Log lines begin with their time.
  static func withoutTime(_ line: String) -> String {
    guard let space = line.firstIndex(of: " "), line.first?.isNumber == true,
      line[..<space].hasSuffix("Z")
    else { return line }
    return String(line[line.index(after: space)...])
  }

  private static func shape(_ text: String) -> String {
    String(text.prefix(60).map { $0.isHexDigit ? "0" : $0 })
  }

  // MARK: Text

  package var text: String {
    var lines = [
      "rehearsal of \(self.pipeline): \(self.days) \(self.days == 1 ? "day" : "days"), "
        + "a run every \(self.every), seed \(self.seed)", "",
    ]
    for incident in RehearsalPlan.Incident.allCases {
      guard let met = self.incidents[incident] else { continue }
      lines += Self.lines("\(incident.rawValue) × \(met.occurrences)", met)
    }
    lines += Self.lines("no incident", self.calm)
    lines += [
      "", "runs: \(self.runs), logins: \(self.logins), API calls: \(self.apiCalls)",
      "events: \(self.published) published, \(self.delivered) delivered, \(self.exported) exported"
        + (self.exported > 0 ? "; delivered/exported = \(self.ratio)" : "")
        + (self.redelivered > 0 ? " (\(self.redelivered) delivered again by channels)" : ""),
      "longest time without a successful run: \(Self.duration(self.longestGap))",
    ]
    for (sink, comparison) in self.comparisons {
      lines.append(
        comparison.isEqual
          ? "\(sink): equal to what \(comparison.measure) (\(comparison.found) rows)"
          : "\(sink): differs from what \(comparison.measure): of \(comparison.expected) rows "
            + "\(comparison.missing) missing, \(comparison.repeated) repeated, "
            + "\(comparison.unknown) unknown")
    }
    lines += self.notes.map { "note: \($0)" }
    return lines.joined(separator: "\n") + "\n"
  }

  private var ratio: String {
    let thousandths =
      (self.delivered * 1000 + self.exported / 2) / max(1, self.exported)
    let fraction = String(thousandths % 1000)
    return "\(thousandths / 1000).\(String(repeating: "0", count: 3 - fraction.count))\(fraction)"
  }

  private static func lines(_ name: String, _ met: Met) -> [String] {
    let codes = met.exitCodes.sorted { $0.key < $1.key }.map { "\($0.key) × \($0.value)" }
    let runs = met.runs == 1 ? "1 run" : "\(met.runs) runs"
    return [
      "\(name): \(runs)"
        + (codes.isEmpty ? "" : "; exit codes: \(codes.joined(separator: ", "))")
    ] + met.said.map { "    \($0)" }
  }

  static func duration(_ milliseconds: Int64) -> String {
    let minutes = milliseconds / 60_000
    if minutes < 1 { return "\(milliseconds / 1000) s" }
    if minutes < 60 { return "\(minutes) min" }
    return "\(minutes / 60) h \(minutes % 60) min"
  }

  // MARK: JSON

  package var json: String {
    func met(_ met: Met) -> JSONValue {
      Self.object([
        ("occurrences", .integer(met.occurrences)), ("runs", .integer(met.runs)),
        (
          "exit_codes",
          Self.object(
            met.exitCodes.sorted { $0.key < $1.key }.map { ("\($0.key)", .integer($0.value)) })
        ),
        ("said", .array(met.said.map { .string($0) })),
      ])
    }
    let incidents = RehearsalPlan.Incident.allCases.compactMap { incident in
      self.incidents[incident].map { (incident.rawValue, met($0)) }
    }
    let outputs = self.comparisons.map { sink, comparison in
      Self.object([
        ("sink", .string(sink)), ("equal", .boolean(comparison.isEqual)),
        ("rows", .integer(comparison.found)), ("expected", .integer(comparison.expected)),
        ("missing", .integer(comparison.missing)), ("repeated", .integer(comparison.repeated)),
        ("unknown", .integer(comparison.unknown)),
      ])
    }
    return Self.object([
      ("pipeline", .string(self.pipeline)), ("days", .integer(self.days)),
      ("every", .string(self.every)), ("seed", .integer(self.seed)),
      ("good", .boolean(self.isGood)), ("runs", .integer(self.runs)),
      ("incidents", Self.object(incidents)), ("no_incident", met(self.calm)),
      ("published", .integer(self.published)), ("delivered", .integer(self.delivered)),
      ("exported", .integer(self.exported)),
      ("redelivered", .integer(self.redelivered)), ("rows_left_out", .integer(self.rowsLeftOut)),
      ("logins", .integer(self.logins)), ("api_calls", .integer(self.apiCalls)),
      ("longest_gap_ms", .integer(self.longestGap)), ("skips", .integer(self.skips)),
      ("last_exit_code", .integer(self.lastExitCode)), ("outputs", .array(outputs)),
      ("notes", .array(self.notes.map { .string($0) })),
    ]).text() + "\n"
  }

  private static func object(_ members: [(String, JSONValue)]) -> JSONValue {
    JSONValue(.object(members.map { JSONMember($0.0, $0.1) }))
  }
}
