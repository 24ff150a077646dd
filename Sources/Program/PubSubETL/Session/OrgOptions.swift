import ArgumentParser
import JSON
import Pipeline

/// Which org: the option of commands that need no pipeline file.
struct OrgOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Org file (pipelines/org.json is an example), or a pipeline file, of which only the org is "
        + "read. Default: the environment variables SF_LOGIN_URL, SF_CLIENT_ID and "
        + "SF_CLIENT_SECRET, as in pipelines/org.json.", valueName: "file"), completion: .file())
  var org: String?

  func validate() throws { try FilePath.validate(self.org, of: "--org") }

  /// How the stage `flatten` of a pipeline file names the parts of compound fields; the default for
  /// an org file.
  var flattenNaming: FlattenNaming {
    guard let org,
      let document = try? PipelineConfiguration.document(
        FilePath.resolve(org, base: FilePath.workingDirectory)
      ).value
    else { return .path }
    let stage = document["stages"]?.array?.first { $0["type"]?.string == Flatten.type }
    return (stage?["naming"]?.string).flatMap(FlattenNaming.init) ?? .path
  }

  /// The org, and the secrets that its configuration holds. Mistakes have been printed when it throws.
  func loadOrExit() throws -> (org: OrgConfiguration, secrets: SecretMask) {
    do throws(ConfigurationError) {
      return try OrgConfiguration.load(file: self.org)
    } catch {
      StandardStream.tell(error.printable)
      throw error.exitCode.error
    }
  }
}
