import FileSink
import JSON
import Pipeline

/// A pipeline as its file means it: checked, with defaults filled in, paths absolute.
///
/// Defaults are the initial values of the properties.
struct PipelineConfiguration: KeyedObject, Sendable {
  /// Absolute path of the pipeline file; empty for a run without a file.
  var file = ""
  /// Absolute directory that relative paths of the file are relative to.
  var base = ""
  /// Identity of the pipeline in file names and checkpoints.
  var name = ""
  var source = SourceConfiguration()
  var stages: [StageConfiguration] = []
  /// At least one.
  var sinks: [any ConfiguredSink] = []
  var commit = CommitConfiguration()
  var checkpoint = CheckpointConfiguration()
  var deadLetter = DeadLetterConfiguration()
  var run = RunConfiguration()
  var retry = RetryConfiguration()
  var repair = RepairConfiguration()
  var allowance = AllowanceConfiguration()
  var metrics = MetricsConfiguration()
  var notify = NotifyConfiguration()
  /// What no output may hold.
  var secrets = SecretMask()
  /// Absolute paths of files that hold secrets, as far as they have been read.
  var secretFiles: [String] = []
  /// Absolute paths of the files that it was read from, and of those that it names.
  var inputFiles: [String] = []

  static var keys: [Key<Self>] {
    [
      .schemaPlace,
      .noted("version", .version, "Version of the format of pipeline files.", isRequired: true),
      .required(
        "name", \.name, .identifier, "Identity of the pipeline in file names and checkpoints.",
        example: "opportunities"),
      .required("source", \.source, .object, "Where events come from."),
      .key(
        "stages", \.stages, .stages,
        "What is done to the columns of all sinks, in this order.", default: [],
        example: [["type": "flatten"]]),
      .required(
        "sinks", \.sinks, .sinks, "Where the rows of events go.",
        example: [["type": "files", "directory": "../out"]]),
      .key("commit", \.commit, .object, "When events that have arrived are committed together."),
      .required(
        "checkpoint", \.checkpoint, .object, "Where positions are stored between runs."),
      .key(
        "dead_letter", \.deadLetter, .object,
        "Where events that cannot be decoded or written go."),
      .key("run", \.run, .object, "When a run ends, and with which exit code."),
      .key("retry", \.retry, .object, "How long and how often failures are retried."),
      .key(
        "repair", \.repair, .object,
        "What happens to records that events have left incomplete or wrong."),
      .key(
        "allowance", \.allowance, .object,
        "What a run may use of the org's daily delivered events."),
      .key("metrics", \.metrics, .object, "Where Prometheus finds the metrics of runs."),
      .key(
        "notify", \.notify, .object,
        "Whom to notify when an incident of the pipeline begins, and when it ends."),
    ]
  }

  /// What decides how sinks relate to those of a checkpoint.
  var sinkPlaces: [(name: String, start: SinkStart?, directory: String)] {
    self.sinks.map { ($0.name, $0.start, $0.place) }
  }

  /// Some sink has no position but the checkpoint's; without one the checkpoint is a copy.
  var needsCheckpoint: Bool { !self.sinks.allSatisfy(\.keepsPosition) }

  /// The highest epoch of a topic in the output of each sink on this machine.
  func exportedEpochs(ofTopic topic: String) throws -> [Int] {
    try self.sinks.compactMap { $0 as? any LocalSink }.map {
      try $0.exportedEpoch(ofTopic: topic, pipeline: self.name)
    }
  }
}

/// A stage as its object in the file, read once.
struct StageConfiguration: Sendable, Equatable {
  /// JSON pointer in the pipeline file.
  var path: String
  var value: JSONValue
  /// Nil only if its type is unknown, which has been reported.
  fileprivate var make: (@Sendable () -> any Transform)?

  /// The stage, new for each run.
  func transform() -> any Transform {
    guard let make else { preconditionFailure("\(self.path) has mistakes") }
    return make()
  }

  static func == (left: Self, right: Self) -> Bool {
    (left.path, left.value) == (right.path, right.value)
  }
}

extension [StageConfiguration] {
  /// Their types, for people.
  var typeNames: String { self.compactMap { $0.value["type"]?.string }.joined(separator: ", ") }

  /// The columns whose values conditions depend on, without those that every event has.
  var valueConditionNames: [String] {
    Set(self.flatMap { $0.transform().conditionNames }).filter { !$0.hasPrefix("_") }.sorted()
  }
}

extension PipelineConfiguration {
  /// What several objects have to agree on.
  mutating func check(_ reader: JSONReader) {
    if reader.any("commit")?["max_events"] == nil {
      for case let sink as any BulkSink in self.sinks {
        self.commit.maxEvents = min(self.commit.maxEvents, type(of: sink).commitMaxEvents)
      }
    }
    if self.deadLetter.directory.isEmpty {
      self.deadLetter.directory = "\(self.checkpoint.directory)/dead"
    }
    self.checkMasks(reader)
    self.checkTopics(reader)
    self.checkReads(reader)
    self.checkRoute(reader)
  }

  /// Dead letters hold events as they came, before any stage.
  private func checkMasks(_ reader: JSONReader) {
    let stages = self.stages + self.sinks.flatMap(\.stages)
    guard stages.contains(where: { $0.make?().hides != nil }), self.deadLetter.payload == .full,
      // Else its key is what is wrong, which has been reported.
      reader.any("dead_letter")?["payload"]?.string != "sealed"
    else { return }
    reader.report(
      "dead_letter",
      "dead letters would hold what the stage 'mask' hides; set \"payload\" in it to \"sealed\" "
        + "(encrypted, with \"key\" or \"key_file\") or to \"none\"")
  }

  /// Reports topics that a sink cannot take together.
  private func checkTopics(_ reader: JSONReader) {
    let topics = self.source.topics
    let limited = self.sinks.compactMap { $0 as? any TopicLimitedSink }
    guard let message = limited.lazy.compactMap({ $0.conflict(among: topics) }).first else {
      return
    }
    self.report(reader, "topic", message)
  }

  /// Records can be read into files and databases; what is missing is known of databases only.
  private func checkReads(_ reader: JSONReader) {
    guard !self.sinks.isEmpty else { return }
    if self.source.snapshot.mode == .initial, !self.sinks.contains(where: \.takesReads) {
      self.report(
        reader, "snapshot",
        "records can be read into files and postgres sinks only, and this pipeline has none")
    }
    if !self.source.lookups.objects.isEmpty, !self.sinks.contains(where: \.takesReads) {
      self.report(
        reader, "lookups",
        "records can be read into files and postgres sinks only, and this pipeline has none")
    }
    let hasCurrentRows = self.sinks.contains(where: \.repairsRecords)
    let hasFilesOfRecords =
      self.source.snapshot.mode == .initial
      && self.sinks.contains { $0.takesReads && !$0.keepsPosition }
    if self.source.refresh != nil, !hasCurrentRows, !hasFilesOfRecords {
      self.report(
        reader, "refresh",
        "fields can be refreshed in current tables of postgres sinks and, with \"snapshot\": "
          + "{\"mode\": \"initial\"}, in files; this pipeline has neither")
    }
    if !self.source.subset.isEmpty {
      if !hasCurrentRows, !hasFilesOfRecords {
        self.report(
          reader, "subset",
          "only postgres sinks with current rows and, with \"snapshot\": {\"mode\": \"initial\"}, files "
            + "can have a part of an object's records, and this pipeline has neither; limit what is "
            + "read with source.snapshot.where")
      } else if self.repair.mode == .off || self.source.snapshot.mode == .never {
        self.report(
          reader, "subset",
          "changed records are read to see whether they belong to the copy, which needs "
            + "\"repair\": {\"mode\": \"auto\"} and a \"snapshot\" whose mode is not \"never\"")
      }
    }
    if self.source.onInvalidReplay == .snapshot, !self.sinks.contains(where: \.keepsPosition) {
      self.report(
        reader, "on_invalid_replay",
        "only into postgres sinks records are read again when events are missing, and this "
          + "pipeline has none; choose \"earliest\", and run 'pubsub-etl snapshot' afterwards")
    }
  }

  /// Reports a mistake in a member of the source.
  private func report(_ reader: JSONReader, _ member: String, _ message: String) {
    guard let source = reader.any("source") else { return }
    reader.report(("\(reader.path(of: "source"))/\(member)", source), message)
  }

  /// Reports a `route` in another place than the last of the pipeline's stages, sinks that it names and
  /// the pipeline does not have, and sinks that nothing goes to.
  private func checkRoute(_ reader: JSONReader) {
    func report(_ stage: StageConfiguration, _ message: String) {
      reader.report((stage.path, stage.value), message)
    }
    for stage in self.sinks.flatMap(\.stages) where stage.make?().sinks != nil {
      report(stage, "'route' is a stage of the pipeline, not of one sink")
    }
    for stage in self.stages.dropLast() where stage.make?().sinks != nil {
      report(stage, "'route' has to be the last of the pipeline's stages; the others go before it")
    }
    guard reader.mistakes.isEmpty, let stage = self.stages.last, let route = stage.make?(),
      let sinks = route.sinks
    else { return }
    let names = self.sinks.map(\.name)
    for sink in sinks where !names.contains(sink) {
      report(stage, "unknown sink '\(sink)'; the sinks are: \(names.joined(separator: ", "))")
    }
    for name in names where !sinks.contains(name) {
      report(stage, "nothing goes to sink '\(name)'; name it in a route or in 'default'")
    }
    // A channel brings objects that its name does not tell, and stages may have changed `_entity`.
    let topics = self.source.topics.map(\.name)
    guard !reader.configuration.replacesTopics, !topics.isEmpty,
      !topics.contains(where: TopicName.isChannel),
      !self.stages.dropLast().contains(where: { $0.value.text().contains("\"_entity\"") })
    else { return }
    for (rule, reason) in route.unreachableRoutes(among: topics.map { TopicName.entity($0) }) {
      let value = stage.value["routes"]?.array?[rule] ?? stage.value
      reader.report(("\(stage.path)/routes/\(rule)", value), reason)
    }
  }
}

extension Kind<Int> {
  fileprivate static var version: Self {
    Self(
      .constant(1), example: { _ in 1 },
      read: { reader, name, isRequired in
        guard let version = reader.integer(name, required: isRequired) else { return nil }
        if version != 1 {
          let isQuotable = reader.any(name)?.holdsSubstitution == false
          reader.report(name, "unknown version\(isQuotable ? " \(version)" : ""); known: 1")
        }
        return version
      })
  }
}

extension Kind<[StageConfiguration]> {
  /// The stages of the pipeline or of a sink.
  static var stages: Self {
    Self(.list(of: .reference("stage")), objects: TransformRegistry.declarations) {
      reader, name, _ in
      reader.elements(name)?.map { path, value in
        let value = reader.configuration.withKey(reader.reader(of: value, at: path))
        return StageConfiguration(
          path: path, value: value,
          make: TransformRegistry.stage(reading: reader.reader(of: value, at: path)))
      }
    }
  }
}
