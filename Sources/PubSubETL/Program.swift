import ArgumentParser
import CBuildInfo
import EventLoop
import TLSStream

@main
struct Program: AsyncParsableCommand {
  static let version = PUBSUB_ETL_VERSION

  static let configuration = CommandConfiguration(
    commandName: "pubsub-etl",
    abstract: "Exports Salesforce Pub/Sub API events exactly once.",
    version: String(cString: pubsub_etl_build()),
    subcommands: [
      RunCommand.self, CheckCommand.self, PlanCommand.self, StatusCommand.self,
      CheckpointCommand.self, SnapshotCommand.self, RepairCommand.self, VerifyCommand.self,
      RefoldCommand.self, DeadLettersCommand.self, PublishCommand.self, PermissionsCommand.self,
      EvalCommand.self,
      TestCommand.self,
      PipelineSchemaCommand.self,
    ])

  static func main() async {
    StandardStream.occupyClosed()
    OpenSSLLifetime.outliveThreads()
    do { try await RuntimeDescriptors.open() } catch {
      StandardStream.error.write(PrintableText(line: "\(error)", hiding: SecretMask()))
      Self.exit(withError: ExitCode.tryAgain.error)
    }
    await self.main(nil)
  }
}
