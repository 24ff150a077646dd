import HTTPClient
import JSON
import Pipeline

/// Reads the parts of a pipeline document. Every function returns nil when a part could not be
/// made; what was wrong has been reported then.
final class ConfigurationReader {
  let file: String
  let base: String
  let environment: Environment
  let secrets = SecretMask()
  let secretFiles: SecretFiles
  /// `--set` has replaced the topics of the file, perhaps by some of them: stages may name objects of the others.
  let replacesTopics: Bool
  private(set) var mistakesOfOtherFiles: [ConfigurationMistake] = []
  /// Another file could not be read because no descriptor was free.
  private(set) var lacksDescriptors = false

  init(
    file: String, base: String, environment: Environment, secretFiles: SecretFiles,
    replacesTopics: Bool = false
  ) {
    self.file = file
    self.base = base
    self.environment = environment
    self.secretFiles = secretFiles
    self.replacesTopics = replacesTopics
  }

  func pipeline(_ reader: JSONReader) -> PipelineConfiguration? {
    _ = reader.string("$schema")
    if let version = reader.integer("version", required: true), version != 1 {
      let isQuotable = reader.any("version")?.holdsSubstitution == false
      reader.report("version", "unknown version\(isQuotable ? " \(version)" : ""); known: 1")
    }
    let name = self.identifier(reader, "name", required: true)
    let source = reader.object("source", required: true).flatMap(self.source)
    let stages = self.stages(reader)
    let sinks = self.sinks(reader)
    let commit = self.commit(reader.object("commit"), sinks: sinks)
    let checkpoint = reader.object("checkpoint", required: true).flatMap(self.checkpoint)
    let deadLetter = self.deadLetter(reader.object("dead_letter"), checkpoint: checkpoint)
    let run = self.run(reader.object("run"))
    let retry = reader.object("retry").map(self.retry)
    let repair = reader.object("repair").map(self.repair)
    let allowance = reader.object("allowance").map(self.allowance)
    reader.finish()
    self.checkMasks(reader, stages: stages + sinks.flatMap(\.stages), deadLetter)
    self.checkTopics(reader, source?.topics ?? [], sinks: sinks)
    self.checkReads(reader, source, sinks: sinks)
    self.checkRoute(reader, stages, sinks: sinks, source?.topics ?? [])
    guard let name, let source, let checkpoint, let deadLetter, !sinks.isEmpty else { return nil }
    return PipelineConfiguration(
      file: self.file, base: self.base, name: name, source: source, stages: stages, sinks: sinks,
      commit: commit, checkpoint: checkpoint, deadLetter: deadLetter, run: run,
      retry: retry ?? RetryConfiguration(), repair: repair ?? RepairConfiguration(),
      allowance: allowance ?? AllowanceConfiguration(),
      secrets: self.secrets, secretFiles: self.secretFiles.paths,
      inputFiles: self.secretFiles.inputs)
  }

  /// The stages of the pipeline or of a sink.
  func stages(_ reader: JSONReader) -> [StageConfiguration] {
    (reader.elements("stages") ?? []).map { path, value in
      let value = self.withKey(value, path, reader.mistakes)
      // Made once to find its mistakes; the run makes its own.
      _ = TransformRegistry.transform(
        reading: JSONReader(value, path: path, mistakes: reader.mistakes))
      return StageConfiguration(path: path, value: value)
    }
  }

  private func commit(_ reader: JSONReader?, sinks: [any ConfiguredSink]) -> CommitConfiguration {
    var commit = CommitConfiguration(sinks: sinks)
    guard let reader else { return commit }
    commit.maxEvents = reader.integer("max_events", in: 1...1_000_000) ?? commit.maxEvents
    commit.maxBytes = reader.byteCount("max_bytes", in: 1 << 10...1 << 30) ?? commit.maxBytes
    commit.maxDelay =
      reader.duration("max_delay", in: .milliseconds(1) ... .seconds(600)) ?? commit.maxDelay
    reader.finish()
    return commit
  }

  private func checkpoint(_ reader: JSONReader) -> CheckpointConfiguration? {
    enum Kind: String, CaseIterable { case file }
    _ = reader.choice("type", of: Kind.self, called: "checkpoint", required: true)
    let directory = self.path(reader, "directory", required: true)
    // Retention is 72 h: renewing later than half of it would come too late after one miss.
    let renewAfter = reader.duration("renew_after", in: .seconds(60) ... .seconds(36 * 3600))
    reader.finish()
    guard let directory else { return nil }
    var checkpoint = CheckpointConfiguration(directory: directory)
    checkpoint.renewAfter = renewAfter ?? checkpoint.renewAfter
    return checkpoint
  }

  private func deadLetter(
    _ reader: JSONReader?, checkpoint: CheckpointConfiguration?
  ) -> DeadLetterConfiguration? {
    let directory = reader.flatMap { self.path($0, "directory") }
    let max = reader?.integer("max", in: 0 ... .max)
    let maxRatio = reader?.fraction("max_ratio")
    let keys = reader.map(self.sealingKeys)
    let payload = reader.flatMap { self.payload($0, key: keys?.present) }
    reader?.finish()
    guard let directory = directory ?? checkpoint.map({ "\($0.directory)/dead" }) else {
      return nil
    }
    var deadLetter = DeadLetterConfiguration(directory: directory)
    // Without max, a ratio alone allows any number of letters.
    deadLetter.max = max ?? (maxRatio == nil ? deadLetter.max : nil)
    deadLetter.maxRatio = maxRatio
    deadLetter.payload = payload ?? deadLetter.payload
    deadLetter.keys = [keys?.present].compactMap { $0 } + (keys?.old ?? [])
    return deadLetter
  }

  private func run(_ reader: JSONReader?) -> RunConfiguration {
    var run = RunConfiguration()
    guard let reader else { return run }
    run.until = self.until(reader) ?? run.until
    run.quiet = reader.duration("quiet", in: .seconds(1) ... .seconds(3600)) ?? run.quiet
    run.ifRunning = reader.choice("if_running") ?? run.ifRunning
    if let kinds = reader.elements("fail_on") {
      let known = RunConfiguration.Attention.allCases.map(\.rawValue)
      for kind in kinds {
        if let attention = kind.value.string.flatMap(RunConfiguration.Attention.init) {
          run.failOn.insert(attention)
        } else {
          let found = kind.value.quoted
          reader.mistakes.append(
            JSONMistake(
              path: kind.path, position: kind.value.position,
              message: "unknown kind \(found); known: \(known.joined(separator: ", "))"))
        }
      }
    }
    reader.finish()
    return run
  }

  private func until(_ reader: JSONReader) -> RunConfiguration.Until? {
    enum Word: String, CaseIterable {
      case forever
      case caughtUp = "caught_up"
    }
    guard let value = reader.any("until") else { return nil }
    switch value.content {
    case .string:
      return
        switch reader.choice(
          "until", of: Word.self, others: ["{\"events\": N}", "{\"duration\": \"10m\"}"])
      {
      case .caughtUp: .caughtUp
      case .forever: .forever
      case nil: nil
      }
    case .object:
      guard let limit = reader.object("until") else { return nil }
      let events = limit.integer("events", in: 1 ... .max)
      let duration = limit.duration("duration", in: .seconds(1) ... .seconds(366 * 86_400))
      limit.finish()
      if limit.has("events") == limit.has("duration") {
        reader.report("until", "expected either \"events\" or \"duration\"")
      }
      return events.map { .events($0) } ?? duration.map { .duration($0) }
    default:
      reader.report(
        "until",
        "expected \"caught_up\", \"forever\", {\"events\": N} or {\"duration\": \"10m\"}, found \(value.kind)"
      )
      return nil
    }
  }

  // MARK: - Values that occur in several parts

  /// A name that goes into file names: letters, digits, `-`, `_` and `.`, at most 64, the first a
  /// letter or digit.
  func identifier(_ reader: JSONReader, _ key: String, required: Bool = false) -> String? {
    guard let name = reader.string(key, required: required) else { return nil }
    let isValid =
      (1...64).contains(name.utf8.count)
      && name.utf8.enumerated().allSatisfy { index, byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"):
          true
        case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."): index > 0
        default: false
        }
      }
    guard isValid else {
      reader.report(
        key,
        "expected a name of 1 to 64 letters, digits, '-', '_' and '.', beginning with a letter or digit"
      )
      return nil
    }
    return name
  }

  /// An absolute path, from one that may be relative to the base.
  func path(_ reader: JSONReader, _ key: String, required: Bool = false) -> String? {
    guard let path = reader.string(key, required: required) else { return nil }
    guard !path.isEmpty, !path.utf8.contains(0) else {
      reader.report(key, "expected a path, found an empty text")
      return nil
    }
    // It would make a directory of that name.
    guard path != "~", !path.hasPrefix("~/"), !path.contains("$HOME"), !path.contains("${HOME}")
    else {
      reader.report(
        key,
        "only a shell replaces '~' and '$HOME' in a path; begin it with \"${HOME}/\", or write the "
          + "absolute path")
      return nil
    }
    return FilePath.resolve(path, base: self.base)
  }

  func address(_ reader: JSONReader, _ key: String, _ text: String) -> ServiceAddress? {
    do throws(ServiceAddress.ParseError) {
      return try ServiceAddress(parsing: text)
    } catch {
      reader.report(key, "\(error)")
      return nil
    }
  }

  /// The path of another file of configuration: relative to the pipeline file, wherever `--root`
  /// puts the output, or to the base if it is there and not beside the pipeline file.
  func configurationPath(_ reader: JSONReader, _ key: String) -> String? {
    guard let moved = self.path(reader, key), let text = reader.string(key) else { return nil }
    let directory = FilePath.directory(of: self.file)
    let file = FilePath.resolve(text, base: FilePath.real(directory) ?? directory)
    return FilePath.exists(file) || !FilePath.exists(moved) ? file : moved
  }

  /// A text that is not empty.
  func text(_ reader: JSONReader, _ key: String, required: Bool = false) -> String? {
    guard let text = reader.string(key, required: required) else { return nil }
    guard !text.isEmpty else {
      reader.report(key, "must not be empty")
      return nil
    }
    return text
  }

  /// The bytes of a file that a key names; nil when it cannot be read, which is reported.
  func content(_ reader: JSONReader, _ key: String, ofFile file: String) -> [UInt8]? {
    do throws(TextFile.ReadError) {
      return try TextFile.read(file)
    } catch {
      reader.report(key, "the file \(file) \(error)")
      self.lacksDescriptors = self.lacksDescriptors || error.isTemporary
      return nil
    }
  }

  /// The document of another file and where its mistakes go; nil when it cannot be read.
  func otherDocument(_ file: String) -> JSONReader? {
    do throws(ConfigurationError) {
      let document = try PipelineConfiguration.document(file).value
      let mistakes = JSONMistakes()
      self.secretFiles.note(document, of: file)
      let interpolation = Interpolation(
        environment: self.environment, base: self.base, mistakes: mistakes,
        secretFiles: self.secretFiles)
      let value = interpolation.interpolate(document)
      self.secrets.add(secretsOf: value)
      return JSONReader(value, mistakes: mistakes)
    } catch {
      self.mistakesOfOtherFiles += error.mistakes
      self.lacksDescriptors = self.lacksDescriptors || error.isTemporary
      return nil
    }
  }

  func addMistakes(of reader: JSONReader, file: String) {
    self.mistakesOfOtherFiles += reader.mistakes.inTextOrder.map {
      ConfigurationMistake(file: file, mistake: $0)
    }
  }
}
