import JSON

/// The output of a case compared with its expectations.
struct PipelineTestVerdict {
  struct Finding: Equatable {
    /// `sink 'files', line 2`
    var place: String
    var differences: [LineDifference]
  }

  let test: PipelineTestCase
  let outcome: PipelineTestRun.Outcome
  private(set) var findings: [Finding] = []

  var hasPassed: Bool { self.findings.isEmpty }

  init(_ test: PipelineTestCase, _ outcome: PipelineTestRun.Outcome) {
    self.test = test
    self.outcome = outcome
    for (sink, lines) in test.expected ?? [] {
      self.compare(lines, outcome.lines.first { $0.sink == sink }?.lines ?? [], sink)
    }
    self.compareLetters()
  }

  private mutating func compare(_ expected: [JSONValue], _ found: [JSONValue], _ sink: String) {
    for index in 0..<max(expected.count, found.count) {
      let differences: [LineDifference]
      if index >= expected.count {
        differences = [LineDifference(member: "", expected: nil, found: found[index])]
      } else if index >= found.count {
        differences = [LineDifference(member: "", expected: expected[index], found: nil)]
      } else {
        differences = LineDifference.between(expected[index], found[index], self.test.match)
      }
      guard !differences.isEmpty else { continue }
      self.findings.append(
        Finding(place: "sink '\(sink)', line \(index + 1)", differences: differences))
    }
  }

  private mutating func compareLetters() {
    var rest = self.outcome.letters
    for letter in self.test.deadLetters {
      let match = rest.firstIndex {
        $0.event == letter.event && $0.sink == letter.sink && $0.reason.contains(letter.reason)
      }
      if let match {
        rest.remove(at: match)
      } else {
        self.findings.append(
          Finding(
            place: "dead letters",
            differences: [LineDifference(member: "", expected: letter.json, found: nil)]))
      }
    }
    for letter in rest {
      self.findings.append(
        Finding(
          place: "dead letters",
          differences: [LineDifference(member: "", expected: nil, found: letter.json)]))
    }
  }
}

extension ExpectedLetter {
  /// The letter as a test file has it.
  var json: JSONValue {
    var members = [JSONMember("event", .integer(self.event))]
    if let sink { members.append(JSONMember("sink", .string(sink))) }
    members.append(JSONMember("reason", .string(self.reason)))
    return JSONValue(.object(members))
  }
}

extension PipelineTestVerdict {
  /// The case with the lines that came out, members in the author's order; new ones behind them.
  func updated(_ document: JSONValue) -> JSONValue {
    guard var members = document.members else { return document }
    let old = document["expect"]
    let sinks = self.test.expected.map { expected in expected.map(\.sink) }
    let expected = self.outcome.lines.filter { sinks?.contains($0.sink) ?? true }
    var order = (old?.members ?? []).map(\.name)
    order += expected.map(\.sink).filter { !order.contains($0) }
    let lines = order.compactMap { sink -> JSONMember? in
      guard let found = expected.first(where: { $0.sink == sink })?.lines else {
        return old?.members?.first { $0.name == sink }
      }
      let known = old?[sink]?.array ?? []
      return JSONMember(
        sink,
        .array(
          found.enumerated().map { index, line in
            // Optional, or `nil` would be JSON's null.
            self.updated(known.indices.contains(index) ? Optional(known[index]) : .none, line)
          }))
    }
    Self.set("expect", JSONValue(.object(lines)), in: &members)
    if !self.outcome.letters.isEmpty || document["dead_letters"] != nil {
      Self.set("dead_letters", .array(self.updatedLetters), in: &members)
    }
    var document = document
    document.content = .object(members)
    return document
  }

  /// Reasons of which the author has kept a part stay as they are.
  private var updatedLetters: [JSONValue] {
    self.outcome.letters.map { letter in
      let known = self.test.deadLetters.first {
        $0.event == letter.event && $0.sink == letter.sink && letter.reason.contains($0.reason)
      }
      return (known ?? letter).json
    }
  }

  /// Metadata that tells a reader of a new line which event it is of.
  private static let telling: Set<String> = ["_change_type", "_record_id"]

  private func updated(_ known: JSONValue?, _ line: JSONValue) -> JSONValue {
    var members: [JSONMember] = []
    for member in known?.members ?? [] {
      if member.name == "//" {
        members.append(member)
      } else if let found = line[member.name] {
        let isKept = LineDifference.isEqual(member.value, found)
        members.append(JSONMember(member.name, isKept ? member.value : found))
      }
    }
    for member in line.members ?? [] where known?[member.name] == nil {
      let isTaken =
        known == nil
        ? LineDifference.isCompared(member.name, .fields) || Self.telling.contains(member.name)
        : LineDifference.isCompared(member.name, self.test.match)
      if isTaken || self.test.match == .exact { members.append(member) }
    }
    return JSONValue(.object(members))
  }

  private static func set(_ name: String, _ value: JSONValue, in members: inout [JSONMember]) {
    if let index = members.firstIndex(where: { $0.name == name }) {
      members[index].value = value
    } else {
      members.append(JSONMember(name, value))
    }
  }
}
