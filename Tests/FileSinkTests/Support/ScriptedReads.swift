import Pipeline

@testable import FileSink

/// A pass over the records of an org, as the runner and its reader take a sink through it.
struct ScriptedReads {
  static let entity = "Opportunity"

  var recordCount: Int
  var recordsPerBatch = 2
  /// The first job is lost when so many of its records have been taken.
  var losesJobAfter: Int?

  /// Lines by event ID, with how often they have to stand.
  var expected: [String: Int] {
    var expected: [String: Int] = [:]
    for record in 0..<self.recordCount {
      expected["s1:\(record)"] = self.losesJobAfter.map { record < $0 ? 1 : 0 } ?? 1
      if self.losesJobAfter != nil { expected["s2:\(record)"] = 1 }
    }
    return expected.filter { $0.value > 0 }
  }

  func isComplete(in sink: FileSink) -> Bool {
    sink.pass(over: Self.entity)?.state == .complete
  }

  /// Begins the pass, or takes it on by a batch, or ends it.
  func step(_ sink: FileSink, _ batches: TestBatches, nextOrdinal: Int64) throws {
    let layout = batches.layout(topic: "/data/OpportunityChangeEvent", entity: Self.entity)
    let batch = RecordBatch(layout: layout)
    batch.nextOrdinal = nextOrdinal
    batch.readAt = .now
    guard var pass = sink.pass(over: Self.entity) else {
      let pass = ReadPass(entity: Self.entity, number: sink.passNumber(over: Self.entity) + 1)
      return try sink.write(batch, pass: pass)
    }
    guard pass.state != .complete else { return }
    pass.state = .reading
    if pass.job == nil { pass.job = "1" }
    if pass.job == "1", pass.row == self.losesJobAfter {
      pass.job = "2"
      pass.row = 0
    }
    let end = min(pass.row + self.recordsPerBatch, self.recordCount)
    for record in pass.row..<end {
      batches.append(read: "s\(pass.job ?? ""):\(record)", to: batch)
    }
    pass.rowCount += end - pass.row
    if pass.row == end { pass.state = .complete }
    pass.row = end
    try sink.write(batch, pass: pass)
  }
}
