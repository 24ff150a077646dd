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
    let (file, base) = try Self.place(file, root: root, environment)
    return try Self.read(
      Self.document(file).value, file: file, base: base, overrides: overrides,
      environment: environment, adapt: adapt)
  }

  /// The absolute paths of a pipeline file and of the directory that its relative paths belong to.
  private static func place(
    _ file: String, root: String?, _ environment: Environment
  ) throws(ConfigurationError) -> (file: String, base: String) {
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
    return (file, base)
  }

  /// The name, the checkpoint and `notify` of a pipeline file. Everything else has its
  /// default.
  ///
  /// - Returns: nil if there are mistakes in these parts, too.
  static func incidentPlace(
    file: String, root: String?, overrides: [ConfigurationOverride], environment: Environment
  ) -> PipelineConfiguration? {
    guard let (file, base) = try? Self.place(file, root: root, environment),
      var document = try? Self.document(file).value
    else { return nil }
    let mistakes = JSONMistakes()
    for override in overrides { override.apply(to: &document, mistakes: mistakes) }
    let keys = Self.keys.filter {
      ["name", "checkpoint", "notify"].contains($0.declaration.name)
    }
    let names = keys.map(\.declaration.name)
    document.content = .object((document.members ?? []).filter { names.contains($0.name) })
    let loading = ConfigurationReader(
      file: file, base: base, environment: environment, secretFiles: SecretFiles())
    let reader = JSONReader(
      loading.interpolate(document, mistakes), mistakes: mistakes, context: loading)
    var (place, isComplete) = reader.readPart(keys)
    guard isComplete, mistakes.isEmpty else { return nil }
    (place.file, place.base, place.secrets) = (file, base, loading.secrets)
    return place
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
    environment: Environment, adapt: (inout JSONValue) -> Void = { _ in }
  ) throws(ConfigurationError) -> PipelineConfiguration {
    var document = document
    let mistakes = JSONMistakes()
    for override in overrides { override.apply(to: &document, mistakes: mistakes) }
    adapt(&document)
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

  /// Takes away what a command that connects to no org does not need, so that it needs no variables of it: the
  /// login, and `notify`.
  static func removeLogin(from document: inout JSONValue) {
    document = document.replacing("notify") { _ in nil }
    document = document.replacing("source") { source in
      source.replacing("org") { _ in
        [
          // What is allowed with these is allowed.
          "endpoint": "https://localhost",
          "auth": [
            "type": "token", "instance_url": "https://localhost",
            "access_token": "a-login-that-was-not-read",
          ],
        ]
      }
    }
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

extension JSONValue {
  /// The object with another value of a member that it has, or without it; anything else as it is.
  fileprivate func replacing(_ name: String, _ change: (JSONValue) -> JSONValue?) -> JSONValue {
    guard let members = self.members else { return self }
    var object = self
    object.content = .object(
      members.compactMap { member in
        guard member.name == name else { return member }
        return change(member.value).map { JSONMember(name, $0) }
      })
    return object
  }
}
