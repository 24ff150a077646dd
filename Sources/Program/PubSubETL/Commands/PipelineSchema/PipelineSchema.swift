import JSON
import Pipeline

/// The JSON Schema of pipeline files (`pipelines/pipeline.schema.json`), from the registries and the
/// defaults of the program.
enum PipelineSchema {
  static var document: JSONValue {
    var members: [JSONMember] = [
      JSONMember("$schema", "http://json-schema.org/draft-07/schema#"),
      JSONMember("title", "Pipeline of pubsub-etl"),
    ]
    members += Self.pipeline.value.members ?? []
    let definitions =
      Self.values + Self.source + TransformRegistry.schemaDefinitions
      + SinkRegistry.schemaDefinitions
    members.append(
      JSONMember(
        "definitions",
        JSONValue(.object(definitions.map { JSONMember($0.name, $0.schema.value) }))))
    return JSONValue(.object(members))
  }

  /// The document as its file holds it.
  static var text: String { Self.document.text(.pretty) + "\n" }

  private static var pipeline: JSONSchema {
    .object([
      .optional("$schema", .text(), "Where this schema is, for editors."),
      .required("version", .constant(1), "Version of the format of pipeline files."),
      .required(
        "name", .reference("identifier"), "Identity of the pipeline in file names and checkpoints."
      ),
      .required("source", .reference("source"), "Where events come from."),
      .optional(
        "stages", .list(of: .reference("stage")),
        "What is done to the columns of all sinks, in this order.", default: []),
      .required(
        "sinks",
        .list(
          of: .oneOf(SinkRegistry.names.map { .reference("\($0)Sink") }), minCount: 1,
          maxCount: ConfigurationReader.maxSinkCount),
        "Where the rows of events go."),
      .optional(
        "commit", Self.commit, "When events that have arrived are committed together."),
      .required(
        "checkpoint", Self.checkpoint, "Where positions are stored between runs."),
      .optional(
        "dead_letter", Self.deadLetter, "Where events that cannot be decoded or written go."),
      .optional("run", Self.run, "When a run ends, and with which exit code."),
      .optional("retry", Self.retry, "How long and how often failures are retried."),
      .optional(
        "repair", Self.repair, "What happens to records that events have left incomplete or wrong."),
      .optional(
        "allowance", Self.allowance, "What a run may use of the org's daily delivered events."),
    ])
  }

  private static var commit: JSONSchema {
    let defaults = CommitConfiguration()
    // The numbers of other sinks are named, since they replace this one.
    let others = SinkRegistry.types.filter { $0.commitMaxEvents != defaults.maxEvents }
      .map { " With a \($0.type) sink the default is \($0.commitMaxEvents)." }
    return .object([
      .optional(
        "max_events", .reference("integer"), "Events in a commit." + others.joined(),
        default: .integer(defaults.maxEvents)),
      .optional(
        "max_bytes", .reference("byteCount"), "Bytes of encoded output in a commit.",
        default: Self.byteCount(defaults.maxBytes)),
      .optional(
        "max_delay", .reference("duration"),
        "How long an event waits for others before it is committed.",
        default: Self.duration(defaults.maxDelay)),
    ])
  }

  private static var checkpoint: JSONSchema {
    .object([
      .required("type", .constant("file"), "A file per pipeline."),
      .required("directory", .reference("path"), "Holds the state; relative to this file."),
      .optional(
        "renew_after", .reference("duration"),
        "A position that was not confirmed for this long is renewed before a run ends as "
          + "caught up.",
        default: Self.duration(CheckpointConfiguration(directory: "").renewAfter)),
    ])
  }

  private static var deadLetter: JSONSchema {
    .object([
      .optional(
        "directory", .reference("path"),
        "Directory for dead letter files; default: the folder dead in the checkpoint's directory."),
      .optional(
        "max", .reference("integer"),
        "Number of dead letters that a run may write and still succeed; default: 0, or any number "
          + "if max_ratio is set. A run stores all letters of a commit before it ends with 65, so there "
          + "may be more."),
      .optional(
        "max_ratio", .oneOf([.fraction(), .reference("variable")]),
        "Share of a run's events, from 0 to 1, that may become dead letters; it counts from "
          + "\(RunnerConfiguration.ratioFromEvents) events on."),
      .optional(
        "payload", .choice(of: DeadLetterConfiguration.PayloadChoice.self),
        "full: a dead letter keeps the event's payload, and can be retried; sealed: the same, "
          + "encrypted with key; none: position and reason only. With a mask stage, sealed or none.",
        default: .string(DeadLetterConfiguration.PayloadChoice.full.rawValue)),
      .optional(
        "key", .reference("variable"),
        "Variable with the key that seals payloads: 32 bytes as 64 hexadecimal digits or base64."),
      .optional(
        "key_file", .reference("path"), "File with the key, instead of key."),
      .optional(
        "old_keys", .list(of: .reference("variable"), minCount: 1),
        "Earlier keys, for letters that were sealed with them."),
    ])
  }

  private static var retry: JSONSchema {
    let defaults = RetryConfiguration()
    return .object([
      .optional(
        "give_up_after", .reference("duration"),
        "A run that ends by itself stops retrying (exit code 69) when the service, the login or a database "
          + "has failed for this long; a run that follows never does. For a managed subscription that "
          + "another client has, it waits "
          + "\(defaults.subscriptionPatience.components.seconds / 60) minutes unless this is set.",
        default: Self.duration(defaults.giveUpAfter)),
      .optional(
        "min_delay", .reference("duration"), "Pause after the first failure; it doubles each time.",
        default: Self.duration(defaults.minDelay)),
      .optional(
        "max_delay", .reference("duration"), "Longest pause between two attempts.",
        default: Self.duration(defaults.maxDelay)),
      .optional(
        "refused_delay", .reference("duration"),
        "A run that follows asks again for a topic that the service refuses after this time.",
        default: Self.duration(defaults.refusedDelay)),
    ])
  }

  private static var repair: JSONSchema {
    let defaults = RepairConfiguration()
    return .object([
      .optional(
        "mode", .choice(of: RepairConfiguration.Mode.self),
        "auto: PostgreSQL sinks read them again over REST; off: they stay marked.",
        default: .string(defaults.mode.rawValue)),
      .optional(
        "max_calls", .oneOf([.integer(from: 1, through: 1_000_000), .reference("variable")]),
        "API requests of a day, over all runs, at most; by default 5 % of the org's daily requests."
      ),
      .optional(
        "reserve", .oneOf([.integer(from: 0, through: 100), .reference("variable")]),
        "Percent of the org's daily API requests that has to be left for others.",
        default: .integer(defaults.reserve)),
    ])
  }

  private static var allowance: JSONSchema {
    .object([
      .optional(
        "reserve",
        .oneOf([
          .integer(from: 0, through: 1_000_000_000), .text(pattern: "^(100|[0-9]{1,2})%$"),
          .reference("variable"),
        ]),
        "The reserve for the org's other subscribers: a share such as 20%, or a number of "
          + "events. A run does not start below it, and stops in time (exit code 75).")
    ])
  }

  private static var run: JSONSchema {
    let defaults = RunConfiguration()
    return .object([
      .optional(
        "until",
        .oneOf([
          .choice(["caught_up", "forever"]), .reference("variable"),
          .object([.required("events", .reference("integer"), "Number of events.")]),
          .object([.required("duration", .reference("duration"), "Time since the start.")]),
        ]),
        "When a run ends: caught_up: once it has exported what is available; forever: on a "
          + "signal; or after a number of events or a time.", default: "caught_up"),
      .optional(
        "quiet", .reference("duration"), "Silence after which a topic is treated as caught up.",
        default: Self.duration(defaults.quiet)),
      .optional(
        "if_running", .choice(of: RunConfiguration.IfRunning.self),
        "What a run does if another one is running the pipeline: fail with 75, skip with 0, or "
          + "wait.",
        default: .string(defaults.ifRunning.rawValue)),
      .optional(
        "fail_on", .list(of: .choice(of: RunConfiguration.Attention.self)),
        "Kinds of attention that end the run with exit code 65.", default: []),
    ])
  }

  /// Kinds of values that occur in several places. Texts may hold variables.
  private static var values: [(name: String, schema: JSONSchema)] {
    [
      ("variable", .text(pattern: #"\$\{"#).described("A variable that provides the value.")),
      (
        "identifier",
        .text(pattern: #"^([A-Za-z0-9][A-Za-z0-9._-]{0,63}|.*\$\{.*)$"#)
          .described("1 to 64 letters, digits, '-', '_' and '.'.")
      ),
      (
        "integer",
        .oneOf([.integer(from: 0), .reference("variable")]).described("A number, 0 or more.")
      ),
      (
        "path",
        .text(minLength: 1).described("Relative paths are relative to this file.")
      ),
      (
        "byteCount",
        .oneOf([
          .integer(from: 0),
          .text(pattern: #"^([0-9]+(B|kB|MB|GB|KiB|MiB|GiB)?|.*\$\{.*)$"#),
        ]).described("A number of bytes, for example 16MiB.")
      ),
      (
        "duration",
        .text(
          pattern: #"^(([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?|0|.*\$\{.*)$"#,
          minLength: 1
        ).described("A time, for example 500ms, 90s or 1h30m.")
      ),
    ]
  }

  // MARK: Defaults as a user writes them

  static func byteCount(_ count: Int) -> JSONValue {
    for (unit, size) in [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
    where count % size == 0 {
      return .string("\(count / size)\(unit)")
    }
    return .integer(count)
  }

  static func duration(_ duration: Duration) -> JSONValue {
    let seconds = duration.components.seconds
    for (unit, length) in [("h", Int64(3600)), ("m", 60)] where seconds % length == 0 {
      return .string("\(seconds / length)\(unit)")
    }
    return .string("\(seconds)s")
  }
}
