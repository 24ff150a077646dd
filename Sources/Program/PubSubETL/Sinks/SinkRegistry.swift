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
  static func sink(
    reading reader: JSONReader, with configuration: ConfigurationReader
  ) -> (any ConfiguredSink)? {
    guard let name = reader.string("type", required: true) else { return nil }
    guard let type = self.types.first(where: { $0.type == name }) else {
      reader.reportUnknown("type", name, called: "sink", known: self.names)
      return nil
    }
    defer { reader.finish() }
    return type.init(reading: reader, with: configuration)
  }

  /// Definitions for the schema of pipeline files, by name.
  static var schemaDefinitions: [(name: String, schema: JSONSchema)] {
    self.types.map { type in
      let members: [JSONSchema.Member] =
        [
          .required("type", .constant(.string(type.type)), "Kind of the sink."),
          .optional(
            "name", .reference("identifier"), "Identity of the sink in checkpoints and reports.",
            default: .string(type.type)),
        ] + type.schemaMembers + [
          .optional(
            "stages", .list(of: .reference("stage")),
            "Stages for this sink only, after those of the pipeline.", default: []),
          .optional(
            "start", .choice(of: SinkStart.self),
            "Where the sink begins if the pipeline's checkpoint does not know it."),
        ]
      return ("\(type.type)Sink", .object(members).described(type.schemaDescription))
    }
  }

  /// The failure for an error of one of the sinks; nil for other errors.
  static func failure(_ error: any Error) -> RunFailure? {
    for type in self.types {
      if let failure = type.failure(error) { return failure }
    }
    return nil
  }

  /// How a removed sink stands; nil when there is nothing to tell.
  static func status(
    removed name: String, _ kept: RemovedSink, _ reading: SinkStatusReading
  ) throws -> (any SinkStatus)? {
    for type in self.types {
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
    for type in self.types {
      succession.removed = try type.finishRemoved(
        succession, pipeline: pipeline, org: org, clock: clock, log: log)
    }
    return succession.removed
  }

  /// The passwords of a URL, as the sinks that connect by one read it.
  static func passwords(in url: String) -> [String] {
    self.types.flatMap { $0.passwords(in: url) }
  }

  /// Values that sinks read from the environment and that no output may contain.
  static func secrets(in environment: Environment) -> [String] {
    self.types.flatMap { type in type.secretVariables.compactMap { environment.variable($0) } }
  }
}
