internal import EventLoop
import JSON

extension PipelineConfiguration {
  /// Reads, overrides, interpolates and checks a pipeline file.
  ///
  /// - Parameters:
  ///   - file: path of the file, relative to the working directory.
  ///   - root: directory for relative paths in the file instead of the file's own; nil for the
  ///     environment variable `PUBSUB_ETL_ROOT`, if it is set.
  ///   - adapt: changes the document before its variables are replaced.
  /// - Throws: `ConfigurationError` with every mistake.
  static func load(
    file: String, root: String? = nil, overrides: [ConfigurationOverride] = [],
    environment: Environment = .process, adapt: (inout JSONValue) -> Void = { _ in }
  ) throws(ConfigurationError) -> PipelineConfiguration {
    let workingDirectory = FilePath.workingDirectory
    if root == nil, let root = environment.variable("PUBSUB_ETL_ROOT"),
      let mistake = FilePath.mistake(in: root)
    {
      let message = "PUBSUB_ETL_ROOT: \(mistake)"
      throw ConfigurationError(mistakes: [
        ConfigurationMistake(
          file: file, mistake: JSONMistake(path: "", position: .unknown, message: message))
      ])
    }
    let file = FilePath.resolve(file, base: workingDirectory)
    let directory = FilePath.directory(of: file)
    let base =
      if let root = root ?? environment.variable("PUBSUB_ETL_ROOT"), !root.isEmpty {
        FilePath.resolve(root, base: workingDirectory)
      } else {
        // `..` of a relative path means the parent of the real directory.
        FilePath.real(directory) ?? directory
      }
    var document = try Self.document(file).value
    adapt(&document)
    return try Self.read(
      document, file: file, base: base, overrides: overrides, environment: environment)
  }

  /// The pipeline of a draft, which is in no file.
  ///
  /// - Throws: `ConfigurationError` with every mistake.
  static func load(
    _ draft: PipelineDraft, overrides: [ConfigurationOverride], environment: Environment
  ) throws(ConfigurationError) -> PipelineConfiguration {
    do throws(ConfigurationError) {
      return try Self.read(
        draft.document, file: nil, base: FilePath.workingDirectory, overrides: overrides,
        environment: environment)
    } catch {
      throw error.placed("without a pipeline file")
    }
  }

  /// - Parameters:
  ///   - file: absolute path of the file that has the document; nil without a file.
  ///   - base: the directory for relative paths.
  private static func read(
    _ document: JSONValue, file: String?, base: String, overrides: [ConfigurationOverride],
    environment: Environment
  ) throws(ConfigurationError) -> PipelineConfiguration {
    var document = document
    let mistakes = JSONMistakes()
    for override in overrides { override.apply(to: &document, mistakes: mistakes) }
    let secretFiles = SecretFiles()
    if let file { secretFiles.note(document, of: file) }
    let loading = ConfigurationReader(
      file: file ?? "\(base)/", base: base, environment: environment, secretFiles: secretFiles,
      replacesTopics: overrides.contains { $0.path.starts(with: ["source", "topic"]) })
    document = loading.interpolate(document, mistakes)
    loading.secrets.add(secretsOf: environment)
    let reader = JSONReader(document, mistakes: mistakes, context: loading)
    var pipeline = try loading.result(reader.read(Self.keys), mistakes)
    (pipeline.file, pipeline.base, pipeline.secrets) = (file ?? "", base, loading.secrets)
    (pipeline.secretFiles, pipeline.inputFiles) = (secretFiles.paths, secretFiles.inputs)
    pipeline.secrets.commands.withLock {
      $0 = PrintedCommands(words: pipeline.commandWords)
    }
    return pipeline
  }

  /// A command for this pipeline, as messages show it, which works in any directory of a shell if there is a file:
  /// `pubsub-etl snapshot /etc/opps.json --root /data`.
  func command(_ name: String, _ options: String...) -> String {
    (["pubsub-etl", name, self.commandWords] + options).joined(separator: " ")
  }

  private var commandWords: String {
    // `run --print` prints the file that the user then needs.
    guard !self.file.isEmpty else { return "FILE" }
    let directory = FilePath.directory(of: self.file)
    let isMoved = self.base != FilePath.real(directory) ?? directory
    return FilePath.shellWord(self.file)
      + (isMoved ? " --root \(FilePath.shellWord(self.base))" : "")
  }

  /// The text of a file and what it means.
  static func document(
    _ file: String
  ) throws(ConfigurationError) -> (text: [UInt8], value: JSONValue) {
    let mistake: JSONMistake
    var isTemporary = false
    do throws(TextFile.ReadError) {
      let text = try TextFile.read(file)
      do throws(JSONError) {
        return (text, try JSONValue(parsing: text))
      } catch {
        mistake = JSONMistake(path: "", position: error.position, message: error.message)
      }
    } catch {
      mistake = JSONMistake(path: "", position: .unknown, message: "\(error)")
      isTemporary = error.isTemporary
    }
    throw ConfigurationError(
      mistakes: [ConfigurationMistake(file: file, mistake: mistake)], isTemporary: isTemporary)
  }
}
