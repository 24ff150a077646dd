import Checkpoint
import Clocks
import JSON
import Logging

/// The sinks a pipeline file can name. To add one, add its line.
enum SinkRegistry {
  static var types: [any ConfiguredSink.Type] {
    [
      FilesSettings.self,
      PostgresSettings.self,
      StdoutSettings.self,
    ]
  }

  /// What `type` may be, for messages and for the schema of pipeline files.
  static var names: [String] { self.types.map { $0.type } }

  /// Makes the sink that an element of `sinks` describes; nil when none can be made.
  static func sink(reading reader: JSONReader) -> (any ConfiguredSink)? {
    guard let name = reader.string("type", required: true) else { return nil }
    guard let type = self.types.first(where: { $0.type == name }) else {
      reader.reportUnknown("type", name, called: "sink", known: self.names)
      return nil
    }
    return type.read(reader)
  }

  /// Definitions for the schema of pipeline files, by name.
  static var schemaDefinitions: [(name: String, schema: JSONSchema)] {
    self.types.map { type in
      ("\(type.type)Sink", .object(type.allDeclarations).described(type.schemaDescription))
    }
  }

  /// The failure for an error of one of the sinks; nil for other errors.
  static func failure(_ error: any Error) -> RunFailure? {
    for case let type as any FailingSink.Type in self.types {
      if let failure = type.failure(error) { return failure }
    }
    return nil
  }

  /// How a removed sink stands; nil when there is nothing to tell.
  static func status(
    removed name: String, _ kept: RemovedSink, _ reading: SinkStatusReading
  ) throws -> SinkStatus? {
    for case let type as any RemovableSink.Type in self.types {
      if let status = try type.status(removed: name, kept, reading) { return status }
    }
    return nil
  }

  /// Finishes what removed sinks had in progress; `removed_sinks` of the next checkpoint.
  static func finishRemoved(
    _ succession: SinkSuccession?, pipeline: String, org: String, clock: ProcessClock,
    log: (Logger.Level, String) -> Void
  ) throws -> [String: RemovedSink] {
    guard var succession else { return [:] }
    for case let type as any RemovableSink.Type in self.types {
      succession.removed = try type.finishRemoved(
        succession, pipeline: pipeline, org: org, clock: clock, log: log)
    }
    return succession.removed
  }

  private static var connectingTypes: [any ConnectingSink.Type] {
    self.types.compactMap { $0 as? any ConnectingSink.Type }
  }

  /// The passwords of a URL, as the sinks that connect by one read it.
  static func passwords(in url: String) -> [String] {
    self.connectingTypes.flatMap { $0.passwords(in: url) }
  }

  /// Values that sinks read from the environment and that no output may contain.
  static func secrets(in environment: Environment) -> [String] {
    self.connectingTypes.flatMap { type in
      type.secretVariables.compactMap { environment.variable($0) }
    }
  }
}

extension Kind<[any ConfiguredSink]> {
  private static var maxCount: Int { 32 }

  /// Nil when there is none or one is not usable.
  static var sinks: Self {
    Self(
      .list(
        of: .oneOf(SinkRegistry.names.map { .reference("\($0)Sink") }), minCount: 1,
        maxCount: Self.maxCount),
      objects: SinkRegistry.types.map { $0.allDeclarations }
    ) { reader, name, isRequired in
      guard let readers = reader.objects(name, required: isRequired) else { return nil }
      if readers.isEmpty { reader.report(name, "expected at least one sink") }
      if readers.count > Self.maxCount {
        reader.report(
          name,
          "a pipeline can have at most \(Self.maxCount) sinks, found \(readers.count); put "
            + "the others into another pipeline")
      }
      var sinks: [any ConfiguredSink] = []
      for reader in readers {
        guard let sink = SinkRegistry.sink(reading: reader) else { continue }
        if sinks.contains(where: { $0.name == sink.name }) {
          reader.report(
            "name", "two sinks are named '\(sink.name)'; give one of them another \"name\"")
        }
        if let exclusive = sink as? any ExclusiveSink,
          let conflict = sinks.lazy.compactMap({ exclusive.conflict(with: $0) }).first
        {
          reader.report(conflict.member, conflict.message)
        }
        sinks.append(sink)
      }
      return sinks.isEmpty ? nil : sinks
    }
  }
}
