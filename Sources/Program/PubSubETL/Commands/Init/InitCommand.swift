import ArgumentParser
import JSON
import Pipeline

/// `pubsub-etl init`: a pipeline file, its variables and what to do next.
struct InitCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "init",
    abstract: "Writes a short pipeline file and a file for its variables.",
    discussion: """
      Writes NAME.json and NAME.env into the working directory, and prints the next commands and a \
      line for the crontab. Connects to nothing, and never replaces a file. NAME.env has the \
      variables that are set now; fill in the others. Only its owner can read it.
      On a terminal, it asks for what no option says. Without a terminal it asks nothing.
      Exit codes: 0 written; 64 command line, or an answer is missing; 74 a file exists or cannot be \
      written; 78 mistakes in the org file.

      EXAMPLES:
        pubsub-etl init                              ask for name, topic and sink
        pubsub-etl init deals --topic /data/OpportunityChangeEvent --sink files
        pubsub-etl init crm --org org.json --topic /data/ChangeEvents --sink files
      """)

  @Argument(help: "Name of the pipeline: letters, digits, '-', '_' and '.'.")
  var name: String?

  @Option(
    help: ArgumentHelp(
      "Org file (pipelines/org.json is an example) that the pipeline names. Default: the "
        + "pipeline has a login by SF_LOGIN_URL, SF_CLIENT_ID and SF_CLIENT_SECRET.",
      valueName: "file"), completion: .file())
  var org: String?

  @Option(
    help: "Topic, as 'pubsub-etl topics' lists them. May be given several times.")
  var topic: [String] = []

  @Option(help: ArgumentHelp("files or postgres.", valueName: "kind"))
  var sink: String?

  func validate() throws {
    try FilePath.validate(self.org, of: "--org")
    if let mistake = self.name.flatMap(Self.mistake(inName:)) {
      throw ValidationError("the name of the pipeline: \(mistake)")
    }
    for topic in self.topic {
      if let mistake = PipelineDraft.mistake(inTopic: topic) {
        throw ValidationError("--topic: \(mistake)")
      }
    }
    if let sink, Self.sink(sink) == nil {
      throw ValidationError("--sink: \(Self.unknownSink)")
    }
  }

  private static func mistake(inName name: String) -> String? {
    Kind<String>.identifierMistake(name)
  }

  private static func sink(_ type: String) -> (any DraftedSink.Type)? {
    SinkRegistry.draftedTypes.first { $0.type == type }
  }

  private static var unknownSink: String {
    "expected \(SinkRegistry.draftedTypes.map { $0.type }.joined(separator: " or "))"
  }

  func run() throws {
    SignalWatcher.endAtOnce()
    let secrets = SecretMask()
    do {
      let environment = Environment.process
      secrets.add(secretsOf: environment)
      let directory = FilePath.workingDirectory
      let ask: Ask? = StandardStream.canAsk ? { Self.ask($0, $1) } : nil
      let plan = try self.plan(directory: directory, environment: environment, ask: ask)
      try NewFiles.make(plan.files)
      for line in plan.report {
        try StandardStream.print(PrintableText(line: line, hiding: secrets))
      }
    } catch let error as ConfigurationError {
      StandardStream.tell(error.printable)
      throw error.exitCode.error
    } catch let error as RunFailure {
      throw error.reported(hiding: secrets)
    }
  }

  /// Asks on the terminal until the answer is usable.
  private static func ask(_ question: String, _ mistake: (String) -> String?) -> String? {
    while let answer = StandardStream.ask(
      PrintableText.unended("\(question): ", hiding: SecretMask()))
    {
      guard let mistake = mistake(answer) else { return answer }
      StandardStream.tell(PrintableText(line: mistake, hiding: SecretMask()))
    }
    return nil
  }
}

extension InitCommand {
  /// The files to make, and what to print afterwards.
  struct Plan {
    var files: [NewFiles.File]
    /// One line each.
    var report: [String]
  }

  typealias Ask = (_ question: String, _ mistake: (String) -> String?) -> String?

  /// - Parameters:
  ///   - directory: where the files go. Absolute.
  ///   - ask: asks for an answer until it is usable; its result is nil if there will be none. Nil if
  ///     nobody can be asked.
  /// - Throws: `RunFailure` for missing answers; `ConfigurationError` for mistakes in the org file.
  func plan(directory: String, environment: Environment, ask: Ask?) throws -> Plan {
    guard directory.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F }) else {
      throw RunFailure(
        .answers,
        "the name of the working directory has a control character, which no crontab can "
          + "hold; change to another directory")
    }
    var name = self.name
    var topics = self.topic
    var type = self.sink
    if let ask {
      name = name ?? ask("Name of the pipeline, such as deals", Self.mistake(inName:))
      if topics.isEmpty, name != nil {
        topics =
          ask(
            "Topic ('pubsub-etl topics' lists them), such as /data/OpportunityChangeEvent",
            PipelineDraft.mistake(inTopic:)
          ).map { [$0] } ?? []
      }
      if type == nil, !topics.isEmpty {
        type = ask("Where the rows go, files or postgres") {
          Self.sink($0) == nil ? Self.unknownSink : nil
        }
      }
    }
    guard let name, !topics.isEmpty, let sink = type.flatMap(Self.sink) else {
      let missing = [
        name == nil ? "NAME" : nil, topics.isEmpty ? "--topic" : nil, type == nil ? "--sink" : nil,
      ].compactMap(\.self)
      throw RunFailure(
        .answers,
        "\(missing.joined(separator: ", ")): not given; for example: pubsub-etl init "
          + "\(name ?? "deals") --topic \(topics.first ?? "/data/OpportunityChangeEvent") --sink "
          + (type ?? "files"))
    }
    let draft = PipelineDraft(
      name: name, topics: topics, org: try PipelineDraft.org(self.org, environment: environment),
      sink: sink)
    var documents = [draft.document]
    if let org {
      let path = FilePath.resolve(org, base: directory)
      documents.append(try PipelineConfiguration.document(path).value)
    }
    let variables = EnvironmentFile(for: documents, environment)
    let files = [
      NewFiles.File(path: "\(directory)/\(name).json", text: draft.text, mode: 0o644),
      NewFiles.File(path: "\(directory)/\(name).env", text: variables.text, mode: 0o600),
    ]
    return Plan(
      files: files,
      report: Self.report(files.map(\.path), missing: variables.missing))
  }

  /// What was made, the next commands and the line of the crontab.
  private static func report(_ paths: [String], missing: [String]) -> [String] {
    let (pipeline, variables) = (FilePath.shellWord(paths[0]), FilePath.shellWord(paths[1]))
    let load = "set -a; . \(variables); set +a"
    let program = FilePath.shellWord(FilePath.real("/proc/self/exe") ?? "pubsub-etl")
    let entry = "\(load); \(program) run \(pipeline) --max-duration 9m"
    return [
      "wrote \(paths[0])",
      "wrote \(paths[1])"
        + (missing.isEmpty ? "" : "; fill in \(missing.joined(separator: ", "))"),
      "", "Next:", "  \(load)", "  pubsub-etl check \(pipeline) --connect",
      "  pubsub-etl run \(pipeline) --dry-run --max-events 10", "  pubsub-etl run \(pipeline)", "",
      "Line for the crontab (crontab -e), every 10 minutes:",
      // Cron ends the command at a percent sign.
      "  */10 * * * * \(entry.replacing("%", with: "\\%"))",
    ]
  }
}
