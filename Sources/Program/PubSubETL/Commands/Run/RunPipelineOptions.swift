import ArgumentParser
import JSON

/// The pipeline of a run: a file, or a few options in place of one.
struct RunPipelineOptions: ParsableArguments {
  @Argument(
    help: "Pipeline file, for example pipelines/opps.json; none with --topic.",
    completion: .file())
  var pipeline: String?

  @OptionGroup var changes: PipelineChanges

  @Option(
    help: ArgumentHelp(
      "Run without a pipeline file: the topic to export from its earliest event on. May be given "
        + "several times. Needs --to.", valueName: "topic"))
  var topic: [String] = []

  @Option(
    help: ArgumentHelp(
      "Where the rows of --topic go: a directory, or postgresql://USER@HOST/DATABASE. A database gets "
        + "all records and their changes, a directory changes only. The state of DIRECTORY is in "
        + "DIRECTORY.state; a database keeps its positions itself.",
      valueName: "place"), completion: .directory)
  var to: String?

  @Option(
    help: ArgumentHelp(
      "Org file for --topic; default: the environment variables SF_LOGIN_URL, SF_CLIENT_ID and "
        + "SF_CLIENT_SECRET.", valueName: "file"), completion: .file())
  var org: String?

  @Flag(help: "Print the pipeline file that --topic and --to stand for, and run nothing.")
  var print = false

  func validate() throws {
    try FilePath.validate(self.org, of: "--org")
    let given = [
      ("--topic", !self.topic.isEmpty), ("--to", self.to != nil), ("--org", self.org != nil),
      ("--print", self.print),
    ].filter(\.1).map(\.0)
    if self.pipeline != nil {
      guard given.isEmpty else {
        throw ValidationError("\(given[0]) belongs to a run without a pipeline file")
      }
      return
    }
    guard !given.isEmpty else {
      throw ValidationError(
        "expected a pipeline file, or --topic and --to; 'pubsub-etl init' writes a pipeline file")
    }
    guard !self.topic.isEmpty, let to else {
      let missing = [("--topic", self.topic.isEmpty), ("--to", self.to == nil)].filter(\.1).map(\.0)
      throw ValidationError("\(given[0]) needs \(missing.joined(separator: " and "))")
    }
    for topic in self.topic {
      if let mistake = PipelineDraft.mistake(inTopic: topic) {
        throw ValidationError("--topic: \(mistake)")
      }
    }
    if self.changes.root != nil {
      throw ValidationError("--root belongs to a pipeline file; --to has the place of the output")
    }
    do throws(DestinationMistake) {
      _ = try PipelineDraft(topics: self.topic, org: nil, destination: to, states: "/")
    } catch {
      throw ValidationError("--to: \(error)")
    }
  }

  /// The pipeline without a file; nil if there is a file.
  ///
  /// - Throws: `ConfigurationError` for a mistake in the org file; `RunFailure` if the state has no
  ///   place.
  func draft(environment: Environment = .process) throws -> PipelineDraft? {
    guard self.pipeline == nil, let to else { return nil }
    let org = self.org.map { FilePath.resolve($0, base: FilePath.workingDirectory) }
    return try PipelineDraft(
      topics: self.topic, org: try PipelineDraft.org(org, environment: environment),
      destination: to, states: try Self.states(environment))
  }

  /// The pipeline file that the options stand for; nil if there is a file.
  ///
  /// - Throws: what `draft` throws; `ConfigurationError` for a `--set` that does not fit.
  func document(environment: Environment = .process) throws -> JSONValue? {
    guard var document = try self.draft(environment: environment)?.document else { return nil }
    let mistakes = JSONMistakes()
    for change in try self.changes.overrides() {
      change.apply(to: &document, mistakes: mistakes)
    }
    guard mistakes.isEmpty else {
      throw ConfigurationError(
        mistakes: mistakes.inTextOrder.map { ConfigurationMistake(file: "--set", mistake: $0) }
      ).placed("--set")
    }
    return document
  }

  /// Where programs of a user keep their state (XDG Base Directory Specification).
  private static func states(_ environment: Environment) throws -> String {
    if let directory = environment.variable("XDG_STATE_HOME"), directory.hasPrefix("/") {
      return "\(directory)/pubsub-etl"
    }
    guard let home = environment.variable("HOME"), home.hasPrefix("/") else {
      throw RunFailure(
        .unwritable, "there is no directory for the state: set HOME or XDG_STATE_HOME")
    }
    return "\(home)/.local/state/pubsub-etl"
  }

  /// The pipeline as it is meant. Its mistakes go to standard error, and the command ends with 78.
  func loadOrExit(environment: Environment = .process) throws -> PipelineConfiguration {
    try PipelineOptions.orExit { try self.load(environment: environment) }
  }

  /// - Throws: `ConfigurationError` with every mistake; `RunFailure` if the state has no place.
  func load(environment: Environment = .process) throws -> PipelineConfiguration {
    if let pipeline {
      return try PipelineConfiguration.load(
        file: pipeline, root: self.changes.root, overrides: self.changes.overrides(),
        environment: environment)
    }
    // Without a file there is a draft: `validate` has seen to it.
    guard let draft = try self.draft(environment: environment) else {
      throw ValidationError("expected a pipeline file, or --topic and --to")
    }
    return try PipelineConfiguration.load(
      draft, overrides: self.changes.overrides(), environment: environment)
  }

  /// The name, the checkpoint and `notify` of a pipeline file that has mistakes elsewhere.
  func incidentPlace(environment: Environment = .process) -> PipelineConfiguration? {
    guard let pipeline, let overrides = try? self.changes.overrides() else { return nil }
    return PipelineConfiguration.incidentPlace(
      file: pipeline, root: self.changes.root, overrides: overrides, environment: environment)
  }
}
