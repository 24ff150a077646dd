import Checkpoint
import Clocks
import FileSink
import JSON
import Pipeline

/// Erases the values of some records of an object from all sinks of a pipeline.
///
/// First every sink notes that the records are erased, durably; then one sink after the other is
/// cleared. So a command that was killed can be repeated, and no run brings a value back meanwhile.
struct RecordErasure {
  private let configuration: PipelineConfiguration
  private let entity: String
  private let records: [RecordID]
  private let clock: ProcessClock
  private let sinks: [any ErasingSink]

  /// - Throws: `RunFailure` for a pipeline from which nothing can be erased.
  init(
    _ records: [RecordID], of entity: String, _ configuration: PipelineConfiguration,
    clock: ProcessClock
  ) throws {
    self.configuration = configuration
    self.entity = entity
    self.records = Set(records).sorted()
    self.clock = clock
    self.sinks = configuration.sinks.compactMap { $0 as? any ErasingSink }
    guard !self.sinks.isEmpty else {
      throw RunFailure(
        .noSink,
        "pipeline '\(configuration.name)' keeps nothing: it has no files or postgres sink")
    }
    guard configuration.source.recordIDs == .rows else {
      throw RunFailure(
        .noSink,
        "with \"record_ids\": \"array\" a row is about several records, so the values of one cannot "
          + "be erased")
    }
  }

  /// What would be cleared. Takes no lock and changes nothing.
  func examine() throws -> ErasureReport {
    try self.check()
    let document = try FileCheckpointStore.peek(self.configuration.statePaths)
    let request = self.request(document, owner: nil)
    var report = self.report(isDryRun: true)
    for sink in self.sinks {
      let result = try Self.naming(sink) { try sink.examine(request) }
      report.entries.append(self.entry(sink, result))
    }
    let letters = try LetterErasure(request).find()
    (report.letterCount, report.letterFaults) = (letters.letters.count, letters.faults)
    return report
  }

  /// - Parameter confirm: asks the user. Throws if the answer is no.
  func execute(confirm: (String) throws -> Void) throws -> ErasureReport {
    let store = try CheckpointChange.open(self.configuration)
    defer { withExtendedLifetime(store) {} }
    try self.check()
    let owner = try PipelineAssembly(configuration: self.configuration, clock: self.clock).owner(
      store)
    try confirm(
      "Erase the values of \(Phrase.count(self.records.count, "record")) of \(self.entity)? This "
        + "cannot be undone. [y/N] ")
    try CheckpointJournal.append(
      self.configuration.statePaths, command: "erase --entity \(self.entity)", topic: nil,
      old: .array(self.records.map { .string($0.description) }), new: nil, clock: self.clock)
    var request = self.request(nil, owner: owner)
    for sink in self.sinks {
      try Self.naming(sink, "nothing was erased") { try sink.noteErased(request) }
    }
    do {
      request.document = try OpenFilesFinish(
        configuration: self.configuration, store: store, clock: self.clock
      ).run()
    } catch {
      var failure = RunFailure(error)
      failure.message += "; no sink is cleared. After that, run the same command again"
      throw failure
    }
    var report = self.report(isDryRun: false)
    let letters = LetterErasure(request)
    let found = try letters.find()
    report.letterFaults = found.faults + (try letters.erase(found, request.document))
    report.letterCount = found.letters.count
    for sink in self.sinks {
      let result = try Self.naming(sink, self.progress(report)) { try sink.erase(request) }
      report.entries.append(self.entry(sink, result))
    }
    return report
  }

  private func report(isDryRun: Bool) -> ErasureReport {
    ErasureReport(
      pipeline: self.configuration.name, entity: self.entity, records: self.records,
      isDryRun: isDryRun)
  }

  private func request(_ document: CheckpointDocument?, owner: RunOwner?) -> ErasureRequest {
    ErasureRequest(
      configuration: self.configuration, entity: self.entity, records: self.records,
      document: document, owner: owner, clock: self.clock)
  }

  private func entry(_ sink: any ErasingSink, _ result: ErasureResult) -> ErasureReport.Entry {
    ErasureReport.Entry(
      name: sink.name, type: type(of: sink).type, place: sink.place, output: sink.output,
      result: result)
  }

  /// Which sinks are done, for a failure.
  private func progress(_ report: ErasureReport) -> String {
    let done = report.entries.map { "'\($0.name)'" }
    let open = self.sinks.dropFirst(done.count).map { "'\($0.name)'" }
    return (done.isEmpty ? "no sink is cleared" : "cleared: \(done.joined(separator: ", "))")
      + "; not cleared: \(open.joined(separator: ", "))"
  }

  /// Adds the sink, and what was done so far, to a failure.
  private static func naming<Value>(
    _ sink: any ErasingSink, _ progress: String? = nil, _ body: () throws -> Value
  ) throws -> Value {
    do {
      return try body()
    } catch {
      var failure = RunFailure(error)
      failure.message = "sink '\(sink.name)': \(failure.message)"
      if let progress { failure.message += ". \(progress); run the same command again" }
      throw failure
    }
  }

  // MARK: Mistakes

  /// Every sink has to answer before anything is changed.
  private func check() throws {
    var objects = Set(
      self.configuration.source.topics.map(\.name)
        .filter { TopicName.hasChanges($0) && !TopicName.isChannel($0) }
        .map { TopicName.entity($0) })
    objects.formUnion(self.configuration.source.snapshotObjects.map(\.entity))
    objects.formUnion(self.configuration.source.polledObjects.map(\.entity))
    var prefix = Self.keyPrefixes[self.entity]
    for sink in self.sinks {
      try Self.naming(sink) {
        objects.formUnion(try sink.objects(self.configuration))
        if prefix == nil { prefix = try sink.keyPrefix(of: self.entity, self.configuration) }
      }
    }
    guard objects.contains(self.entity) else {
      throw RunFailure(
        .unknownEntity,
        "pipeline '\(self.configuration.name)' has no object '\(self.entity)'"
          + (objects.isEmpty ? "" : "; it has: \(objects.sorted().joined(separator: ", "))"))
    }
    guard let prefix, let wrong = self.records.first(where: { $0.keyPrefix != prefix }) else {
      return
    }
    throw RunFailure(
      .unknownRecord,
      "\(wrong) is not the ID of a record of \(self.entity): those begin with \(prefix)")
  }

  /// The prefixes of standard objects, which are the same in every org.
  private static let keyPrefixes = [
    "Account": "001", "Asset": "02i", "Campaign": "701", "CampaignMember": "00v", "Case": "500",
    "Contact": "003", "Contract": "800", "Event": "00U", "Individual": "0PK", "Lead": "00Q",
    "Opportunity": "006", "Order": "801", "Product2": "01t", "Quote": "0Q0", "Task": "00T",
    "User": "005",
  ]
}
