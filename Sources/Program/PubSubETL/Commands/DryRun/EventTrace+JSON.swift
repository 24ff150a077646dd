import JSON
import Pipeline

/// The object of an event: where what it would be, is, and what it was before.
extension EventTrace {
  /// - Parameter number: of the events shown, from 1.
  func json(number: Int) -> JSONValue {
    var members = [
      JSONMember("type", "event"), JSONMember("number", .integer(number)),
      JSONMember("topic", .string(self.topic)), JSONMember("replay_id", .string(self.replayID)),
      JSONMember("event_id", .string(self.eventID)),
      JSONMember("schema_id", .string(self.schemaID)),
    ]
    if let before = self.before {
      members.append(JSONMember("before", .array(before.rows)))
      members += before.remarks
    }
    members.append(JSONMember("stages", .array(self.steps.map { self.json($0) })))
    members.append(
      JSONMember(
        "sinks", JSONValue(.object(self.sinks.map { JSONMember($0.name, Self.json($0)) }))))
    if let refusal = self.refusal {
      members.append(JSONMember("dead_letter", .string(refusal)))
    }
    return JSONValue(.object(members))
  }

  private func json(_ step: StageStep) -> JSONValue {
    var members = Self.members(step)
    if step.kind == Route.type {
      let routed = self.sinks.compactMap { sink in
        sink.routed.map { JSONMember(sink.name, .integer($0)) }
      }
      members.append(JSONMember("rows_to", JSONValue(.object(routed))))
    }
    return JSONValue(.object(members))
  }

  private static func members(_ step: StageStep) -> [JSONMember] {
    var members = [
      JSONMember("stage", .string(step.kind)), JSONMember("place", .integer(step.place)),
    ]
    switch step.outcome {
    case .unchanged: members.append(JSONMember("unchanged", true))
    case .refused(let reason): members.append(JSONMember("refused", .string(reason)))
    case .rows(let rows):
      if step.leftOut > 0 { members.append(JSONMember("left_out", .integer(step.leftOut))) }
      members.append(JSONMember("rows", .array(rows.rows)))
      members += rows.remarks
      if !step.hiddenChanges.isEmpty {
        members.append(
          JSONMember("hidden_changes", .array(step.hiddenChanges.sorted().map { .string($0) })))
      }
    }
    return members
  }

  private static func json(_ sink: SinkOutcome) -> JSONValue {
    var members: [JSONMember] = []
    if !sink.steps.isEmpty {
      members.append(
        JSONMember(
          "stages", .array(sink.steps.map { JSONValue(.object(Self.members($0))) })))
    }
    members.append(JSONMember("lines", .array(sink.lines)))
    if sink.linesNotShown > 0 {
      members.append(JSONMember("lines_not_shown", .integer(sink.linesNotShown)))
    }
    if let refusal = sink.refusal { members.append(JSONMember("refused", .string(refusal))) }
    return JSONValue(.object(members))
  }
}

extension RowSnapshot {
  /// What is to be known of the rows.
  fileprivate var remarks: [JSONMember] {
    var members: [JSONMember] = []
    if !self.hidden.isEmpty {
      members.append(JSONMember("hidden", .array(self.hidden.sorted().map { .string($0) })))
    }
    if self.notShown > 0 {
      members.append(JSONMember("rows_not_shown", .integer(self.notShown)))
    }
    return members
  }
}
