import JSON

extension OrgConfiguration {
  /// The org that the environment describes, as pipelines/org.json has it.
  static let ofEnvironment: JSONValue = [
    "endpoint": "${PUBSUB_ENDPOINT:-https://api.pubsub.salesforce.com:7443}",
    "tls": ["ca_file": "${PUBSUB_CA_FILE:-}"],
    "auth": [
      "type": "client_credentials", "login_url": "${SF_LOGIN_URL}",
      "client_id": "${SF_CLIENT_ID}", "client_secret": "${SF_CLIENT_SECRET}",
    ],
  ]

  /// The org of the environment, without members whose variables are not set and that have a default.
  static func document(of environment: Environment) -> JSONValue {
    let members = (Self.ofEnvironment.members ?? []).filter { member in
      Interpolation.variables(in: member.value).contains { name, hasDefault in
        !hasDefault || !(environment.variable(name) ?? "").isEmpty
      }
    }
    return JSONValue(.object(members))
  }

  /// Reads the org of the environment, or of a file: an org file, or a pipeline file, of which nothing
  /// else counts.
  ///
  /// - Parameter file: path of the file, relative to the working directory; nil for the org of the
  ///   environment.
  /// - Returns: the org, and the secrets that its configuration holds.
  /// - Throws: `ConfigurationError` with every mistake.
  static func load(
    file: String?, environment: Environment = .process
  ) throws(ConfigurationError) -> (org: OrgConfiguration, secrets: SecretMask) {
    guard let file else {
      do throws(ConfigurationError) {
        return try Self.load(
          Self.ofEnvironment, file: "\(FilePath.workingDirectory)/", environment: environment)
      } catch {
        throw error.placed("without --org FILE")
      }
    }
    let path = FilePath.resolve(file, base: FilePath.workingDirectory)
    return try Self.load(
      PipelineConfiguration.document(path).value, file: path, environment: environment)
  }

  /// - Parameter file: absolute path of the file that has the document.
  private static func load(
    _ document: JSONValue, file: String, environment: Environment
  ) throws(ConfigurationError) -> (org: OrgConfiguration, secrets: SecretMask) {
    let directory = FilePath.directory(of: file)
    let base = FilePath.real(directory) ?? directory
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
