internal import Pipeline

/// What a sink knows about records that are read: passes over objects and their fields, each with
/// its table.
struct KnownReads {
  /// What a run knows about the fields of an object.
  struct Fields {
    var access: [String: FieldAccess] = [:]
    /// What the org says about them; empty unless the run has asked.
    var descriptions: [FieldDescription] = []
    /// Dotted names of fields whose columns were filling when the run began.
    var filling: [String] = []
    /// SQL names of the columns that the layout of the last records that were read fills.
    var readColumns: [String]?
  }

  let passTable: PassTable
  let repairCalls: RepairCalls
  let pollTable: PollTable
  var missingRanges: MissingRanges
  /// Nil when no records are read.
  var clock: DatabaseClock?
  /// By `ReadPass.key`; empty unless records are read.
  var passes: [String: PassTable.Entry] = [:]
  /// By object, of those without change events.
  var polls: [String: PollSchedule.LastReads] = [:]
  /// By object.
  var fields: [String: Fields] = [:]
  /// The number of records of passes that were refused, by object, since this was last taken.
  var refused: [String: Int] = [:]

  init(pipeline: String, sink: String, _ bookkeeping: Bookkeeping) {
    self.passTable = PassTable(pipeline: pipeline, sink: sink, bookkeeping)
    self.pollTable = PollTable(pipeline: pipeline, sink: sink, bookkeeping)
    self.repairCalls = RepairCalls(pipeline: pipeline, sink: sink, bookkeeping)
    self.missingRanges = MissingRanges(pipeline: pipeline, sink: sink, bookkeeping)
  }

  /// Records of the object come from a pass over all of them; repairs wait until it is complete.
  func isInPass(_ entity: String) -> Bool {
    guard let pass = self.passes[entity]?.pass else { return false }
    return pass.state != .complete
  }

  /// The passes over all or some columns that earlier transactions have begun.
  func unfinishedPasses(over entity: String) -> [ReadPass] {
    self.passes.values.compactMap(\.pass).filter { $0.entity == entity && $0.state != .complete }
  }

  /// Counts a record of a pass that was refused.
  mutating func refuse(_ entity: String) {
    if self.isInPass(entity) { self.refused[entity, default: 0] += 1 }
  }

  /// Notes a pass that is complete. It began when its first progress was stored, at the latest when
  /// its records were requested.
  private mutating func note(_ pass: ReadPass) {
    guard var reads = self.polls[pass.entity], let begun = pass.begunAt ?? pass.requestedAt else {
      return
    }
    reads.any = begun
    if !pass.isOfChanges { reads.full = begun }
    self.polls[pass.entity] = reads
  }

  /// Call this when the commit is durable.
  mutating func committed(_ commit: SealedCommit) {
    for read in commit.refusedReads { self.refuse(read.rows.entity) }
    for (key, pass) in commit.content.passes {
      self.passes[key, default: .init()].pass = pass
      self.passes[key]?.number = pass.number
    }
    for pass in commit.content.passes.values where pass.state == .complete {
      self.note(pass)
    }
    self.missingRanges.noted(commit.holes)
  }
}
