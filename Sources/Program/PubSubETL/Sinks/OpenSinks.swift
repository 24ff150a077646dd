import Checkpoint
import Clocks
import JSON
import Logging
import Pipeline

/// What sinks are made with for a run.
struct SinkContext {
  var configuration: PipelineConfiguration
  var org: String
  var options: RunOptions
  /// This process, as stores that others may use know it.
  var owner: RunOwner
  /// How long to wait for something that does not answer.
  var retry: RetrySchedule
  var logger: Logger
  var log: RunLog
  var interruption: Interruption
  var clock: ProcessClock
}

/// The process of a run or command.
struct RunOwner: Sendable {
  /// Host and state directory.
  var place: String
  /// Identity of the state directory.
  var identity: String
  var processID: Int32
}

/// The sinks of a run. Knows what each can do besides taking rows.
///
/// Calls come in the order of the declarations, on one thread.
final class OpenSinks {
  private let context: SinkContext
  /// The states in the last checkpoint, by sink name.
  private let states: [String: SinkState]
  /// Those whose state the checkpoint holds.
  let checkpointed: [(settings: any ConfiguredSink, sink: any CheckpointedSink)]
  /// Those that keep their positions, as soon as they are connected.
  private(set) var keepers: [(settings: any ConfiguredSink, sink: any PositionKeepingSink)] = []
  private let surveyed: [(name: String, sink: any SurveyedSink)]
  private var measured: [String: any MeasuredSink] = [:]

  /// - Parameter states: of the last checkpoint; a sink that it does not know has none.
  init(_ context: SinkContext, states: [String: SinkState]) throws {
    self.context = context
    self.states = states
    self.checkpointed = try context.configuration.sinks.filter { !$0.keepsPosition }.map {
      guard let sink = try $0.open(context) as? any CheckpointedSink else {
        preconditionFailure(
          "\(type(of: $0).type): neither the checkpoint nor the sink has its position")
      }
      return ($0, sink)
    }
    self.surveyed = self.checkpointed.compactMap { settings, sink in
      (sink as? any SurveyedSink).map { (settings.name, $0) }
    }
    self.measure(self.checkpointed.map { ($0.settings.name, $0.sink) })
  }

  private func measure(_ sinks: [(name: String, sink: AnyObject)]) {
    for (name, sink) in sinks { self.measured[name] = sink as? any MeasuredSink }
  }

  /// Reads what earlier runs left. Changes nothing.
  ///
  /// - Returns: faults of the output that the user has accepted, one sentence each.
  func survey() throws -> [String] {
    try self.surveyed.flatMap { name, sink in
      try sink.survey(from: self.states[name], self.context)
    }
  }

  /// - Throws: `RunFailure` when a pipeline that has never run would write among the output of
  ///   another.
  func checkAreNew() throws {
    for (_, sink) in self.surveyed { try sink.checkIsNew(self.context) }
  }

  /// Opens the sinks that keep their positions.
  func connect() throws {
    for settings in self.context.configuration.sinks where settings.keepsPosition {
      guard let sink = try settings.open(self.context) as? any PositionKeepingSink else {
        preconditionFailure("\(type(of: settings).type): opened as another type than declared")
      }
      self.keepers.append((settings, sink))
      self.measure([(settings.name, sink)])
    }
  }

  /// The records whose values were erased from any of the sinks. Called when all are connected.
  func erasedRecords() throws -> ErasedRecords {
    var erased = ErasedRecords()
    for (settings, _) in self.checkpointed {
      guard let settings = settings as? any ErasingSink else { continue }
      erased.formUnion(try settings.erasedRecords(self.context.configuration))
    }
    for (_, keeper) in self.keepers { erased.formUnion(try keeper.erasedRecords()) }
    return erased
  }

  /// The last event of a topic that the output has, by what is known beside the checkpoint.
  func lastExported(ofTopic topic: String) -> ExportedEvent? {
    self.surveyed.compactMap { $0.sink.lastExported(ofTopic: topic) }
      .max { ($0.epoch, $0.ordinal) < ($1.epoch, $1.ordinal) }
  }

  /// Brings what an earlier run left into line with the checkpoint. Not before it is certain that
  /// no newer checkpoint knows the output.
  func recover() throws {
    for (settings, sink) in self.checkpointed {
      try sink.recover(from: self.states[settings.name]?.json)
    }
    for (_, sink) in self.surveyed { sink.recovered(self.context) }
  }

  /// The sinks as the runner sees them, after their own stages if there are any.
  func staged(_ stages: RunStages) -> (checkpointed: [StagedSink], stores: [StagedStore]) {
    (
      self.checkpointed.map { StagedSink($0.sink, stages: stages.sinks[$0.settings.name]) },
      self.keepers.map { StagedStore($0.sink, stages: stages.sinks[$0.settings.name]) }
    )
  }

  /// Those with copies of objects into which records can be read.
  var copies: [any CopyStore] {
    self.keepers.compactMap { $0.sink as? any CopyStore }.filter(\.takesReads)
  }

  /// What this run has written: the sinks' entries in its report.
  var reportEntries: [RunReport.Sink] {
    self.context.configuration.sinks.map { settings in
      var entry = RunReport.Sink(
        name: settings.name, type: type(of: settings).type, target: settings.place)
      self.measured[settings.name]?.count(in: &entry)
      return entry
    }
  }

  /// Called after a run, whatever its result.
  ///
  /// - Parameter run: as the ledger has it; nil if it did not get as far as to read.
  func close(adding run: RunRecord? = nil) {
    for (settings, sink) in self.keepers {
      guard let reason = sink.close(adding: run) else { continue }
      self.context.logger.info("sink '\(settings.name)' does not list this run: \(reason)")
    }
  }
}

/// A sink that keeps its position: rows and position are one transaction of its own. With it, it agrees
/// with the others on where a run begins.
protocol PositionKeepingSink: Store {
  /// - Parameter isKnown: the checkpoint knows that there is a position.
  /// - Returns: nil when none is stored.
  func storedPositions(
    isKnown: Bool, _ context: SinkContext
  ) throws -> [String: TopicPosition]?

  /// The newest epoch that rows of the topics have; nil without rows.
  func newestEpoch(ofTopics topics: [String]) throws -> Int?

  /// The records whose values were erased from the sink.
  func erasedRecords() throws -> ErasedRecords

  /// For the journal, when the position was taken over from another run.
  func takeover(by owner: RunOwner) -> (old: JSONValue, new: JSONValue)?

  /// Stores the first positions.
  func begin(at positions: [String: TopicPosition], _ context: SinkContext) throws

  /// What the checkpoint holds of the sink.
  var checkpointState: SinkState { get }

  /// Called after a run, whatever its result. Adds the run to what the sink remembers of runs, if it
  /// remembers any.
  ///
  /// - Returns: why it could not; nil otherwise.
  func close(adding run: RunRecord?) -> String?
}

/// A sink that examines its output before a run, without the checkpoint.
protocol SurveyedSink: CheckpointedSink {
  /// Reads what earlier runs left. Changes nothing.
  ///
  /// - Parameter state: of the last checkpoint; nil when that does not know the sink.
  /// - Returns: faults of the output that the user has accepted, one sentence each.
  func survey(from state: SinkState?, _ context: SinkContext) throws -> [String]

  /// - Throws: `RunFailure` when a pipeline that has never run would write among the output of
  ///   another.
  func checkIsNew(_ context: SinkContext) throws

  /// The last event of a topic that the output has.
  func lastExported(ofTopic topic: String) -> ExportedEvent?

  /// Called after `recover`: what it finishes from now on is this run's.
  func recovered(_ context: SinkContext)
}

/// A sink that counts what it writes.
protocol MeasuredSink: AnyObject {
  /// Adds its counts to the sink's entry in the report of a run.
  func count(in entry: inout RunReport.Sink)
}

/// The place of an event in the output of an earlier run.
struct ExportedEvent: Equatable {
  var epoch: Int
  var ordinal: Int64
  /// Hexadecimal.
  var replayID: String
}
