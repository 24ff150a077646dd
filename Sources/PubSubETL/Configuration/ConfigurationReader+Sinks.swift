import JSON

extension ConfigurationReader {
  static let maxSinkCount = 32

  /// Empty when there is none or one is not usable.
  func sinks(_ reader: JSONReader) -> [any ConfiguredSink] {
    guard let readers = reader.objects("sinks", required: true) else { return [] }
    if readers.isEmpty { reader.report("sinks", "at least one sink is expected") }
    if readers.count > Self.maxSinkCount {
      reader.report(
        "sinks",
        "\(readers.count) sinks, at most \(Self.maxSinkCount) share a pipeline; put the others into "
          + "a pipeline of their own")
    }
    var sinks: [any ConfiguredSink] = []
    for sinkReader in readers {
      guard let sink = SinkRegistry.sink(reading: sinkReader, with: self) else { continue }
      if sinks.contains(where: { $0.name == sink.name }) {
        sinkReader.report(
          "name",
          "two sinks have the name '\(sink.name)', which is their identity; give one another \"name\""
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

  /// The member `start` of a sink.
  func sinkStart(_ reader: JSONReader) -> SinkStart? {
    guard reader.any("start")?.string != "earliest" else {
      reader.report(
        "start",
        "a sink that joins an old checkpoint begins at \"now\"; for what was exported before, read "
          + "the topics with a pipeline of its own, \"start\": \"earliest\"")
      return nil
    }
    return reader.choice("start")
  }
}
