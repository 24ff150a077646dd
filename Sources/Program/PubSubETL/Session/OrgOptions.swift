import ArgumentParser

/// Which org: the option of commands that need no pipeline file.
struct OrgOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Org file (pipelines/org.json is an example), or a pipeline file, of which only the org is "
        + "read. Default: the environment variables SF_LOGIN_URL, SF_CLIENT_ID and "
        + "SF_CLIENT_SECRET, as in pipelines/org.json.", valueName: "file"), completion: .file())
  var org: String?

  func validate() throws { try FilePath.validate(self.org, of: "--org") }

  /// The org, and the secrets that its configuration holds. Mistakes have been printed when it throws.
  func loadOrExit() throws -> (org: OrgConfiguration, secrets: SecretMask) {
    do throws(ConfigurationError) {
      return try OrgConfiguration.load(file: self.org)
    } catch {
      StandardStream.error.write(error.printable)
      throw error.exitCode.error
    }
  }
}
