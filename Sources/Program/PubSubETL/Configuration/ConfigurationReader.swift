import JSON

/// What the keys of a pipeline document are read with: the place of its file, other files, the
/// environment.
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

  /// A document whose variables are replaced.
  func interpolate(
    _ document: JSONValue, path: String = "", _ mistakes: JSONMistakes
  ) -> JSONValue {
    let interpolation = Interpolation(
      environment: self.environment, base: self.base, mistakes: mistakes,
      secretFiles: self.secretFiles)
    let value = interpolation.interpolate(document, path: path)
    self.secrets.add(secretsOf: value)
    return value
  }

  /// - Throws: `ConfigurationError` with every mistake in the file and in others.
  func result<Value>(
    _ value: Value?, _ mistakes: JSONMistakes
  ) throws(ConfigurationError) -> Value {
    let all = Self.mistakes(mistakes, in: self.file) + self.mistakesOfOtherFiles
    guard let value, all.isEmpty else {
      throw ConfigurationError(
        mistakes: all, secrets: self.secrets, isTemporary: self.lacksDescriptors)
    }
    return value
  }

  private static func mistakes(
    _ mistakes: JSONMistakes, in file: String
  ) -> [ConfigurationMistake] {
    mistakes.inTextOrder.map { ConfigurationMistake(file: file, mistake: $0) }
  }

  /// The path of another file of configuration: relative to the pipeline file, wherever `--root`
  /// puts the output, or to the base if it is there and not beside the pipeline file.
  func configurationPath(_ reader: JSONReader, _ key: String) -> String? {
    guard let moved = Kind<String>.path.read(reader, key, false), let text = reader.string(key)
    else { return nil }
    let directory = FilePath.directory(of: self.file)
    let file = FilePath.resolve(text, base: FilePath.real(directory) ?? directory)
    return FilePath.exists(file) || !FilePath.exists(moved) ? file : moved
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
      let value = self.interpolate(document, mistakes)
      return JSONReader(value, mistakes: mistakes, context: self)
    } catch {
      self.mistakesOfOtherFiles += error.mistakes
      self.lacksDescriptors = self.lacksDescriptors || error.isTemporary
      return nil
    }
  }

  func addMistakes(of reader: JSONReader, file: String) {
    self.mistakesOfOtherFiles += Self.mistakes(reader.mistakes, in: file)
  }
}
