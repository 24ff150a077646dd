import Glibc
import TestSupport

@testable import PubSubETL

/// Pipeline files for tests, in a directory of their own.
struct SamplePipeline {
  let directory: TemporaryDirectory
  /// As the loader prints it: symbolic links resolved.
  let base: String

  init() throws {
    self.directory = try TemporaryDirectory()
    self.base = FilePath.real(self.directory.path) ?? self.directory.path
  }

  /// A pipeline that is in order and has nothing but what is required.
  static let minimal = """
    {
      "version": 1,
      "name": "opps",
      "source": {
        "type": "salesforce",
        "topic": "/data/OpportunityChangeEvent",
        "org": {
          "auth": { "type": "client_credentials", "login_url": "https://acme.my.salesforce.com",
            "client_id": "id", "client_secret": "${SECRET}" }
        }
      },
      "sinks": [ { "type": "files", "directory": "out" } ],
      "checkpoint": { "type": "file", "directory": "state" }
    }
    """

  func write(_ text: String, to name: String = "pipeline.json") throws {
    try Self.write(text, to: "\(self.directory.path)/\(name)")
  }

  private static func write(_ text: String, to path: String) throws {
    struct WriteError: Error { var code: Int32 }
    guard let file = fopen(path, "w") else { throw WriteError(code: errno) }
    fputs(text, file)
    fclose(file)
  }

  func load(
    _ text: String = Self.minimal, sets: [String] = [], environment: [String: String] = [:],
    root: String? = nil
  ) throws -> PipelineConfiguration {
    try self.write(text)
    return try PipelineConfiguration.load(
      file: "\(self.directory.path)/pipeline.json", root: root,
      overrides: try sets.map { try ConfigurationOverride($0) },
      environment: Environment(["SECRET": "s3cret"].merging(environment) { $1 }))
  }

  /// The mistakes, without the directory.
  func mistakes(
    _ text: String = Self.minimal, sets: [String] = [], environment: [String: String] = [:]
  ) throws -> [String] {
    do {
      _ = try self.load(text, sets: sets, environment: environment)
      return []
    } catch let error as ConfigurationError {
      return error.mistakes.map { mistake in
        let text = mistake.description
        return text.hasPrefix(self.directory.path + "/")
          ? String(text.dropFirst(self.directory.path.count + 1)) : text
      }
    }
  }
}
