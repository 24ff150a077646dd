import JSON

extension OrgConfiguration {
  /// Reads the org of a file: an org file, or a pipeline file, of which nothing else counts.
  ///
  /// - Parameter file: path of the file, relative to the working directory.
  /// - Returns: the org, and the secrets that its configuration holds.
  /// - Throws: `ConfigurationError` with every mistake.
  static func load(
    file: String, environment: Environment = .process
  ) throws(ConfigurationError) -> (org: OrgConfiguration, secrets: SecretMask) {
    let file = FilePath.resolve(file, base: FilePath.workingDirectory)
    let directory = FilePath.directory(of: file)
    let base = FilePath.real(directory) ?? directory
    let document = try PipelineConfiguration.document(file).value
    let mistakes = JSONMistakes()
    let secretFiles = SecretFiles()
    secretFiles.note(document, of: file)
    let reading = ConfigurationReader(
      file: file, base: base, environment: environment, secretFiles: secretFiles)
    // Variables that other parts of a pipeline file need may not be set here.
    let source = document["source"]
    let path = source == nil ? "" : "/source/org"
    let part = source.map { $0["org"] ?? nil } ?? document
    let value = reading.interpolate(part, path: path, mistakes)
    reading.secrets.add(secretsOf: environment)
    let org: OrgConfiguration?
    if source == nil {
      org = JSONReader(value, mistakes: mistakes, context: reading).read()
    } else {
      let members = source?["org"].map { _ in [JSONMember("org", value)] } ?? []
      let reader = JSONReader(
        JSONValue(.object(members)), path: "/source", mistakes: mistakes, context: reading)
      org = Kind.org.read(reader, "org", true)
    }
    return (try reading.result(org, mistakes), reading.secrets)
  }
}
