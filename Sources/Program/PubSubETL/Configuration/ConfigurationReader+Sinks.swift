import JSON
import Pipeline

extension ConfigurationReader {
  static let maxSinkCount = 32

  /// Empty when there is none or one is not usable.
  func sinks(_ reader: JSONReader) -> [any ConfiguredSink] {
    guard let readers = reader.objects("sinks", required: true) else { return [] }
    if readers.isEmpty { reader.report("sinks", "expected at least one sink") }
    if readers.count > Self.maxSinkCount {
      reader.report(
        "sinks",
        "a pipeline can have at most \(Self.maxSinkCount) sinks, found \(readers.count); put "
          + "the others into another pipeline")
    }
    var sinks: [any ConfiguredSink] = []
    for sinkReader in readers {
      guard let sink = SinkRegistry.sink(reading: sinkReader, with: self) else { continue }
      if sinks.contains(where: { $0.name == sink.name }) {
        sinkReader.report(
          "name",
          "two sinks are named '\(sink.name)'; give one of them another \"name\""
        )
      }
      if let conflict = sinks.lazy.compactMap({ sink.conflict(with: $0) }).first {
        sinkReader.report(conflict.member, conflict.message)
      }
      sinks.append(sink)
    }
    return sinks
  }

  /// Reports topics that a sink cannot take together.
  func checkTopics(
    _ reader: JSONReader, _ topics: [SourceConfiguration.Topic], sinks: [any ConfiguredSink]
  ) {
    guard let message = sinks.lazy.compactMap({ $0.conflict(among: topics) }).first,
      let source = reader.any("source")
    else { return }
    reader.mistakes.append(
      JSONMistake(
        path: "\(reader.path(of: "source"))/topic", position: source.position, message: message))
  }

  /// Records can be read into files and databases; what is missing is known of databases only.
  func checkReads(
    _ reader: JSONReader, _ source: SourceConfiguration?, sinks: [any ConfiguredSink]
  ) {
    guard let source, !sinks.isEmpty, let position = reader.any("source")?.position else { return }
    func report(_ member: String, _ message: String) {
      reader.mistakes.append(
        JSONMistake(
          path: "\(reader.path(of: "source"))/\(member)", position: position, message: message))
    }
    if source.snapshot.mode == .initial, !sinks.contains(where: \.takesReads) {
      report(
        "snapshot",
        "records can be read into files and postgres sinks only, and this pipeline has none")
    }
    if source.onInvalidReplay == .snapshot, !sinks.contains(where: \.keepsPosition) {
      report(
        "on_invalid_replay",
        "only into postgres sinks records are read again when events are missing, and this "
          + "pipeline has none; choose \"earliest\", and run 'pubsub-etl snapshot' afterwards")
    }
  }

  /// Reports a `route` in another place than the last of the pipeline's stages, sinks that it names and
  /// the pipeline does not have, and sinks that nothing goes to.
  func checkRoute(
    _ reader: JSONReader, _ stages: [StageConfiguration], sinks: [any ConfiguredSink],
    _ topics: [SourceConfiguration.Topic]
  ) {
    func report(_ stage: StageConfiguration, _ message: String) {
      reader.mistakes.append(
        JSONMistake(path: stage.path, position: stage.value.position, message: message))
    }
    for stage in sinks.flatMap(\.stages) where stage.type == Route.type {
      report(stage, "'route' is a stage of the pipeline, not of one sink")
    }
    for stage in stages.dropLast() where stage.type == Route.type {
      report(stage, "'route' has to be the last of the pipeline's stages; the others go before it")
    }
    guard let stage = stages.last, stage.type == Route.type, reader.mistakes.isEmpty,
      let route = stage.transform() as? Route
    else { return }
    let names = sinks.map(\.name)
    for sink in route.sinks where !names.contains(sink) {
      report(stage, "unknown sink '\(sink)'; the sinks are: \(names.joined(separator: ", "))")
    }
    for name in names where !route.sinks.contains(name) {
      report(stage, "nothing goes to sink '\(name)'; name it in a route or in 'default'")
    }
    // A channel brings objects that its name does not tell, and stages may have changed `_entity`.
    let topics = topics.map(\.name)
    let entity = "_entity"
    guard !self.replacesTopics, !topics.isEmpty, !topics.contains(where: TopicName.isChannel),
      !stages.dropLast().contains(where: { $0.value.text().contains("\"\(entity)\"") })
    else { return }
    for (rule, reason) in route.unreachable(among: topics.map { TopicName.entity($0) }) {
      reader.mistakes.append(
        JSONMistake(
          path: "\(stage.path)/routes/\(rule)",
          position: stage.value["routes"]?.array?[rule].position ?? stage.value.position,
          message: reason))
    }
  }

  /// The member `start` of a sink.
  func sinkStart(_ reader: JSONReader) -> SinkStart? {
    guard reader.any("start")?.string != "earliest" else {
      reader.report(
        "start",
        "a sink added to an existing pipeline can only start at \"now\"; to get earlier "
          + "events, give it a pipeline of its own with \"start\": \"earliest\"")
      return nil
    }
    return reader.choice("start")
  }
}
