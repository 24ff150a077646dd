import ArgumentParser
import DurableFiles

/// `pubsub-etl permissions FILE`: what an admin deploys so that the pipeline can log in and read.
struct PermissionsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "permissions",
    abstract: "Writes a least-privilege permission set and app for a pipeline, to be deployed.",
    discussion: """
      Writes files for the Salesforce CLI into a directory: a permission set that reads the objects \
      of the pipeline and nothing else, and, unless the login needs none, an External Client App. \
      Connects to nothing. Says on standard error what remains to be done by hand. Files from an \
      earlier call are replaced.
      Exit codes: 0 written; 64 command line; 74 the directory cannot be written; 78 mistakes in \
      the file.

      EXAMPLES:
        pubsub-etl permissions opps.json --output salesforce    write the files
      """)

  @OptionGroup var options: PipelineOptions

  @Option(
    help: ArgumentHelp("Directory for the files; created if it does not exist.", valueName: "dir"),
    completion: .directory)
  var output = "salesforce"

  @Option(help: "E-mail address that the app shows as its contact.")
  var contact = "admin@example.com"

  @Option(
    help: ArgumentHelp(
      "Certificate of the private key in PEM form, for the JWT bearer flow.", valueName: "file"),
    completion: .file())
  var certificate: String?

  func validate() throws {
    try FilePath.validate(self.output, of: "--output")
    try FilePath.validate(self.certificate, of: "--certificate")
  }

  func run() throws {
    let configuration = try self.options.loadOrExit()
    let secrets = configuration.secrets
    do {
      let metadata = OrgMetadata(
        configuration, contact: self.contact, certificate: try self.certificateText())
      let directory = FilePath.resolve(self.output, base: FilePath.workingDirectory)
      try Self.write(metadata.files, into: directory)
      for file in metadata.files {
        try StandardStream.print(
          PrintableText(line: "\(directory)/\(file.path)", hiding: secrets))
      }
      let steps =
        [
          "deploy with: cd \(FilePath.shellWord(directory)) && sf project deploy start --source-dir force-app "
            + "--target-org ORG",
          "assign with: sf org assign permset --name \(metadata.name) --on-behalf-of USER "
            + "--target-org ORG",
        ] + metadata.remarks
      for step in steps {
        StandardStream.tell(PrintableText(line: step, hiding: secrets))
      }
    } catch {
      throw RunFailure(error).reported(hiding: secrets)
    }
  }

  private func certificateText() throws -> String? {
    guard let certificate else { return nil }
    let file = FilePath.resolve(certificate, base: FilePath.workingDirectory)
    do throws(TextFile.ReadError) {
      let text = String(decoding: try TextFile.read(file, limit: 64 << 10), as: UTF8.self)
      guard text.contains("-----BEGIN CERTIFICATE-----"), !text.contains("PRIVATE KEY") else {
        throw TextFile.ReadError(
          description: "must be a certificate in PEM form, without a private key")
      }
      return text
    } catch {
      throw RunFailure(
        .certificate, "--certificate: the file \(file) \(error)")
    }
  }

  private static func write(_ files: [OrgMetadata.File], into directory: String) throws {
    let fileSystem = SystemFileSystem()
    do throws(FileSystemError) {
      for file in files {
        let path = "\(directory)/\(file.path)"
        try fileSystem.makeDirectories(fileSystem.parent(of: path))
        try Self.fill("\(path).new", with: file.text, on: fileSystem)
        try fileSystem.rename("\(path).new", to: path)
      }
    } catch {
      throw RunFailure(.output, "\(error)")
    }
  }

  private static func fill(
    _ path: String, with text: String, on fileSystem: SystemFileSystem
  ) throws(FileSystemError) {
    let file = try OpenFile(temporary: path, on: fileSystem)
    try file.write(Array(text.utf8))
    try file.synchronize()
  }
}
